//! What the tests of the store share: a disk that remembers and forgets, and a
//! small source of numbers.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

use fs_store::{Disk, DiskFile, MemDisk};

/// Numbers that are the same in every run.
#[derive(Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Bytes that are other ones for each seed.
pub(crate) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng(seed);
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend_from_slice(&rng.next().to_le_bytes());
    }
    out.truncate(len);
    out
}

/// A call that changes a disk.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Create(String),
    Write(String, u64, Vec<u8>),
    SetLen(String, u64),
    Sync(String),
    SyncNames,
}

/// When calls fail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fails {
    /// The changing call with this number.
    pub(crate) at: Option<usize>,
    /// All after it too.
    pub(crate) forever: bool,
    /// For want of space.
    pub(crate) is_full: bool,
    /// Files cannot become longer; all else goes well.
    pub(crate) growth_only: bool,
}

#[derive(Default)]
struct Log {
    calls: Vec<Call>,
    tried: usize,
    fails: Fails,
    read: usize,
    failing_read: Option<usize>,
}

/// A disk in memory that remembers every call, and can be made to fail.
#[derive(Clone, Default)]
pub(crate) struct LogDisk {
    memory: MemDisk,
    log: Arc<Mutex<Log>>,
}

impl LogDisk {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A disk that has files already.
    pub(crate) fn on(memory: MemDisk) -> Self {
        Self { memory, ..Self::default() }
    }

    pub(crate) fn fail(&self, fails: Fails) {
        self.log.lock().unwrap().fails = fails;
    }

    /// The read with this number fails, counted from now on.
    pub(crate) fn fail_read(&self, at: Option<usize>) {
        let mut log = self.log.lock().unwrap();
        (log.read, log.failing_read) = (0, at);
    }

    /// How many reads were made since that was said.
    pub(crate) fn reads(&self) -> usize {
        self.log.lock().unwrap().read
    }

    fn note_read(&self) -> io::Result<()> {
        let mut log = self.log.lock().unwrap();
        log.read += 1;
        if log.failing_read == Some(log.read - 1) {
            return Err(io::ErrorKind::Other.into());
        }
        Ok(())
    }

    /// How many changing calls were made, those that failed included.
    pub(crate) fn tried(&self) -> usize {
        self.log.lock().unwrap().tried
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.log.lock().unwrap().calls.clone()
    }

    pub(crate) fn calls_count(&self) -> usize {
        self.log.lock().unwrap().calls.len()
    }

    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        self.memory.files()
    }

    fn note(&self, call: Call) -> io::Result<()> {
        let mut log = self.log.lock().unwrap();
        let number = log.tried;
        log.tried += 1;
        if let Some(at) = log.fails.at
            && (number == at || (log.fails.forever && number > at))
        {
            let needs_space = match call {
                Call::Write(..) => !log.fails.growth_only,
                Call::SetLen(..) | Call::Create(_) => true,
                Call::Sync(_) | Call::SyncNames => false,
            };
            if !log.fails.is_full || needs_space {
                let kind = if log.fails.is_full {
                    io::ErrorKind::StorageFull
                } else {
                    io::ErrorKind::Other
                };
                return Err(kind.into());
            }
        }
        log.calls.push(call);
        Ok(())
    }
}

struct LogFile {
    name: String,
    disk: LogDisk,
    file: Arc<dyn DiskFile>,
}

impl Disk for LogDisk {
    fn open(&self, name: &str, create: bool, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        if create {
            self.note(Call::Create(name.to_owned()))?;
        }
        let file = self.memory.open(name, create, write)?;
        Ok(Arc::new(LogFile { name: name.to_owned(), disk: self.clone(), file }))
    }

    fn sync(&self) -> io::Result<()> {
        self.note(Call::SyncNames)
    }
}

impl DiskFile for LogFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.note_read()?;
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.disk.note(Call::Write(self.name.clone(), offset, bytes))?;
        self.file.write_at(pieces, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // Nothing stands in the way of a file that becomes shorter.
        if !self.disk.log.lock().unwrap().fails.growth_only || len > self.file.len()? {
            self.disk.note(Call::SetLen(self.name.clone(), len))?;
        }
        self.file.set_len(len)
    }

    fn punch(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.note(Call::Sync(self.name.clone()))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}

