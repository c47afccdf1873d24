//! The slow, obvious store: a `BTreeMap`. Every operation is done to both and all
//! that can be seen is compared.

mod held;
mod list;
mod ops;

use std::io::{Read, Write};
use std::rc::Rc;

use fs_store::{
    Batch, Error, ListOptions, MAX_KEY_BYTES, MemDisk, OpenOptions, PutOptions, Stat, Store,
};

use self::held::Held;
use self::list::{Asked, compare};
pub(crate) use self::ops::Raw;
use self::ops::{
    Change, Entry, NOW, Refusal, State, Wanted, durability, key, len, metadata, pattern,
    with_metadata,
};

/// Objects have no more bytes than this together.
const MOST_BYTES: usize = 8 << 20;

/// What kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) sector_bytes: u32,
    /// Whether the files may grow to a few megabytes only.
    pub(crate) is_limited: bool,
    /// Whether hardly anything is kept in memory.
    pub(crate) is_forgetful: bool,
}

impl Setup {
    const LIMIT: u64 = 6 << 20;

    fn options(self) -> OpenOptions {
        let options = OpenOptions::new()
            .create(true)
            .sector_bytes(self.sector_bytes)
            .journal_bytes(32 << 10)
            .block_file_bytes(4 << 20)
            .cache_bytes(if self.is_forgetful { 20_000 } else { 4 << 20 });
        if self.is_limited { options.max_bytes(Self::LIMIT) } else { options }
    }
}

/// Both stores.
pub(crate) struct Model {
    setup: Setup,
    disk: MemDisk,
    store: Store,
    reading: Option<Store>,
    state: State,
    held: Held,
    last_version: u64,
    count: u64,
    what: String,
}

impl Entry {
    pub(crate) fn expect_stat(&self, stat: &Stat, what: &str) {
        assert_eq!(stat.len, self.value.len() as u64, "{what}");
        assert_eq!(stat.checksum, self.crc, "{what}");
        assert_eq!(stat.metadata, self.metadata, "{what}");
        let numbers = (stat.version, stat.created, stat.modified);
        assert_eq!(numbers, (self.version, self.created, self.modified), "{what}");
    }
}

fn refusal_of(error: &Error) -> Option<Refusal> {
    Some(match error {
        Error::NotFound { key } => Refusal::NotFound(key.clone()),
        Error::AlreadyExists { key } => Refusal::AlreadyExists(key.clone()),
        Error::Conflict { key, wanted, found } => Refusal::Conflict(key.clone(), *wanted, *found),
        _ => return None,
    })
}

/// Gives a few bytes at a time, and fails where it should.
struct Slow<'a> {
    rest: &'a [u8],
    step: usize,
    fails: bool,
}

impl Read for Slow<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() && self.fails {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        let count = self.step.min(buf.len()).min(self.rest.len());
        let (now, rest) = self.rest.split_at(count);
        buf[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }
}

impl Model {
    /// Does all operations to a new store, and counts its sectors in the end.
    pub(crate) fn run(setup: Setup, ops: &[Raw]) {
        let disk = MemDisk::new();
        let store = setup.options().open_on(disk.clone()).expect("a new store");
        let mut model = Self {
            setup,
            disk,
            store,
            reading: None,
            state: State::new(),
            held: Held::default(),
            last_version: 0,
            count: 0,
            what: String::new(),
        };
        for &raw in ops {
            model.step(raw);
        }
        model.finish();
    }

