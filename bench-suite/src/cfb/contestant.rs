//! What every workload asks of a contestant, and the three that can do it.

mod ours;
mod raw;
mod rival;

use std::io::Write;

pub use ours::Ours;
pub use raw::Raw;
pub use rival::Rival;

use super::base::Base;

/// One of three in a row of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Crate `cfb-format`.
    Ours,
    /// Crate `cfb`.
    Rival,
    /// The same bytes by `memcpy` or plain file calls.
    Raw,
}

/// Version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Version {
    /// Sectors of 512 bytes.
    V3,
    /// Sectors of 4,096 bytes.
    V4,
}

impl Version {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V3, Self::V4];

    /// Bytes of a sector, and of what the header takes up.
    pub const fn sector_bytes(self) -> u64 {
        match self {
            Self::V3 => 512,
            Self::V4 => 4_096,
        }
    }
}

/// What raw calls have to know of the file, which has no directory then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// Bytes in front of the first stream. Data that starts inside a page costs
    /// more to move, and behind a header it has to.
    pub header: u64,
    /// Bytes of each stream. With 0, a directory entry of 128 stands for it.
    pub each: u64,
    /// Bytes that opening has to read.
    pub metadata: u64,
    /// Whether saved bytes may be written over, for who can do otherwise; as it
    /// comes if `None`: on a file not, in memory they are.
    pub in_place: Option<bool>,
}

/// Bytes of a directory entry.
pub const ENTRY_BYTES: usize = 128;

/// A stream: its path for those who have paths, its number for those who have not.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// Counted from 0.
    pub index: usize,
    /// With a slash in front.
    pub path: &'a str,
}

/// A compound file, or what stands in for one.
///
/// Nothing here fails: a workload that meets an error measures nothing.
pub trait Contestant: Sized {
    /// Where the bytes are.
    type Base: Base;
    /// An open stream with a position.
    type Handle;
    /// Which of the three.
    const WHO: Who;

    /// A new file.
    fn create(base: Self::Base, version: Version, shape: Shape) -> Self;
    /// The file that is there, for reading and writing.
    fn open(base: Self::Base, shape: Shape) -> Self;
    /// Everything goes to the base. All handles are dropped by then.
    fn close(self) -> Self::Base;
    /// Everything that was written through `handles` goes to the base.
    fn flush(&mut self, handles: &mut [Self::Handle]);

    /// What is written until [`end_safe`](Self::end_safe) is to be there as a whole
    /// after a crash, or not at all. No handle is open.
    fn begin_safe(&mut self) {}
    /// What was written is the file's state. All was flushed, no handle is open.
    fn end_safe(&mut self) {}

