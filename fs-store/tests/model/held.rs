//! Readers and snapshots that are held over changes: they see what was.

use std::io::{Read, Seek, SeekFrom};

use fs_store::{Reader, Snapshot};

use super::list::{Asked, compare};
use super::ops::{Entry, Raw, State};

/// What is held.
#[derive(Default)]
pub(crate) struct Held {
    readers: Vec<(Reader, Entry)>,
    snapshots: Vec<(Snapshot, State)>,
}

impl Held {
    pub(crate) fn hold_reader(&mut self, reader: Reader, entry: Entry) {
        if self.readers.len() >= 6 {
            self.readers.remove(0);
        }
        self.readers.push((reader, entry));
    }

    pub(crate) fn hold_snapshot(&mut self, snapshot: Snapshot, state: State) {
        if self.snapshots.len() >= 3 {
            self.snapshots.remove(0);
        }
        self.snapshots.push((snapshot, state));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.snapshots.is_empty()
    }

    /// Lets go of one.
    pub(crate) fn drop_one(&mut self, which: u8) {
        let which = usize::from(which);
        if which % 2 == 0 && !self.readers.is_empty() {
            self.readers.remove(which / 2 % self.readers.len());
        } else if !self.snapshots.is_empty() {
            self.snapshots.remove(which / 2 % self.snapshots.len());
        }
    }

    pub(crate) fn drop_all(&mut self) {
        self.readers.clear();
        self.snapshots.clear();
    }

    /// Reads a part with a held reader: by position, or as a stream.
    pub(crate) fn read(&mut self, Raw([_, which, a, b, flags, c]): Raw, what: &str) {
        if self.readers.is_empty() {
            return;
        }
        let index = usize::from(which) % self.readers.len();
        let (reader, entry) = &mut self.readers[index];
        let value = &entry.value[..];
        assert_eq!(reader.len(), value.len() as u64, "{what}");
        entry.expect_stat(&reader.stat(), what);
        let start = value.len() * usize::from(a) / 250;
        let want = if c % 4 == 0 { value.len() } else { 1 + usize::from(b) * usize::from(c) };
        let (from, end) = (start.min(value.len()), (start + want).min(value.len()));
        let there = &value[from..end];
        let mut buf = vec![0xA5; want];
        if flags & 1 == 0 {
            let count = reader.read_at(&mut buf, start as u64).expect("it is whole");
            assert!(buf[..count] == *there, "{what}: {count} bytes from {start} of a held reader");
        } else {
            reader.seek(SeekFrom::Start(start as u64)).expect("any position will do");
            let mut got = Vec::new();
            Read::take(&mut *reader, want as u64).read_to_end(&mut got).expect("it is whole");
            assert!(got == there, "{what}: streamed from {start} of a held reader");
        }
    }

    /// Looks at a held snapshot.
    pub(crate) fn look(&self, raw: Raw, key: &[u8], what: &str) {
        if self.snapshots.is_empty() {
            return;
        }
        let (snapshot, state) = &self.snapshots[usize::from(raw.0[5]) % self.snapshots.len()];
        assert_eq!(snapshot.len(), state.len() as u64, "{what}");
        let asked = Asked::pick(raw);
        let items: Result<Vec<_>, _> =
            snapshot.list(&asked.options()).expect("it is whole").collect();
        compare(&asked, state, &items.expect("it is whole"), what);
        // Its own keys, and one that it may not have.
        let own = state.keys().nth(usize::from(raw.0[2]) % state.len().max(1));
        for key in own.map(|key| &key[..]).into_iter().chain([key]) {
            let found = snapshot.get(key).expect("it is whole");
            let entry = state.get(key);
            assert!(found.as_deref() == entry.map(|entry| &entry.value[..]), "{what}: a snapshot");
            let stat = snapshot.stat(key).expect("it is whole");
            assert_eq!(stat.is_some(), entry.is_some(), "{what}");
            if let (Some(stat), Some(entry)) = (stat, entry) {
                entry.expect_stat(&stat, what);
                let mut reader = snapshot.reader(key).expect("it is whole").expect("it is there");
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).expect("it is whole");
                assert!(bytes == **entry.value, "{what}: a reader of a snapshot");
            }
        }
    }

    /// All that is held, whole.
    pub(crate) fn check(&mut self, what: &str) {
        for (reader, entry) in &mut self.readers {
            let mut buf = vec![0; entry.value.len()];
            reader.read_exact_at(&mut buf, 0).expect("it is whole");
            assert!(buf == **entry.value, "{what}: a held reader");
        }
        for (snapshot, state) in &self.snapshots {
            for (key, entry) in state {
                let found = snapshot.get(key).expect("it is whole");
                assert!(found.as_deref() == Some(&entry.value[..]), "{what}: a held snapshot");
            }
        }
    }
}