    fn step(&mut self, raw: Raw) {
        let Raw([kind, which, other, size, flags, extra]) = raw;
        self.count += 1;
        self.what = format!("{:?}, operation {}, {raw:?}", self.setup, self.count);
        let what = self.what.clone();
        let (key, to) = (key(which), key(other));
        match kind % 32 {
            0..=3 => self
                .put(raw, &key, |store, key, value, options| store.put_with(key, value, options)),
            4 => self.put(raw, &key, |store, key, value, options| {
                let step = 1 + usize::from(extra) * 300;
                store.put_reader_with(key, Slow { rest: value, step, fails: false }, options)
            }),
            5 => self.put(raw, &key, |store, key, value, options| {
                let mut writer = store.writer_with(key, options)?;
                for piece in value.chunks(1 + usize::from(extra) * 300) {
                    writer.append(piece)?;
                }
                assert_eq!(writer.len(), value.len() as u64);
                writer.commit()
            }),
            6 => self.abandon(raw, &key),
            7 | 8 => {
                let wanted = Wanted::pick(extra, &key, &self.state);
                let options = options_of(wanted, flags);
                let was_there = self.state.contains_key(&key);
                let change = Change::Delete { key: key.clone(), wanted };
                let deleted = self.store.delete_with(&key, &options);
                if let Some(deleted) = self.judge(&[change], deleted) {
                    assert_eq!(deleted, was_there, "{what}");
                }
            }
            9 | 10 => {
                let wanted = Wanted::pick(extra, &to, &self.state);
                let options = options_of(wanted, flags);
                let change = Change::Rename { from: key.clone(), to: to.clone(), wanted };
                let renamed = self.store.rename_with(&key, &to, &options);
                self.judge(&[change], renamed);
            }
            11 => self.copy(&key, &to),
            12 => self.put_new(raw),
            13..=16 => self.batch(raw),
            17 | 18 => self.read(raw, &key),
            19 => {
                let reader = self.store.reader(&key).expect("it is whole");
                assert_eq!(reader.is_some(), self.state.contains_key(&key), "{what}");
                if let Some(reader) = reader {
                    self.held.hold_reader(reader, self.state[&key].clone());
                }
            }
            20 => self.held.read(raw, &what),
            21 => self.held.hold_snapshot(self.store.snapshot(), self.state.clone()),
            22 => self.held.look(raw, &key, &what),
            23 => self.held.drop_one(extra),
            24 | 25 => {
                let asked = Asked::pick(raw);
                let items: Result<Vec<_>, _> =
                    self.store.list(&asked.options()).expect("it is whole").collect();
                compare(&asked, &self.state, &items.expect("it is whole"), &what);
            }
            26 => match size % 4 {
                0 => self.expect_folded(self.store.trim()),
                1 => {
                    let report = self.store.verify(|_, _| {});
                    if let Ok(report) = &report {
                        assert!(report.is_sound(), "{what}: {:?}", report.findings);
                        assert_eq!(report.objects, self.state.len() as u64, "{what}");
                    }
                    self.expect_folded(report);
                }
                _ => self.store.sync().expect("memory does not fail"),
            },
            27 => self.misuse(&key),
            28 => self.reopen(extra % 2 == 0),
            29 => self.read_beside(extra),
            _ => {
                // Small values are what most stores have most of.
                let value = pattern(self.count, usize::from(size) * 3);
                let put = self.store.put(&key, &**value);
                let wanted = Wanted::Any;
                let change = Change::Put { key: key.clone(), value, metadata: Vec::new(), wanted };
                self.judge(&[change], put);
            }
        }
        self.check_key(&key);
        self.check_counts();
    }

    // ------------------------------------------------------------ changes

    /// Does the same changes to the model, if they were to be made, and sees to it
    /// that they were.
    fn judge<T>(&mut self, changes: &[Change], real: Result<T, Error>) -> Option<T> {
        let what = &self.what;
        let mut next = self.state.clone();
        let expected = changes.iter().try_for_each(|change| change.apply(&mut next));
        match (expected, real) {
            (Ok(()), Ok(result)) => {
                self.state = next;
                self.settle();
                Some(result)
            }
            (_, Err(Error::Full { .. })) if self.setup.is_limited => {
                let is_needed = changes.iter().all(Change::is_delete) && self.held.is_empty();
                assert!(!is_needed, "{what}: no space to delete: {:?}", self.store.usage());
                None
            }
            (Err(refusal), Err(error)) => {
                let found = refusal_of(&error);
                let is_same = match (&refusal, &found) {
                    // What a batch has put itself has a number that only the store knows.
                    (Refusal::Conflict(a, b, NOW), Some(Refusal::Conflict(c, d, _))) => {
                        (a, b) == (c, d)
                    }
                    _ => found.as_ref() == Some(&refusal),
                };
                assert!(is_same, "{what}: {error}, not {refusal:?}");
                None
            }
            (Ok(()), Err(error)) => panic!("{what}: {error}"),
            (Err(refusal), Ok(_)) => panic!("{what}: done, but {refusal:?}"),
        }
    }