    /// A stream that was not there.
    fn create_stream(&mut self, key: Key<'_>) -> Self::Handle;
    /// A stream that is there, at its start.
    fn open_stream(&mut self, key: Key<'_>) -> Self::Handle;
    /// Away with it.
    fn remove_stream(&mut self, key: Key<'_>);
    /// Whether it is there.
    fn exists(&self, key: Key<'_>) -> bool;
    /// Creates a storage.
    fn create_storage(&mut self, path: &str);
    /// Visits every entry; the number of `entries` and the bytes of all streams.
    fn walk(&self, entries: usize) -> (usize, u64);

    /// Writes at the end of the stream.
    fn append(&mut self, handle: &mut Self::Handle, bytes: &[u8]);
    /// Writes over bytes of the stream, by seeking where there are no better ways.
    fn write_at(&mut self, handle: &mut Self::Handle, bytes: &[u8], offset: u64);
    /// Fills `buf`, by seek and read.
    fn read_at(&mut self, handle: &mut Self::Handle, buf: &mut [u8], offset: u64);
    /// Fills `buf` from the position on, and moves it.
    fn read_next(&mut self, handle: &mut Self::Handle, buf: &mut [u8]);
    /// [`std::io::copy`] of the whole stream.
    fn copy_out(&mut self, handle: &mut Self::Handle, to: &mut impl Write) -> u64;
    /// Longer with zeros, or shorter.
    fn set_len(&mut self, handle: &mut Self::Handle, len_bytes: u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> Key<'_> {
        Key { index: 0, path }
    }

    /// What every row relies on: bytes that went in come out.
    fn round_trip<C: Contestant>(base: C::Base) {
        let shape = Shape { header: 512, each: 9_000, metadata: 100, in_place: None };
        let mut file = C::create(base, Version::V3, shape);
        let mut handle = file.create_stream(key("/a"));
        for byte in 0..9 {
            file.append(&mut handle, &[byte; 1_000]);
        }
        file.write_at(&mut handle, &[7; 10], 0);
        file.flush(std::slice::from_mut(&mut handle));
        drop(handle);

        let mut file = C::open(file.close(), shape);
        assert!(file.exists(key("/a")));
        let mut handle = file.open_stream(key("/a"));
        let mut buf = [0; 1_500];
        file.read_next(&mut handle, &mut buf);
        assert_eq!((buf[0], buf[9], buf[10], buf[999], buf[1_000]), (7, 7, 0, 0, 1));
        file.read_next(&mut handle, &mut buf[..600]);
        assert_eq!((buf[0], buf[500]), (1, 2));
        file.read_at(&mut handle, &mut buf[..2], 7_999);
        assert_eq!(buf[..2], [7, 8]);
        drop(handle);
        let mut handle = file.open_stream(key("/a"));
        let mut out = Vec::new();
        assert_eq!(file.copy_out(&mut handle, &mut out), 9_000);
        assert_eq!((out.len(), out[8_999]), (9_000, 8));
    }

    #[test]
    fn file_of_the_rival_is_renamed_over_its_original_when_it_is_to_be_safe() {
        let dir = tempfile::tempdir().unwrap();
        let mut home = std::fs::File::home(dir.path(), "rival");
        let shape = Shape::default();
        let mut file = Rival::<std::fs::File>::create(Base::fresh(&mut home), Version::V3, shape);
        let mut handle = file.create_stream(key("/a"));
        file.append(&mut handle, &[1; 5_000]);
        file.flush(&mut [handle]);
        file.begin_safe();
        let mut handle = file.open_stream(key("/a"));
        file.write_at(&mut handle, &[2; 4_000], 0);
        file.flush(&mut [handle]);
        let first = |home: &mut std::path::PathBuf| {
            let mut file = Rival::<std::fs::File>::open(Base::again(home), shape);
            let mut handle = file.open_stream(key("/a"));
            let mut buf = [0];
            file.read_next(&mut handle, &mut buf);
            buf[0]
        };
        assert_eq!(first(&mut home), 1);
        file.end_safe();
        assert_eq!(first(&mut home), 2);
    }

    #[test]
    fn ours_gives_back_what_was_written() {
        round_trip::<Ours<Vec<u8>>>(Vec::new());
    }

    #[test]
    fn rival_gives_back_what_was_written() {
        round_trip::<Rival<Vec<u8>>>(Vec::new());
    }

    #[test]
    fn raw_gives_back_what_was_written() {
        round_trip::<Raw<Vec<u8>>>(Vec::new());
    }

    #[test]
    fn compound_files_forget_what_was_removed() {
        fn check<C: Contestant<Base = Vec<u8>>>() {
            let mut file = C::create(Vec::new(), Version::V4, Shape::default());
            file.create_storage("/s");
            drop(file.create_stream(key("/s/a")));
            let mut handle = file.create_stream(key("/b"));
            file.set_len(&mut handle, 5_000);
            drop(handle);
            assert_eq!(file.walk(4), (4, 5_000));
            file.remove_stream(key("/b"));
            assert_eq!(file.walk(3), (3, 0));
            assert!(!file.exists(key("/b")) && file.exists(key("/s/a")));
        }
        check::<Ours<Vec<u8>>>();
        check::<Rival<Vec<u8>>>();
    }
}
