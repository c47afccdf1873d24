//! What a store is while it is open, and how a commit goes.
//!
//! 1. Values have been written to sectors before, or come along in the commit.
//! 2. What the keys have now is looked up, without a lock.
//! 3. Under the lock of commits, which is never held across a call to the disk:
//!    conditions are checked, the frame is added to the journal in memory, the
//!    keys get their new objects, and what those replace is given up.
//! 4. The frame is written, or flushed, as the caller wants it.
//!
//! Locks are taken in this order: fold, commit, then those of the journal, of
//! the space and of single keys, none of which is held while another is taken.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hashbrown::HashMap;
use imbl::OrdMap;

use crate::block_file::BlockFile;
use crate::data::ReadError;
use crate::disk::DiskFile;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::fold::FoldState;
use crate::frame::{Key, Op};
use crate::journal::Journal;
use crate::live::Live;
use crate::object::{Body, Object};
use crate::open::newest_generation;
use crate::options::Durability;
use crate::space::{Pin, Space};
use crate::tree::{Nodes, Root};

/// Changes of so many bytes may be in memory in any case.
const LEAST_WEIGHT: u64 = 1 << 20;

/// Keys that are not in the index yet, in order: their object, or that they have none.
pub(crate) type Overlay = OrdMap<Key, Option<Arc<Object>>>;

/// A store that is open.
pub(crate) struct Engine {
    pub(crate) space: Arc<Space>,
    pub(crate) nodes: Nodes,
    /// None if the store is open for reading only.
    journal: Option<Journal>,
    live: Live,
    root: RwLock<Root>,
    /// The generation of `root`, for a look without its lock.
    generation: AtomicU64,
    commit: Mutex<Commit>,
    pub(crate) fold: Mutex<FoldState>,
    pub(crate) durability: Durability,
    pub(crate) segment_limit: u64,
    pub(crate) salt: AtomicU64,
    /// Holds the lock on the store.
    pub(crate) _lock: Option<Arc<dyn DiskFile>>,
}

/// What commits change, and nobody else.
pub(crate) struct Commit {
    /// Changes since the last rotation of the journal, but for `recent`.
    pub(crate) active: Overlay,
    /// Changes that a fold is bringing into the index.
    pub(crate) frozen: Overlay,
    /// The last changes, not yet in order: they are put there when somebody
    /// wants to see it.
    pub(crate) recent: Vec<(Key, Option<Arc<Object>>)>,
    pub(crate) counts: Counts,
    /// Memory that the changes since the last rotation take, in bytes, roughly.
    pub(crate) weight: u64,
}

/// How many objects there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

impl Counts {
    /// A key that had `old` has `new`.
    pub(crate) fn replace(&mut self, old: Option<&Object>, new: Option<&Object>) {
        if let Some(old) = old {
            self.objects -= 1;
            self.bytes -= old.len;
        }
        if let Some(new) = new {
            self.objects += 1;
            self.bytes += new.len;
        }
    }
}

impl Commit {
    /// Puts the last changes in order.
    pub(crate) fn sort_recent(&mut self) {
        for (key, object) in self.recent.drain(..) {
            self.active.insert(key, object);
        }
    }
}

/// When a step may be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    Any,
    Absent,
    Present,
    Version(u64),
}

/// A value that is ready to be put.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) len: u64,
    pub(crate) crc: u32,
    pub(crate) body: Body,
    pub(crate) metadata: Bytes,
}

/// One step of a commit.
#[derive(Debug)]
pub(crate) enum Step {
    Put { key: Key, draft: Draft, condition: Condition },
    Delete { key: Key, condition: Condition },
    Rename { from: Key, to: Key, condition: Condition },
}

