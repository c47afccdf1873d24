//! One node: entries in the order of their keys. FORMAT.md, "Index".

use bytes::Bytes;

use crate::codec::{Decoder, put_bytes};

/// Level and count before the offsets of the entries.
const HEADER_BYTES: usize = 8;

/// A node as it lies on disk.
pub(crate) struct Node {
    bytes: Bytes,
    count: usize,
}

impl Node {
    /// A node of this level. `None` if it cannot be one.
    pub(super) fn new(bytes: Bytes, level: u8) -> Option<Self> {
        let count = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
        let fits = count.checked_mul(4)? <= bytes.len() - HEADER_BYTES;
        (bytes[0] == level && fits && count > 0).then_some(Self { bytes, count })
    }

    /// The bytes of a node with these entries, as [`encode_entry`] makes them.
    pub(super) fn encode(level: u8, entries: &[Bytes]) -> Vec<u8> {
        let size: usize = entries.iter().map(entry_bytes).sum();
        let mut out = Vec::with_capacity(HEADER_BYTES + size);
        out.extend_from_slice(&[level, 0, 0, 0]);
        let count = u32::try_from(entries.len()).expect("a node is small");
        out.extend_from_slice(&count.to_le_bytes());
        out.resize(HEADER_BYTES + 4 * entries.len(), 0);
        for (index, entry) in entries.iter().enumerate() {
            let at = u32::try_from(out.len()).expect("a node is small");
            out[HEADER_BYTES + 4 * index..][..4].copy_from_slice(&at.to_le_bytes());
            out.extend_from_slice(entry);
        }
        out
    }

    /// How many entries.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    fn offset(&self, index: usize) -> Option<usize> {
        if index == self.count {
            return Some(self.bytes.len());
        }
        let at = HEADER_BYTES + 4 * index;
        Some(u32::from_le_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?) as usize)
    }

    #[inline]
    fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        split_entry(self.bytes.get(self.offset(index)?..self.offset(index + 1)?)?)
    }

    /// An entry as it is, sharing the node's memory.
    pub(super) fn raw(&self, index: usize) -> Option<Bytes> {
        let range = self.offset(index)?..self.offset(index + 1)?;
        self.bytes.get(range.clone())?;
        Some(self.bytes.slice(range))
    }

    pub(crate) fn key(&self, index: usize) -> Option<&[u8]> {
        self.entry(index).map(|(key, _)| key)
    }

    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        self.entry(index).map(|(_, value)| value)
    }

    /// Key and value, sharing the node's memory; the value only if it is wanted.
    pub(crate) fn shared(&self, index: usize, with_value: bool) -> Option<(Bytes, Bytes)> {
        let (key, value) = self.entry(index)?;
        let value = if with_value { self.bytes.slice_ref(value) } else { Bytes::new() };
        Some((self.bytes.slice_ref(key), value))
    }

    /// Where a key is, or where it would be.
    pub(crate) fn search(&self, key: &[u8]) -> Option<Result<usize, usize>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle)?.cmp(key) {
                std::cmp::Ordering::Equal => return Some(Ok(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Some(Err(low))
    }
}

/// The key and the value of an entry.
#[inline]
fn split_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some((&len, rest)) = bytes.split_first()
        && len < 0x80
    {
        // Nearly all keys.
        return rest.split_at_checked(usize::from(len));
    }
    let mut from = Decoder::new(bytes);
    let key = from.bytes()?;
    Some((key, from.take(from.left())?))
}

/// The key of an entry that was made or read here.
pub(super) fn key_of(entry: &[u8]) -> &[u8] {
    split_entry(entry).expect("entries are whole").0
}

/// The value of an entry that was made or read here.
pub(super) fn value_of(entry: &[u8]) -> &[u8] {
    split_entry(entry).expect("entries are whole").1
}

/// An entry of which the value is what `value` appends.
pub(super) fn encode_entry(key: &[u8], value: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::with_capacity(key.len() + 64);
    put_bytes(&mut out, key);
    value(&mut out);
    out.into()
}

/// Bytes that an entry takes in a node.
pub(super) fn entry_bytes(entry: &Bytes) -> usize {
    4 + entry.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(keys: &[&'static str]) -> Node {
        let entry = |key: &&'static str| encode_entry(key.as_bytes(), |out| out.push(b'v'));
        let entries: Vec<_> = keys.iter().map(entry).collect();
        Node::new(Node::encode(1, &entries).into(), 1).unwrap()
    }

    #[test]
    fn entries_come_back_and_keys_are_found() {
        let node = node(&["a", "bc", "d"]);
        assert_eq!(node.count(), 3);
        assert_eq!(node.key(1), Some(&b"bc"[..]));
        assert_eq!(node.value(2), Some(&b"v"[..]));
        assert_eq!(node.search(b"d"), Some(Ok(2)));
        assert_eq!(node.search(b"b"), Some(Err(1)));
        assert_eq!(node.search(b"e"), Some(Err(3)));
    }

    #[test]
    fn forged_nodes_are_none_or_end_early() {
        let mut bytes = Node::encode(1, &[encode_entry(b"a", |_| ())]);
        assert!(Node::new(Bytes::copy_from_slice(&bytes), 2).is_none(), "of another level");
        bytes[4] = 200;
        assert!(Node::new(Bytes::copy_from_slice(&bytes), 1).is_none(), "more entries than bytes");
        bytes[4] = 1;
        bytes[8] = 250;
        let node = Node::new(bytes.into(), 1).unwrap();
        assert_eq!(node.key(0), None);
        assert_eq!(node.search(b"a"), None);
    }
}