    /// Asks the store for the versions and times that it alone knows, one of each
    /// for all that was changed.
    fn settle(&mut self) {
        let what = &self.what;
        let mut numbers = None;
        for (key, entry) in &mut self.state {
            if ![entry.version, entry.created, entry.modified].contains(&NOW) {
                continue;
            }
            let stat = self.store.stat(key).expect("it is whole").expect("it was put");
            let time = (entry.modified == NOW).then_some(stat.modified);
            let (version, first_time) = *numbers.get_or_insert((stat.version, time));
            assert_eq!(stat.version, version, "{what}: one commit, one version");
            assert!(first_time.is_none() || time.is_none() || first_time == time, "{what}");
            assert!(stat.version > self.last_version, "{what}: versions only rise");
            entry.version = version;
            if entry.modified == NOW {
                entry.modified = stat.modified;
            }
            if entry.created == NOW {
                assert_eq!(stat.created, stat.modified, "{what}: a new object");
                entry.created = stat.created;
            }
            entry.expect_stat(&stat, what);
        }
        self.last_version = numbers.map_or(self.last_version, |(version, _)| version);
    }

    fn value(&self, size: u8, extra: u8) -> Rc<Vec<u8>> {
        let all: usize = self.state.values().map(|entry| entry.value.len()).sum();
        let len = len(size, extra);
        let len = if all + len > MOST_BYTES { len % 3000 } else { len };
        pattern(self.count << 8 | u64::from(extra), len)
    }

    fn put(
        &mut self,
        Raw([_, _, other, size, flags, extra]): Raw,
        key: &[u8],
        put: impl FnOnce(&Store, &[u8], &[u8], &PutOptions) -> Result<Stat, Error>,
    ) {
        let value = self.value(size, extra);
        let metadata = metadata(other);
        let wanted = Wanted::pick(flags >> 3, key, &self.state);
        let options = with_metadata(options_of(wanted, flags), &metadata);
        let stat = put(&self.store, key, &value, &options);
        let change = Change::Put { key: key.to_vec(), value, metadata, wanted };
        if let Some(stat) = self.judge(&[change], stat) {
            self.state[key].expect_stat(&stat, &self.what);
        }
    }

    /// A writer that is dropped, or a reader that fails: nothing remains.
    fn abandon(&mut self, Raw([_, _, other, size, _, extra]): Raw, key: &[u8]) {
        let before = self.store.usage().expect("memory does not fail");
        let value = self.value(size, extra);
        let is_full = |error: &Error| self.setup.is_limited && matches!(error, Error::Full { .. });
        if other % 2 == 0 {
            let mut writer = self.store.writer(key).expect("any key will do");
            if let Err(error) = writer.write_all(&value) {
                assert!(self.setup.is_limited, "{}: {error}", self.what);
            }
        } else {
            let source = Slow { rest: &value, step: 5000, fails: true };
            let error = self.store.put_reader(key, source).expect_err("the reader fails");
            assert!(matches!(error, Error::Source(_)) || is_full(&error), "{}: {error}", self.what);
        }
        let after = self.store.usage().expect("memory does not fail");
        // What waits may have become free meanwhile, and the files may have grown.
        let used =
            |usage: &fs_store::Usage| usage.file_bytes - usage.free_bytes - usage.waiting_bytes;
        let heads = (after.files - before.files) * u64::from(self.setup.sector_bytes.max(4096));
        assert_eq!(used(&before) + heads, used(&after), "{}: sectors remain", self.what);
    }

    fn copy(&mut self, from: &[u8], to: &[u8]) {
        let copied = self.store.copy(from, to);
        let change = match self.state.get(from) {
            Some(entry) => Change::Put {
                key: to.to_vec(),
                value: Rc::clone(&entry.value),
                metadata: entry.metadata.clone(),
                wanted: Wanted::Any,
            },
            // Fails as a rename would.
            None => Change::Rename { from: from.to_vec(), to: to.to_vec(), wanted: Wanted::Any },
        };
        self.judge(&[change], copied);
    }

