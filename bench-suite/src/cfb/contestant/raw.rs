//! The same bytes by `memcpy` or plain file calls: nothing can be faster.
//!
//! Streams lie one behind the other, all equally long, behind as many bytes as a
//! compound file has in front of its first one. What is appended goes
//! to the end of everything, as it does where nothing was reserved.

use std::io::{self, Read, Write};

use super::{Contestant, ENTRY_BYTES, Key, Shape, Version, Who};
use crate::cfb::base::Base;

/// Bytes without a format.
#[derive(Debug)]
pub struct Raw<B: Base> {
    base: B,
    shape: Shape,
}

/// A place in the bytes.
#[derive(Debug)]
pub struct Place {
    start: u64,
    position: u64,
}

impl<B: Base> Raw<B> {
    fn start_of(&self, key: Key<'_>) -> u64 {
        let each = if self.shape.each == 0 { ENTRY_BYTES as u64 } else { self.shape.each };
        self.shape.header + key.index as u64 * each
    }

    /// Reads the first bytes of everything in large pieces.
    fn read_first(&self, mut count: u64) {
        let mut buf = vec![0; 1 << 20];
        let mut at = 0;
        count = count.min(self.base.len());
        while at < count {
            let piece = usize::try_from(count - at).unwrap_or(usize::MAX).min(buf.len());
            self.base.read_at(&mut buf[..piece], at);
            std::hint::black_box(&buf);
            at += piece as u64;
        }
    }
}

impl<B: Base> Contestant for Raw<B> {
    type Base = B;
    type Handle = Place;
    const WHO: Who = Who::Raw;

    fn create(mut base: B, _: Version, shape: Shape) -> Self {
        if shape.header > 0 {
            base.append(&[0; 4_096][..usize::try_from(shape.header).expect("a sector")]);
        }
        Self { base, shape }
    }

    fn open(base: B, shape: Shape) -> Self {
        let raw = Self { base, shape };
        raw.read_first(shape.metadata);
        raw
    }

    fn close(self) -> B {
        self.base
    }

    fn flush(&mut self, _: &mut [Place]) {}

    fn create_stream(&mut self, key: Key<'_>) -> Place {
        if self.shape.each == 0 {
            self.base.append(&[0; ENTRY_BYTES]);
        }
        Place { start: self.start_of(key), position: 0 }
    }

    fn open_stream(&mut self, key: Key<'_>) -> Place {
        if self.shape.each == 0 {
            self.exists(key);
        }
        Place { start: self.start_of(key), position: 0 }
    }

    fn remove_stream(&mut self, key: Key<'_>) {
        self.base.write_at(&[0; ENTRY_BYTES], self.start_of(key));
    }

    fn exists(&self, key: Key<'_>) -> bool {
        let mut entry = [0; ENTRY_BYTES];
        self.base.read_at(&mut entry, self.start_of(key));
        std::hint::black_box(&entry);
        true
    }

    fn create_storage(&mut self, _: &str) {}

    fn walk(&self, entries: usize) -> (usize, u64) {
        self.read_first((entries * ENTRY_BYTES) as u64);
        (entries, 0)
    }

    fn append(&mut self, _: &mut Place, bytes: &[u8]) {
        self.base.append(bytes);
    }

    fn write_at(&mut self, handle: &mut Place, bytes: &[u8], offset: u64) {
        self.base.write_at(bytes, handle.start + offset);
    }

    fn read_at(&mut self, handle: &mut Place, buf: &mut [u8], offset: u64) {
        self.base.read_at(buf, handle.start + offset);
    }

    fn read_next(&mut self, handle: &mut Place, buf: &mut [u8]) {
        self.base.read_at(buf, handle.start + handle.position);
        handle.position += buf.len() as u64;
    }

    fn copy_out(&mut self, handle: &mut Place, to: &mut impl Write) -> u64 {
        let left = self.shape.each - handle.position;
        let mut reader = Reader { base: &self.base, at: handle.start + handle.position, left };
        io::copy(&mut reader, to).expect("reading and writing work")
    }

    fn set_len(&mut self, _: &mut Place, len_bytes: u64) {
        self.base.set_len(self.shape.header + len_bytes);
    }
}

/// A stretch of the bytes as [`io::copy`] wants it.
struct Reader<'a, B> {
    base: &'a B,
    at: u64,
    left: u64,
}

impl<B: Base> Read for Reader<'_, B> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        self.base.read_at(&mut buf[..count], self.at);
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
