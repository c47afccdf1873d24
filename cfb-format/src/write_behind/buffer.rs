//! Bytes that lie in memory as they are going to lie in the storage.
//!
//! A system copies a write to its pages. How fast depends on whether both lie
//! alike in their cache lines: 90 or 130 us a MiB on an AMD Zen 4. So a long
//! buffer begins as many bytes behind the start of a line as its place in the
//! storage does; pages begin where lines do.

use std::ops::{Deref, DerefMut};

use crate::storage::append;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Longer buffers lie as they should, and have room for the longest at once:
/// memory that is not written to costs nothing, moving it does.
const SHORT_BYTES: usize = 32 << 10;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    /// `skip` bytes that stand for nothing, then the bytes.
    bytes: Vec<u8>,
    skip: usize,
}

impl Buffer {
    /// A buffer with `bytes`, which are to go to `offset`, in the memory of `spare`.
    pub(super) fn new(offset: u64, bytes: &[u8], max_bytes: usize, spare: Vec<u8>) -> Self {
        let mut new = Self { bytes: spare, skip: 0 };
        new.bytes.clear();
        if new.bytes.capacity() >= SHORT_BYTES {
            new.align(offset);
        }
        new.push(offset, bytes, max_bytes);
        new
    }

    /// Appends bytes to a buffer for `offset` that is to have at most `max_bytes`.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8], max_bytes: usize) {
        let len = self.len() + bytes.len();
        if self.skip + len > self.bytes.capacity() && len > SHORT_BYTES {
            let capacity = max_bytes.max(len) + LINE_BYTES;
            let mut longer = Self { bytes: Vec::with_capacity(capacity), skip: 0 };
            longer.align(offset);
            longer.bytes.extend_from_slice(self);
            *self = longer;
        }
        append(&mut self.bytes, bytes);
    }

    /// Makes an empty buffer begin where it should.
    fn align(&mut self, offset: u64) {
        let lines = LINE_BYTES as u64;
        let ahead = (offset % lines + lines - self.bytes.as_ptr().addr() as u64 % lines) % lines;
        self.skip = usize::try_from(ahead).expect("less than a line");
        self.bytes.resize(self.skip, 0);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(self.skip + len);
    }

    /// The memory, for another buffer.
    pub(super) fn into_spare(self) -> Vec<u8> {
        self.bytes
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.skip..]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1 << 20;

    fn lies_alike(buffer: &Buffer, offset: u64) -> bool {
        buffer.as_ptr().addr() as u64 % 64 == offset % 64
    }

    #[test]
    fn long_buffers_lie_as_their_place_does_and_stay_where_they_are() {
        for offset in [0, 1, 16, 63, 512, 4_096 + 17] {
            let mut buffer = Buffer::new(offset, &[1; 100], MAX, Vec::new());
            let mut expected = vec![1; 100];
            let mut place = None;
            for piece in 0..100 {
                buffer.push(offset, &[piece; 4_000], MAX);
                expected.extend_from_slice(&[piece; 4_000]);
                if buffer.len() > SHORT_BYTES {
                    assert!(lies_alike(&buffer, offset), "{} bytes for {offset}", buffer.len());
                    assert_eq!(*place.get_or_insert(buffer.as_ptr()), buffer.as_ptr());
                }
            }
            assert_eq!(*buffer, *expected);
        }
    }

    #[test]
    fn memory_of_a_long_buffer_is_used_again_for_any_place() {
        let long = Buffer::new(5, &vec![1; SHORT_BYTES + 1], MAX, Vec::new());
        let spare = long.into_spare();
        let capacity = spare.capacity();
        let mut buffer = Buffer::new(70, b"ab", MAX, spare);
        assert_eq!((&*buffer, buffer.bytes.capacity()), (&b"ab"[..], capacity));
        assert!(lies_alike(&buffer, 70));
        buffer[1] = b'c';
        buffer.push(70, b"d", MAX);
        assert_eq!(*buffer, *b"acd");
        buffer.truncate(1);
        assert_eq!(*buffer, *b"a");
    }

    #[test]
    fn short_buffers_take_no_more_than_a_vector() {
        let buffer = Buffer::new(7, &[1; 100], MAX, Vec::new());
        assert_eq!((buffer.skip, buffer.bytes.capacity()), (0, 100));
    }
}