    fn put_new(&mut self, Raw([_, which, _, size, _, extra]): Raw) {
        let parent = [&b"a"[..], b"new", b"\xFF"][usize::from(which) % 3];
        let value = self.value(size, extra);
        match self.store.put_new(parent, &**value) {
            Ok((key, stat)) => {
                assert_eq!(key.len(), parent.len() + 27, "{}", self.what);
                assert!(key.starts_with(parent) && key[parent.len()] == b'/', "{}", self.what);
                let wanted = Wanted::Absent;
                let change = Change::Put { key: key.clone(), value, metadata: Vec::new(), wanted };
                self.judge(&[change], Ok(())).expect("it is a new key");
                self.state[&key].expect_stat(&stat, &self.what);
            }
            Err(error) => {
                let is_full = self.setup.is_limited && matches!(error, Error::Full { .. });
                assert!(is_full, "{}: {error}", self.what);
            }
        }
    }

    /// Up to eight changes at once; conditions that fail undo all.
    fn batch(&mut self, Raw([kind, which, other, size, flags, extra]): Raw) {
        let mut changes = Vec::new();
        let mut next = self.state.clone();
        for nth in 0..=extra % 8 {
            let turn = |byte: u8, by: u8| byte.wrapping_add(nth.wrapping_mul(by));
            let (from, to) = (key(turn(which, 37)), key(turn(other, 61)));
            let lucky = if flags & 0x80 == 0 { 15 } else { turn(extra, 29) };
            let change = match turn(kind, 5) % 8 {
                0 | 1 => Change::Delete { wanted: Wanted::pick(lucky, &from, &next), key: from },
                2 => Change::Rename { wanted: Wanted::pick(lucky, &to, &next), from, to },
                _ => Change::Put {
                    wanted: Wanted::pick(lucky, &from, &next),
                    key: from,
                    value: self.value(turn(size, 7) % 19, turn(extra, 11)),
                    metadata: metadata(turn(other, 3)),
                },
            };
            // Of most batches all changes can be made.
            let refused = change.apply(&mut next).is_err();
            if refused && flags & 0x80 == 0 {
                continue;
            }
            changes.push(change);
            if refused {
                break;
            }
        }
        let mut batch = Batch::new();
        for change in &changes {
            change.add_to(&mut batch);
        }
        assert_eq!(batch.len(), changes.len());
        let done = match durability(flags) {
            Some(durability) => self.store.commit_with(batch, durability),
            None => self.store.commit(batch),
        };
        self.judge(&changes, done);
    }

    /// What is not allowed is refused, and changes nothing.
    fn misuse(&mut self, key: &[u8]) {
        let long = vec![b'l'; MAX_KEY_BYTES + 1];
        for bad in [&b""[..], &long] {
            let bad_key = |error: Error| matches!(error, Error::Key { .. });
            assert!(self.store.put(bad, b"x").is_err_and(bad_key), "{}", self.what);
            assert!(self.store.delete(bad).is_err_and(bad_key), "{}", self.what);
            assert!(self.store.rename(key, bad).is_err_and(bad_key), "{}", self.what);
            assert!(self.store.writer(bad).is_err_and(bad_key), "{}", self.what);
            let mut batch = Batch::new();
            batch.put(key, vec![1; 100_000]).put(bad, b"x".to_vec());
            assert!(self.store.commit(batch).is_err_and(bad_key), "{}", self.what);
            assert!(self.store.get(bad).expect("it is whole").is_none(), "{}", self.what);
        }
        let options = PutOptions::new().metadata("m", vec![0; fs_store::MAX_METADATA_BYTES]);
        let put = self.store.put_with(key, b"x", &options);
        assert!(put.is_err_and(|error| matches!(error, Error::Metadata { .. })), "{}", self.what);
        assert!(self.store.get(b"never put").expect("it is whole").is_none(), "{}", self.what);
    }

    // ------------------------------------------------------------ looks

