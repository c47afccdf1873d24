//! Crate `cfb-format`.

use std::io::{self, Read, Seek, SeekFrom, Write};

use cfb_format::{CompoundFile, CreateOptions, OpenOptions, Stream};

use super::{Contestant, Key, Shape, Version, Who};
use crate::cfb::base::Base;

/// A file of crate `cfb-format`.
#[derive(Debug)]
pub struct Ours<B: Base> {
    file: CompoundFile<B::Storage>,
}

const WORKS: &str = "cfb-format does what is asked of it";

impl<B: Base> Contestant for Ours<B> {
    type Base = B;
    type Handle = Stream<B::Storage>;
    const WHO: Who = Who::Ours;

    fn create(base: B, version: Version, shape: Shape) -> Self {
        let version = match version {
            Version::V3 => cfb_format::Version::V3,
            Version::V4 => cfb_format::Version::V4,
        };
        let options = CreateOptions::new().version(version);
        let options = match shape.in_place {
            Some(in_place) => options.in_place(in_place),
            None => options,
        };
        Self { file: options.create_storage(base.into_storage()).expect(WORKS) }
    }

    fn open(base: B, shape: Shape) -> Self {
        let options = OpenOptions::new().write(true);
        let options = match shape.in_place {
            Some(in_place) => options.in_place(in_place),
            None => options,
        };
        Self { file: options.open_storage(base.into_storage()).expect(WORKS) }
    }

    fn close(self) -> B {
        B::from_storage(self.file.into_storage().expect(WORKS))
    }

    fn flush(&mut self, _: &mut [Self::Handle]) {
        self.file.flush().expect(WORKS);
    }

    fn create_stream(&mut self, key: Key<'_>) -> Self::Handle {
        self.file.create_stream(key.path).expect(WORKS)
    }

    fn open_stream(&mut self, key: Key<'_>) -> Self::Handle {
        self.file.open_stream(key.path).expect(WORKS)
    }

    fn remove_stream(&mut self, key: Key<'_>) {
        self.file.remove_stream(key.path).expect(WORKS);
    }

    fn exists(&self, key: Key<'_>) -> bool {
        self.file.exists(key.path)
    }

    fn create_storage(&mut self, path: &str) {
        self.file.create_storage(path).expect(WORKS);
    }

    fn walk(&self, _: usize) -> (usize, u64) {
        self.file.walk().fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.len()))
    }

    fn append(&mut self, handle: &mut Self::Handle, bytes: &[u8]) {
        handle.seek(SeekFrom::End(0)).expect(WORKS);
        handle.write_all(bytes).expect(WORKS);
    }

    fn write_at(&mut self, handle: &mut Self::Handle, bytes: &[u8], offset: u64) {
        handle.write_at(bytes, offset).expect(WORKS);
    }

    fn read_at(&mut self, handle: &mut Self::Handle, buf: &mut [u8], offset: u64) {
        handle.seek(SeekFrom::Start(offset)).expect(WORKS);
        handle.read_exact(buf).expect(WORKS);
    }

    fn read_next(&mut self, handle: &mut Self::Handle, buf: &mut [u8]) {
        handle.read_exact(buf).expect(WORKS);
    }

    fn copy_out(&mut self, handle: &mut Self::Handle, to: &mut impl Write) -> u64 {
        io::copy(handle, to).expect(WORKS)
    }

    fn set_len(&mut self, handle: &mut Self::Handle, len_bytes: u64) {
        handle.set_len(len_bytes).expect(WORKS);
    }
}