impl Step {
    fn keys(&self) -> impl Iterator<Item = &Key> {
        let (first, second) = match self {
            Self::Put { key, .. } | Self::Delete { key, .. } => (key, None),
            Self::Rename { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

/// What a commit has done.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Its number; 0 if there was nothing to do.
    pub(crate) seq: u64,
    /// The object that each step has put or deleted.
    pub(crate) objects: Vec<Option<Arc<Object>>>,
}

/// A state of the whole store, for those who read much of it.
pub(crate) struct View {
    pub(crate) root: Root,
    pub(crate) frozen: Overlay,
    pub(crate) active: Overlay,
    pub(crate) counts: Counts,
    pub(crate) pin: Pin,
}

/// A commit under way: what its keys have after the steps so far.
struct Plan {
    payload: Vec<u8>,
    changes: Vec<(Key, Option<Arc<Object>>)>,
    given_up: Vec<Extent>,
    settled: Vec<Extent>,
    counts: Counts,
    objects: Vec<Option<Arc<Object>>>,
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "all that a store consists of, in one place")]
    pub(crate) fn new(
        space: Arc<Space>,
        cache_bytes: u64,
        journal: Option<Journal>,
        root: Root,
        counts: Counts,
        fold: FoldState,
        durability: Durability,
        segment_limit: u64,
        lock: Option<Arc<dyn DiskFile>>,
    ) -> Self {
        /// Memory that a kept entry of the index takes, roughly.
        const ENTRY_BYTES: u64 = 300;
        let entries = usize::try_from(cache_bytes / 2 / ENTRY_BYTES).unwrap_or(1 << 20);
        Self {
            nodes: Nodes::new(Arc::clone(&space), cache_bytes / 2),
            space,
            journal,
            live: Live::new(entries),
            root: RwLock::new(root),
            generation: AtomicU64::new(root.generation),
            commit: Mutex::new(Commit {
                active: Overlay::new(),
                frozen: Overlay::new(),
                recent: Vec::new(),
                counts,
                weight: 0,
            }),
            fold: Mutex::new(fold),
            durability,
            segment_limit,
            salt: AtomicU64::new(now_nanos()),
            _lock: lock,
        }
    }

    // A panic under this lock is one of our own assertions; nothing is half done then.
    pub(crate) fn lock_commit(&self) -> MutexGuard<'_, Commit> {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// The journal.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`].
    pub(crate) fn journal(&self) -> Result<&Journal> {
        self.journal.as_ref().ok_or(Error::ReadOnly)
    }

    /// The files of the store.
    pub(crate) fn files(&self) -> Arc<[Arc<BlockFile>]> {
        self.space.files()
    }

    pub(crate) fn root(&self) -> Root {
        *self.root.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the new index. The caller holds the lock of commits.
    pub(crate) fn set_root(&self, root: Root) {
        *self.root.write().unwrap_or_else(PoisonError::into_inner) = root;
        self.generation.store(root.generation, Ordering::Release);
    }

    /// What a store that is open for reading only takes for damage of the index may
    /// be what its writer has put there since: then it has named another one.
    pub(crate) fn explain(&self, error: Error) -> Error {
        if self.journal.is_some() || !matches!(error, Error::Damaged { .. }) {
            return error;
        }
        let state = self.lock_fold();
        match newest_generation(&self.files()[0]) {
            Some(newest) if newest != state.superblock.generation => Error::ChangedUnderneath,
            _ => error,
        }
    }

    /// Makes all commits so far durable.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let journal = self.journal()?;
        journal.flush(journal.seq())
    }

    // ------------------------------------------------------------ reading

    /// What a key has now.
    pub(crate) fn lookup(&self, key: &[u8]) -> Result<Option<Arc<Object>>> {
        let (object, generation) = self.find(key)?;
        if let (Some(object), Some(generation)) = (&object, generation) {
            self.live.remember(key, object, || self.generation() == generation);
        }
        Ok(object)
    }

    /// What a key has now, and the generation of the index if that says so.
    fn find(&self, key: &[u8]) -> Result<(Option<Arc<Object>>, Option<u64>)> {
        loop {
            if let Some(known) = self.live.get(key) {
                return Ok((known, None));
            }
            let root = self.root();
            let found = self.nodes.find(&root, key);
            // If a fold came between, the nodes may have been given up, and the
            // key may have come in.
            if self.generation() != root.generation {
                continue;
            }
            return Ok((found?.map(Arc::new), Some(root.generation)));
        }
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Reads an object of which the sectors may be given up meanwhile; if they were,
    /// looks it up and reads again. `read` gets the object.
    pub(crate) fn with_object<T>(
        &self,
        key: &[u8],
        mut read: impl FnMut(&Object) -> Result<T, ReadError>,
    ) -> Result<Option<T>> {
        let began = self.space.now();
        let Some(object) = self.lookup(key)? else { return Ok(None) };
        let result = read(&object);
        if matches!(object.body, Body::Inline(_)) || self.space.is_undisturbed(began) {
            return result.map(Some).map_err(|error| error.of(key));
        }
        // Now with a pin, which costs more.
        let _pin = self.space.pin();
        let Some(object) = self.lookup(key)? else { return Ok(None) };
        read(&object).map(Some).map_err(|error| error.of(key))
    }

    /// The state of now, kept until it is dropped.
    pub(crate) fn view(&self) -> View {
        let mut commit = self.lock_commit();
        commit.sort_recent();
        View {
            root: self.root(),
            frozen: commit.frozen.clone(),
            active: commit.active.clone(),
            counts: commit.counts,
            pin: self.space.pin(),
        }
    }

    // ------------------------------------------------------------ commits

    /// Does all steps, or none.
    ///
    /// # Errors
    ///
    /// A condition that does not hold, [`Error::Full`], [`Error::Broken`] and those
    /// of the disk. The sectors of drafts are free again unless the steps were done.
    pub(crate) fn commit(&self, steps: &[Step], durability: Durability) -> Result<Committed> {
        let result = self.commit_steps(steps);
        let committed = match result {
            Ok(committed) => committed,
            Err(error) => {
                let drafts = steps.iter().filter_map(|step| match step {
                    Step::Put { draft, .. } => Some(&draft.body),
                    Step::Delete { .. } | Step::Rename { .. } => None,
                });
                self.space.release(drafts.flat_map(Body::extents));
                return Err(error);
            }
        };
        if committed.seq > 0 {
            let journal = self.journal()?;
            match durability {
                Durability::Buffered => journal.write_out(committed.seq)?,
                Durability::Group | Durability::Sync => journal.flush(committed.seq)?,
            }
        }
        Ok(committed)
    }

    /// Whether a fold is due for the memory that the last changes take.
    pub(crate) fn is_heavy(&self, commit: &Commit) -> bool {
        commit.weight > self.segment_limit.max(LEAST_WEIGHT)
    }

    fn commit_steps(&self, steps: &[Step]) -> Result<Committed> {
        let journal = self.journal()?;
        journal.check()?;
        loop {
            // Without the lock, as it may take the disk.
            let generation = self.generation();
            let mut keys: Vec<&Key> = steps.iter().flat_map(Step::keys).collect();
            // In the order of the index, which has neighbours in one node.
            keys.sort_unstable();
            keys.dedup();
            let mut found = HashMap::with_capacity(keys.len());
            for key in keys {
                found.insert(Arc::clone(key), self.find(key)?.0);
            }
            let mut commit = self.lock_commit();
            let mut current = |key: &Key| match self.live.get(key) {
                Some(known) => Some(known),
                None if self.generation() == generation => found.get(key).cloned(),
                None => None,
            };
            let version = journal.seq() + 1;
            let Some(plan) = plan(steps, version, commit.counts, &mut current)? else { continue };
            if plan.changes.is_empty() {
                return Ok(Committed { seq: 0, objects: plan.objects });
            }
            if !journal.has_room(plan.payload.len()) || self.is_heavy(&commit) {
                drop(commit);
                if steps.iter().any(|step| matches!(step, Step::Put { .. })) {
                    self.space.keep_reserve(&|| self.flush_all())?;
                }
                self.make_room(plan.payload.len())?;
                continue;
            }
            let seq = journal.append(&plan.payload);
            assert_eq!(seq, version, "commits are numbered under their lock");
            commit.counts = plan.counts;
            commit.weight += weight_of(&plan.changes);
            for (key, object) in &plan.changes {
                self.live.set(Arc::clone(key), object.clone());
            }
            commit.recent.extend(plan.changes);
            self.space.settle(plan.settled);
            self.space.give_up(plan.given_up, seq);
            self.space.tick();
            return Ok(Committed { seq, objects: plan.objects });
        }
    }
}

/// Memory that changes take until they are folded, in bytes, roughly.
fn weight_of(changes: &[(Key, Option<Arc<Object>>)]) -> u64 {
    /// The object, its place, and its slots in the live map and the overlay.
    const CHANGE_BYTES: usize = 400;
    let bytes = changes.iter().map(|(key, object)| {
        let body = object.as_ref().map(|object| match &object.body {
            Body::Inline(bytes) => bytes.len(),
            Body::Sectors(_) => 0,
        });
        CHANGE_BYTES + key.len() + body.unwrap_or(0)
    });
    bytes.sum::<usize>() as u64
}

/// Now, in nanoseconds since 1970.
pub(crate) fn now_nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// What the steps do. None if what a key has now is not known.
fn plan(
    steps: &[Step],
    version: u64,
    counts: Counts,
    current: &mut dyn FnMut(&Key) -> Option<Option<Arc<Object>>>,
) -> Result<Option<Plan>> {
    let mut plan = Plan {
        payload: Vec::new(),
        changes: Vec::with_capacity(steps.len()),
        given_up: Vec::new(),
        settled: Vec::new(),
        counts,
        objects: Vec::with_capacity(steps.len()),
    };
    let mut changed: HashMap<Key, Option<Arc<Object>>> = HashMap::new();
    let is_batch = steps.len() > 1;
    let now = now_nanos();
    for step in steps {
        let mut present = |key: &Key| match changed.get(key) {
            Some(object) => Some(object.clone()),
            None => current(key),
        };
        let first = plan.changes.len();
        match step {
            Step::Put { key, draft, condition } => {
                let Some(old) = present(key) else { return Ok(None) };
                check(key, *condition, old.as_deref())?;
                let object = Arc::new(Object {
                    version,
                    created: old.as_ref().map_or(now, |old| old.created),
                    modified: now,
                    len: draft.len,
                    crc: draft.crc,
                    body: draft.body.clone(),
                    metadata: draft.metadata.clone(),
                });
                plan.settled.extend(object.extents());
                plan.put(key, &object, old.as_ref());
                plan.objects.push(Some(object));
            }
            Step::Delete { key, condition } => {
                let Some(old) = present(key) else { return Ok(None) };
                check(key, *condition, old.as_deref())?;
                if let Some(old) = &old {
                    Op::Delete(Arc::clone(key)).encode(&mut plan.payload);
                    plan.given_up.extend(old.extents());
                    plan.counts.replace(Some(old), None);
                    plan.changes.push((Arc::clone(key), None));
                }
                plan.objects.push(old);
            }
            Step::Rename { from, to, condition } => {
                let (Some(object), Some(old)) = (present(from), present(to)) else {
                    return Ok(None);
                };
                let object = object.ok_or_else(|| Error::NotFound { key: from.to_vec() })?;
                check(to, *condition, old.as_deref())?;
                if from != to {
                    Op::Delete(Arc::clone(from)).encode(&mut plan.payload);
                    plan.counts.replace(Some(&object), None);
                    plan.changes.push((Arc::clone(from), None));
                    let moved = Arc::new(Object { version, ..(*object).clone() });
                    plan.put(to, &moved, old.as_ref());
                }
                plan.objects.push(Some(object));
            }
        }
        if is_batch {
            changed.extend(plan.changes[first..].iter().cloned());
        }
    }
    Ok(Some(plan))
}

impl Plan {
    fn put(&mut self, key: &Key, object: &Arc<Object>, old: Option<&Arc<Object>>) {
        Op::Put(Arc::clone(key), Arc::clone(object)).encode(&mut self.payload);
        self.given_up.extend(old.iter().flat_map(|old| old.extents()));
        self.counts.replace(old.map(|old| &**old), Some(object));
        self.changes.push((Arc::clone(key), Some(Arc::clone(object))));
    }
}

fn check(key: &Key, condition: Condition, old: Option<&Object>) -> Result<()> {
    match (condition, old) {
        (Condition::Absent, Some(_)) => Err(Error::AlreadyExists { key: key.to_vec() }),
        (Condition::Present, None) => Err(Error::NotFound { key: key.to_vec() }),
        (Condition::Version(wanted), old) => {
            let found = old.map_or(0, |old| old.version);
            if found == wanted {
                Ok(())
            } else {
                Err(Error::Conflict { key: key.to_vec(), wanted, found })
            }
        }
        _ => Ok(()),
    }
}

impl View {
    /// Keeps for somebody else what the view keeps.
    pub(crate) fn pin_again(&self, space: &Arc<Space>) -> Pin {
        space.pin_again(&self.pin)
    }
}

impl Engine {
    /// Sectors of the journal, the spare segment included.
    pub(crate) fn journal_sectors(&self) -> u64 {
        let state = self.lock_fold();
        let current = self.journal.as_ref().map(|journal| journal.segment().0);
        let extents = state.segments.iter().copied().chain(state.spare).chain(current);
        extents.map(|extent| u64::from(extent.count)).sum()
    }

    /// Whether everything is in the index.
    pub(crate) fn is_folded(&self) -> bool {
        let commit = self.lock_commit();
        commit.recent.is_empty() && commit.active.is_empty() && commit.frozen.is_empty()
    }

    /// Gives the spare segment of the journal back.
    pub(crate) fn drop_spare(&self) {
        let mut state = self.lock_fold();
        let _commit = self.lock_commit();
        self.space.give_up(state.spare.take(), 0);
        self.space.tick();
    }

    /// 26 letters and digits: the time, and a number that counts on from a random one.
    pub(crate) fn unique_name(&self) -> [u8; 26] {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let count = self.salt.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut bits = u128::from(now_nanos()) << 64 | u128::from(count);
        let mut name = [0; 26];
        for digit in name.iter_mut().rev() {
            *digit = DIGITS[usize::try_from(bits & 31).expect("five bits")];
            bits >>= 5;
        }
        name
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(journal) = &self.journal
            && journal.check().is_ok()
        {
            // Whoever wants to know calls `close`. What was promised is in the journal.
            let _ = self.fold_all().and_then(|()| self.flush_all());
        }
    }
}