    fn read(&mut self, Raw([_, _, a, b, flags, c]): Raw, key: &[u8]) {
        let what = &self.what;
        let value = self.state.get(key).map(|entry| &entry.value[..]);
        let mut out = b"old".to_vec();
        let found = self.store.get_into(key, &mut out).expect("it is whole");
        assert_eq!(found, value.is_some(), "{what}");
        assert!(out == value.unwrap_or_default(), "{what}: get_into");
        let len = value.map_or(1000, <[u8]>::len);
        let start = len * usize::from(a) / 240;
        let end = if flags % 4 == 0 { len } else { start + usize::from(b) * usize::from(c) };
        let range = self.store.get_range(key, start as u64..end as u64).expect("it is whole");
        let clamp = |at: usize| at.min(len);
        let end = clamp(end);
        let wanted = value.map(|value| &value[clamp(start).min(end)..end]);
        assert!(range.as_deref() == wanted, "{what}: {start}..{end}");
        assert_eq!(self.store.contains(key).expect("it is whole"), value.is_some(), "{what}");
    }

    fn check_key(&self, key: &[u8]) {
        let what = &self.what;
        let entry = self.state.get(key);
        let found = self.store.get(key).expect("it is whole");
        assert!(found.as_deref() == entry.map(|entry| &entry.value[..]), "{what}: get");
        let stat = self.store.stat(key).expect("it is whole");
        assert_eq!(stat.is_some(), entry.is_some(), "{what}");
        if let (Some(entry), Some(stat)) = (entry, stat) {
            entry.expect_stat(&stat, what);
        }
    }

    fn check_counts(&self) {
        let usage = self.store.usage().expect("memory does not fail");
        assert_eq!(usage.objects, self.state.len() as u64, "{}", self.what);
        let bytes: usize = self.state.values().map(|entry| entry.value.len()).sum();
        assert_eq!(usage.object_bytes, bytes as u64, "{}", self.what);
        if self.setup.is_limited {
            assert!(usage.file_bytes <= Setup::LIMIT, "{}", self.what);
        }
    }

    fn check_all(&self, store: &Store) {
        let all = store.list(&ListOptions::new()).expect("it is whole");
        let mut wanted = self.state.iter();
        for item in all {
            let item = item.expect("it is whole");
            let (key, entry) = wanted.next().unwrap_or_else(|| panic!("{}: one more", self.what));
            assert!(item.key == key, "{}: a list", self.what);
            entry.expect_stat(&item.stat.expect("it was asked for"), &self.what);
            let found = store.get(key).expect("it is whole");
            assert!(found.as_deref() == Some(&entry.value[..]), "{}: a value", self.what);
        }
        assert_eq!(wanted.next().map(|(key, _)| key), None, "{}: one is missing", self.what);
    }

    /// A fold needs space, which it must find in the files: unless what others gave
    /// up is still being looked at.
    fn expect_folded<T>(&self, folded: Result<T, Error>) {
        if let Err(error) = folded {
            let is_full = self.setup.is_limited && matches!(error, Error::Full { .. });
            let usage = self.store.usage();
            assert!(is_full && !self.held.is_empty(), "{}: {error}, {usage:?}", self.what);
        }
    }

    // ------------------------------------------------------------ the whole

    fn reopen(&mut self, closes: bool) {
        self.held.check(&self.what);
        let again = self.setup.options().open_on(self.disk.clone());
        assert!(matches!(again, Err(Error::Locked)), "{}: opened twice", self.what);
        if closes {
            self.expect_folded(self.store.clone().close());
        }
        // A snapshot is the store; it keeps the lock.
        self.held.drop_all();
        let nowhere = OpenOptions::new().create(true).open_on(MemDisk::new()).expect("a new store");
        drop(std::mem::replace(&mut self.store, nowhere));
        let opened = self.setup.options().create(false).open_on(self.disk.clone());
        self.store = opened.unwrap_or_else(|error| panic!("{}: {error}", self.what));
        self.check_all(&self.store);
    }