/// What a disk has after some calls: on the medium for sure, and perhaps.
#[derive(Clone, Default)]
pub(crate) struct Medium {
    sure: HashMap<String, Vec<u8>>,
    perhaps: Vec<Call>,
    new_names: Vec<String>,
}

/// What becomes of a sector that was being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    AsBefore,
    /// All of its 512 bytes are garbage, also those that were not being written.
    Destroyed,
}

fn apply(files: &mut HashMap<String, Vec<u8>>, call: &Call, fate: &mut dyn FnMut() -> Fate) {
    match call {
        Call::Create(name) => {
            files.entry(name.clone()).or_default();
        }
        Call::Write(name, offset, bytes) => {
            let Some(file) = files.get_mut(name) else { return };
            let offset = usize::try_from(*offset).unwrap();
            // A medium writes sectors, each whole or not.
            let mut at = 0;
            while at < bytes.len() {
                let end = ((offset + at) / 512 + 1) * 512 - offset;
                let end = end.min(bytes.len());
                let fate = fate();
                if fate != Fate::AsBefore && file.len() < offset + end {
                    file.resize(offset + end, 0);
                }
                match fate {
                    Fate::Written => {
                        file[offset + at..offset + end].copy_from_slice(&bytes[at..end]);
                    }
                    Fate::AsBefore => {}
                    Fate::Destroyed => {
                        let first = (offset + at) / 512 * 512;
                        let last = (first + 512).min(file.len());
                        file[first..last].fill(0xD5);
                    }
                }
                at = end;
            }
        }
        Call::SetLen(name, len) => {
            if let Some(file) = files.get_mut(name) {
                file.resize(usize::try_from(*len).unwrap(), 0);
            }
        }
        Call::Sync(_) | Call::SyncNames => {}
    }
}

impl Medium {
    /// One more call.
    pub(crate) fn call(&mut self, call: &Call) {
        match call {
            Call::Sync(name) => {
                let is_of = |call: &Call| match call {
                    Call::Write(file, ..) | Call::SetLen(file, _) => file == name,
                    _ => false,
                };
                let (of, others) = std::mem::take(&mut self.perhaps).into_iter().partition(is_of);
                self.perhaps = others;
                let of: Vec<Call> = of;
                for call in of {
                    apply(&mut self.sure, &call, &mut || Fate::Written);
                }
            }
            Call::SyncNames => self.new_names.clear(),
            Call::Create(name) => {
                self.new_names.push(name.clone());
                apply(&mut self.sure, call, &mut || Fate::Written);
            }
            call => self.perhaps.push(call.clone()),
        }
    }

    /// How many calls are not on the medium for sure.
    pub(crate) fn perhaps_count(&self) -> usize {
        self.perhaps.len()
    }

    /// All of it: what is left if the process alone dies.
    pub(crate) fn whole(&self) -> MemDisk {
        let mut files = self.sure.clone();
        for call in &self.perhaps {
            apply(&mut files, call, &mut || Fate::Written);
        }
        MemDisk::from_files(files)
    }

    /// What may be left if the machine dies: any of what is not sure, in any
    /// order, torn anywhere.
    pub(crate) fn torn(&self, rng: &mut Rng) -> MemDisk {
        let mut files = self.sure.clone();
        let mut calls = self.perhaps.clone();
        // Mostly in order, as disks do; sometimes in any.
        if rng.chance(2) {
            for index in (1..calls.len()).rev() {
                let other = usize::try_from(rng.below(index as u64 + 1)).unwrap();
                calls.swap(index, other);
            }
        }
        let share = rng.below(5);
        for call in &calls {
            // A length is kept or not; writes lose calls, or sectors.
            let lost = rng.below(4) < share;
            let is_torn = rng.chance(3);
            if lost && !is_torn {
                continue;
            }
            apply(&mut files, call, &mut || match rng.below(8) {
                _ if !is_torn => Fate::Written,
                0..=3 => Fate::Written,
                4..=6 => Fate::AsBefore,
                _ => Fate::Destroyed,
            });
        }
        for name in &self.new_names {
            if rng.chance(2) {
                files.remove(name);
            }
        }
        MemDisk::from_files(files)
    }
}
