//! Numbers and byte strings in records: LEB128 for numbers, a length before bytes.

/// Appends a number in groups of seven bits, lowest first; the high bit says
/// that more follow.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends bytes with their length before them.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes a record apart from its front. `None` is a record that ends too early
/// or holds a number that cannot be.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7F);
            if shift == 63 && part > 1 {
                return None;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number that counts things of at least `each` bytes that follow.
    pub(crate) fn count(&mut self, each: usize) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count.checked_mul(each)? <= self.rest.len()).then_some(count)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut decoder = Decoder::new(&out);
            assert_eq!(decoder.varint(), Some(value));
            assert!(decoder.is_empty());
            assert_eq!(Decoder::new(&out[..out.len() - 1]).varint(), None, "cut off");
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_none() {
        let mut eleven = [0xFF; 11];
        eleven[10] = 0;
        assert_eq!(Decoder::new(&eleven).varint(), None);
        let mut ten = [0xFF; 10];
        ten[9] = 2;
        assert_eq!(Decoder::new(&ten).varint(), None);
    }

    #[test]
    fn counts_are_bounded_by_what_follows() {
        let mut out = Vec::new();
        put_varint(&mut out, 3);
        out.extend_from_slice(&[0; 5]);
        assert_eq!(Decoder::new(&out).count(2), None);
        assert_eq!(Decoder::new(&out).count(1), Some(3));
    }
}