    /// Another handle, for reading alone, sees all that was done before it looks.
    fn read_beside(&mut self, extra: u8) {
        let reading = if let Some(mut reading) = self.reading.take() {
            reading.refresh().expect("it is whole");
            reading
        } else {
            let options = self.setup.options().create(false).read_only(true);
            options.open_on(self.disk.clone()).expect("it is whole")
        };
        self.check_all(&reading);
        let usage = reading.usage().expect("memory does not fail");
        assert_eq!(usage.objects, self.state.len() as u64, "{}", self.what);
        let put = reading.put("a", b"x");
        assert!(matches!(put, Err(Error::ReadOnly)), "{}", self.what);
        let report = reading.verify(|_, _| {}).expect("it can be read");
        assert!(report.is_sound(), "{}: {:?}", self.what, report.findings);
        if extra.is_multiple_of(2) {
            self.reading = Some(reading);
        }
    }

    /// Everything is there, and every sector is accounted for; also when
    /// everything has been deleted.
    fn finish(mut self) {
        self.what = format!("{:?}, the end", self.setup);
        self.held.check(&self.what);
        self.held.drop_all();
        self.account();
        self.reopen(true);
        self.account();
        for key in self.state.keys() {
            assert!(self.store.delete(key).expect("there is space to delete"), "{}", self.what);
        }
        self.state.clear();
        self.account();
        let trimmed = self.store.trim();
        trimmed.unwrap_or_else(|error| panic!("{}: {error}", self.what));
        self.account();
        let value = pattern(1, 1 << 20);
        self.store.put("after all", &**value).expect("there is space again");
        assert!(self.store.get("after all").expect("it is whole").as_deref() == Some(&value[..]));
    }

    /// Sectors are free, or belong to something that is there.
    fn account(&self) {
        let what = &self.what;
        self.check_all(&self.store);
        self.check_counts();
        // Twice: what the fold of the first gives up is free at the second.
        for _ in 0..2 {
            self.store.sync().expect("memory does not fail");
            let report = self.store.verify(|_, _| {}).expect("it can be read");
            assert!(report.is_sound(), "{what}: {:?}", report.findings);
            assert_eq!(report.objects, self.state.len() as u64, "{what}");
        }
        let usage = self.store.usage().expect("memory does not fail");
        assert_eq!(usage.waiting_bytes, 0, "{what}: {usage:?}");
        let sector = u64::from(self.setup.sector_bytes);
        let sectors = |bytes: u64| bytes.next_multiple_of(sector);
        let mut objects = 0;
        let (mut entries, mut perhaps) = (0, 0);
        for (key, entry) in &self.state {
            let len = entry.value.len() as u64;
            entries += key.len() as u64 + 100;
            entries += entry.metadata.iter().map(|(_, value)| 20 + value.len() as u64).sum::<u64>();
            if len <= 512 {
                entries += len;
            } else if self.setup.is_limited && len <= 32 << 10 {
                // For want of space, what came along in the journal stays in the index.
                perhaps += sectors(len) + 2 * len;
            } else {
                objects += sectors(len);
                entries += if len <= 512 << 10 { len.div_ceil(16 << 10) * 4 } else { 0 };
                // In blocks of 1,023 checksums of 16 KiB each.
                objects += if len <= 512 << 10 { 0 } else { sectors(4096) };
            }
        }
        let heads = sectors(16 << 10) + (usage.files - 1) * sectors(4096);
        let used = usage.file_bytes - usage.free_bytes;
        let own = used.checked_sub(objects + usage.journal_bytes + heads);
        let own = own.unwrap_or_else(|| panic!("{what}: {usage:?} and {objects} of objects"));
        // A page of the map a file and its table; nodes that are less than half full here and there.
        let map = usage.files * sectors(32 << 10) + sectors(1000);
        let nodes = if entries == 0 { 0 } else { 3 + entries / 2000 };
        let most = map + nodes * sectors(12 << 10) + entries + perhaps;
        assert!(own <= most, "{what}: {own} bytes of its own, {most} at most, {usage:?}");
    }
}

/// Options with a condition and a durability.
fn options_of(wanted: Wanted, flags: u8) -> PutOptions {
    match durability(flags) {
        Some(durability) => wanted.options().durability(durability),
        None => wanted.options(),
    }
}
