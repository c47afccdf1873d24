//! Crate `cfb` 0.16, with its defaults.

use std::io::{self, Read, Seek, SeekFrom, Write};

use cfb::{CompoundFile, Stream};

use super::{Contestant, Key, Shape, Version, Who};
use crate::cfb::base::{Base, Swap};

/// A file of crate `cfb`.
#[derive(Debug)]
pub struct Rival<B: Base> {
    /// There but for moments.
    file: Option<CompoundFile<B::Io>>,
    /// The file is a copy that is to take the place of its original.
    swap: Option<Swap>,
}

const WORKS: &str = "cfb does what is asked of it";

impl<B: Base> Rival<B> {
    const fn new(file: CompoundFile<B::Io>) -> Self {
        Self { file: Some(file), swap: None }
    }

    fn file(&self) -> &CompoundFile<B::Io> {
        self.file.as_ref().expect("a file is open")
    }

    fn file_mut(&mut self) -> &mut CompoundFile<B::Io> {
        self.file.as_mut().expect("a file is open")
    }
}

impl<B: Base> Contestant for Rival<B> {
    type Base = B;
    type Handle = Stream<B::Io>;
    const WHO: Who = Who::Rival;

    fn create(base: B, version: Version, _: Shape) -> Self {
        let version = match version {
            Version::V3 => cfb::Version::V3,
            Version::V4 => cfb::Version::V4,
        };
        let file = CompoundFile::create_with_version(version, base.into_io());
        Self::new(file.expect(WORKS))
    }

    fn open(base: B, _: Shape) -> Self {
        Self::new(CompoundFile::open(base.into_io()).expect(WORKS))
    }

    fn close(mut self) -> B {
        self.file_mut().flush().expect(WORKS);
        B::from_io(self.file.expect("a file is open").into_inner())
    }

    fn flush(&mut self, handles: &mut [Self::Handle]) {
        // The file's own flush leaves out what its streams have buffered.
        for handle in handles {
            handle.flush().expect(WORKS);
        }
        self.file_mut().flush().expect(WORKS);
    }

    // It writes in place, in an order that a crash may leave unreadable. Users who
    // cannot have that work on a copy.
    fn begin_safe(&mut self) {
        let original = B::from_io(self.file.take().expect("a file is open").into_inner());
        let (copy, swap) = original.copy();
        self.file = Some(CompoundFile::open(copy.into_io()).expect(WORKS));
        self.swap = Some(swap);
    }

    fn end_safe(&mut self) {
        self.swap.take().expect("it was begun").done();
    }

    fn create_stream(&mut self, key: Key<'_>) -> Self::Handle {
        self.file_mut().create_stream(key.path).expect(WORKS)
    }

    fn open_stream(&mut self, key: Key<'_>) -> Self::Handle {
        self.file_mut().open_stream(key.path).expect(WORKS)
    }

    fn remove_stream(&mut self, key: Key<'_>) {
        self.file_mut().remove_stream(key.path).expect(WORKS);
    }

    fn exists(&self, key: Key<'_>) -> bool {
        self.file().exists(key.path)
    }

    fn create_storage(&mut self, path: &str) {
        self.file_mut().create_storage(path).expect(WORKS);
    }

    fn walk(&self, _: usize) -> (usize, u64) {
        self.file().walk().fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.len()))
    }

    fn append(&mut self, handle: &mut Self::Handle, bytes: &[u8]) {
        handle.seek(SeekFrom::End(0)).expect(WORKS);
        handle.write_all(bytes).expect(WORKS);
    }

    fn write_at(&mut self, handle: &mut Self::Handle, bytes: &[u8], offset: u64) {
        handle.seek(SeekFrom::Start(offset)).expect(WORKS);
        handle.write_all(bytes).expect(WORKS);
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
