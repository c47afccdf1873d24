//! A disk that remembers every call since it was new, breaks on command, and tells what a power cut would leave.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use cfb_format::Storage;

/// What a disk writes whole or not at all.
pub(crate) const UNIT_BYTES: usize = 512;

/// One call that changed the disk, or made it safe.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Write {
        at: u64,
        bytes: Arc<[u8]>,
    },
    SetLen(u64),
    Sync,
    /// A sync that failed: the writes since the last good one may be lost for good.
    FailedSync,
}

impl Call {
    /// Does to `image` what the call did to the disk.
    pub(crate) fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(image, *at, bytes),
            Self::SetLen(len) => image.resize(index(*len), 0),
            Self::Sync | Self::FailedSync => {}
        }
    }
}

/// Writes `bytes` into `image`, which grows where it has to.
pub(crate) fn put(image: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let at = index(at);
    if image.len() < at + bytes.len() {
        image.resize(at + bytes.len(), 0);
    }
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("the disks of the tests fit in memory")
}

/// What the disk says when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No space is left.
    Full,
    /// The device does not answer.
    Broken,
}

impl Failure {
    fn error(self) -> io::Error {
        match self {
            Self::Full => io::Error::new(io::ErrorKind::StorageFull, "no space left on the disk"),
            Self::Broken => io::Error::other("the disk does not answer"),
        }
    }

    pub(crate) fn is(self, error: &io::Error) -> bool {
        error.kind() == self.error().kind()
    }
}

/// How much of a write that fails is on the disk all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The first half, in whole units.
    Half,
    All,
}

/// The call that fails: counted from 0 over writes, changes of the length and syncs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) call: usize,
    /// All later calls fail too.
    pub(crate) forever: bool,
    pub(crate) failure: Failure,
    pub(crate) effect: Effect,
}

/// Clones are the same disk.
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    now: Vec<u8>,
    log: Vec<Call>,
    calls: usize,
    fault: Option<Fault>,
    failed: usize,
    /// Calls in the log when a write to the first byte was last tried.
    header_tried: Option<usize>,
    reads: usize,
    /// The read that fails.
    bad_read: Option<usize>,
}

impl SimDisk {
    /// A disk on which `image` is safe.
    pub(crate) fn new(image: Vec<u8>) -> Self {
        let inner = Inner { now: image, ..Inner::default() };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nothing panics under the lock")
    }

    /// What a reader of the disk sees now.
    pub(crate) fn image(&self) -> Vec<u8> {
        self.inner().now.clone()
    }

    /// The calls that had an effect, so far.
    pub(crate) fn log(&self) -> Vec<Call> {
        self.inner().log.clone()
    }

    pub(crate) fn log_len(&self) -> usize {
        self.inner().log.len()
    }

    /// Calls that were tried, so far.
    pub(crate) fn calls(&self) -> usize {
        self.inner().calls
    }

    /// Calls that failed, so far.
    pub(crate) fn failed(&self) -> usize {
        self.inner().failed
    }

    /// Calls in the log when a write to the first byte was last tried.
    pub(crate) fn header_tried(&self) -> Option<usize> {
        self.inner().header_tried
    }

    pub(crate) fn break_at(&self, fault: Fault) {
        self.inner().fault = Some(fault);
    }

    /// Reads so far.
    pub(crate) fn reads(&self) -> usize {
        self.inner().reads
    }

    /// Lets one read fail, counted as [`reads`](Self::reads) counts them.
    pub(crate) fn break_read(&self, read: usize) {
        self.inner().bad_read = Some(read);
    }

    pub(crate) fn heal(&self) {
        self.inner().fault = None;
    }
}

impl Inner {
    /// Counts a call, and gives the fault if this one is to fail.
    fn count(&mut self) -> Option<Fault> {
        let call = self.calls;
        self.calls += 1;
        let hit = |fault: &Fault| call == fault.call || fault.forever && call > fault.call;
        let fault = self.fault.filter(hit);
        self.failed += usize::from(fault.is_some());
        fault
    }

    fn change(&mut self, call: Call) {
        call.apply(&mut self.now);
        self.log.push(call);
    }
}

impl Storage for SimDisk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.inner();
        let read = inner.reads;
        inner.reads += 1;
        if inner.bad_read == Some(read) {
            inner.failed += 1;
            return Err(Failure::Broken.error());
        }
        let from = index(offset).min(inner.now.len());
        let count = buf.len().min(inner.now.len() - from);
        buf[..count].copy_from_slice(&inner.now[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut inner = self.inner();
        let fault = inner.count();
        if offset == 0 {
            inner.header_tried = Some(inner.log.len());
        }
        let kept = match fault.map(|fault| fault.effect) {
            None | Some(Effect::All) => buf.len(),
            Some(Effect::Nothing) => 0,
            Some(Effect::Half) => buf.len() / 2 / UNIT_BYTES * UNIT_BYTES,
        };
        if kept > 0 {
            inner.change(Call::Write { at: offset, bytes: buf[..kept].into() });
        }
        fault.map_or(Ok(()), |fault| Err(fault.failure.error()))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        let fault = inner.count();
        if fault.is_none_or(|fault| fault.effect == Effect::All) {
            inner.change(Call::SetLen(len));
        }
        fault.map_or(Ok(()), |fault| Err(fault.failure.error()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.inner();
        let fault = inner.count();
        let works = fault.is_none_or(|fault| fault.effect == Effect::All);
        inner.change(if works { Call::Sync } else { Call::FailedSync });
        fault.map_or(Ok(()), |fault| Err(fault.failure.error()))
    }
}
