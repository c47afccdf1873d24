//! Creating a store, and opening one: also after a crash.
//!
//! A superblock names the index and the free map of the last fold. The journal
//! says what came after it; what it names takes its sectors, and what it replaces
//! gives them back, in a free map that has seen neither. Whatever a crash left
//! unfinished is named by nothing, and so is free.
//!
//! Of the commits that were not known to be on the medium, those count whose
//! data is what it should be, up to the first one of which it is not. Then
//! everything is folded, so that nothing of this has to be done twice.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, IoSlice};
use std::sync::Arc;

use alloc_core::{FreeMap, SectorCount};

use crate::block_file::BlockFile;
use crate::data::{ReadError, check_all};
use crate::disk::{Disk, DiskFile};
use crate::engine::{Counts, Engine};
use crate::error::{Doing, Error, Result};
use crate::extent::Extent;
use crate::fold::{FoldState, least_segment_bytes};
use crate::frame::{Key, Op};
use crate::free_map::UsedMap;
use crate::journal::{Journal, Replay, replay};
use crate::layout::{
    BadSuperblock, FILE_MAGIC, JournalHead, LOCK_FILE, SLOT_BYTES, SLOTS, Superblock, VERSION,
    encode_file_header, file_name, reserved_sectors,
};
use crate::object::{Body, Object};
use crate::options::OpenOptions;
use crate::space::{Limits, Space};
use crate::store::Store;
use crate::tree::{Nodes, Root};

/// Opens or creates a store.
pub(crate) fn open(disk: Arc<dyn Disk>, options: &OpenOptions) -> Result<Store> {
    /// What its writer does meanwhile can look like damage to one who only reads,
    /// but not so often at the same place.
    const SAME: usize = 3;
    const MOST: usize = 20;
    if !options.read_only {
        return open_once(disk, options);
    }
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..MOST {
        match open_once(Arc::clone(&disk), options) {
            Err(error @ Error::Damaged { .. }) => {
                let text = error.to_string();
                if seen.iter().filter(|before| **before == text).count() + 1 >= SAME {
                    return Err(error);
                }
                seen.push(text);
            }
            opened => return opened,
        }
    }
    Err(Error::ChangedUnderneath)
}

fn open_once(disk: Arc<dyn Disk>, options: &OpenOptions) -> Result<Store> {
    let lock = if options.read_only { None } else { Some(lock(&*disk, options)?) };
    let first = match disk.open(&file_name(0), false, !options.read_only) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).doing("opening", &file_name(0), 0),
    };
    let superblock = match &first {
        Some(file) => read_superblock(&**file)?,
        None => None,
    };
    match (first, superblock) {
        (Some(_), Some(_)) if options.create_new => Err(Error::Exists),
        (Some(first), Some(superblock)) => {
            let engine = open_state(&disk, &first, &superblock, options, lock)?;
            Ok(Store::new(engine, disk, options.clone()))
        }
        // A file without a superblock: a crash while the store was being created.
        (first, _) if options.create || options.create_new => {
            let engine = create(&disk, first, options, lock)?;
            Ok(Store::new(engine, disk, options.clone()))
        }
        _ => Err(Error::NoStore),
    }
}

/// Takes the lock of the one who writes.
fn lock(disk: &dyn Disk, options: &OpenOptions) -> Result<Arc<dyn DiskFile>> {
    let may_create = options.create || options.create_new;
    let file = match disk.open(LOCK_FILE, false, true) {
        Err(error) if error.kind() == ErrorKind::NotFound && may_create => {
            match disk.open(LOCK_FILE, true, true) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    disk.open(LOCK_FILE, false, true)
                }
                made => made,
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::NoStore),
        opened => opened,
    };
    let file = file.doing("opening", LOCK_FILE, 0)?;
    if file.try_lock().doing("locking", LOCK_FILE, 0)? { Ok(file) } else { Err(Error::Locked) }
}

/// The newest superblock of which a copy is whole; none if there never was one.
fn read_superblock(file: &dyn DiskFile) -> Result<Option<Superblock>> {
    let name = file_name(0);
    let mut bytes = Vec::new();
    let len = usize::try_from(SLOTS * SLOT_BYTES).expect("small");
    file.read_onto(&mut bytes, len, 0).doing("reading", &name, 0)?;
    let slot = usize::try_from(SLOT_BYTES).expect("small");
    let mut newest: Option<Superblock> = None;
    let mut is_written = false;
    for bytes in bytes.chunks(slot) {
        is_written |= bytes.iter().any(|byte| *byte != 0);
        match Superblock::decode(bytes) {
            Ok(found) if newest.as_ref().is_none_or(|best| best.generation < found.generation) => {
                newest = Some(found);
            }
            Ok(_) | Err(BadSuperblock::NotOne) => {}
            Err(BadSuperblock::Version(found)) => {
                return Err(Error::Version { found, known: VERSION });
            }
        }
    }
    // Creating a store writes its superblock last; a long file had one.
    let had_one = file.len().doing("reading", &name, 0)? > SLOTS * SLOT_BYTES;
    if newest.is_none() && is_written && had_one {
        return Err(Error::damaged("the superblock", name, 0, "none of its copies is whole"));
    }
    Ok(newest)
}

/// The generation that the first block file has come to.
pub(crate) fn newest_generation(first: &BlockFile) -> Option<u64> {
    let mut bytes = Vec::new();
    let slot = usize::try_from(SLOT_BYTES).expect("small");
    first.read_onto(&mut bytes, slot * usize::try_from(SLOTS).expect("few"), 0).ok()?;
    let decoded = bytes.chunks(slot).filter_map(|bytes| Superblock::decode(bytes).ok());
    decoded.map(|superblock| superblock.generation).max()
}

fn session() -> u64 {
    RandomState::new().hash_one(crate::engine::now_nanos())
}

/// Makes a new store.
fn create(
    disk: &Arc<dyn Disk>,
    first: Option<Arc<dyn DiskFile>>,
    options: &OpenOptions,
    lock: Option<Arc<dyn DiskFile>>,
) -> Result<Engine> {
    let name = file_name(0);
    let sector_bytes = options.sector_bytes;
    let reserved = reserved_sectors(0, sector_bytes);
    let segment_sectors = least_segment_bytes(options.journal_bytes).div_ceil(sector_bytes.into());
    let segment_sectors = u32::try_from(segment_sectors).expect("small");
    let file_sectors =
        (options.block_file_bytes / u64::from(sector_bytes)).min(u64::from(u32::MAX - 1));
    let file_sectors = u32::try_from(file_sectors).expect("at most that");
    let total = reserved + segment_sectors;
    let len = u64::from(total) * u64::from(sector_bytes);
    if len > options.max_bytes {
        return Err(Error::Full { wanted: len, free: options.max_bytes, source: None });
    }
    let file = match first {
        Some(file) => file,
        None => disk.open(&name, true, true).doing("creating", &name, 0)?,
    };
    file.set_len(0).doing("creating", &name, 0)?;
    file.set_len(len).doing("creating", &name, 0)?;
    let segment = Extent { file: 0, start: reserved, count: segment_sectors };
    let zeros = vec![0; 64 << 10];
    for at in (u64::from(reserved) * u64::from(sector_bytes)..len).step_by(zeros.len()) {
        let count = usize::try_from(len - at).unwrap_or(zeros.len()).min(zeros.len());
        file.write_at(&[IoSlice::new(&zeros[..count])], at).doing("creating", &name, at)?;
    }
    let superblock = Superblock {
        sector_bytes,
        store_id: session(),
        generation: 1,
        journal: JournalHead { segment, epoch: 1, seq: 1 },
        root: None,
        levels: 0,
        map_table: None,
        files: 1,
        file_sectors,
        objects: 0,
        object_bytes: 0,
    };
    // Its names must be there before it is.
    file.sync().doing("creating", &name, 0)?;
    disk.sync().doing("creating", "", 0)?;
    let mut used = UsedMap::new();
    used.insert(&[Extent { file: 0, start: 0, count: reserved }, segment]);
    let files = vec![Arc::new(BlockFile::new(name, file))];
    let maps = vec![used.free_map(0, total)];
    let limits =
        Limits { store_id: superblock.store_id, file_sectors, total_bytes: options.max_bytes };
    let space = Arc::new(Space::new(Arc::clone(disk), files, maps, sector_bytes, limits));
    let counts = Counts::default();
    let engine = assemble(space, superblock.clone(), 1, used, options, lock, counts);
    engine.write_superblock(&superblock)?;
    Ok(engine)
}

/// Puts an engine together that has nothing in its journal, and commits from the
/// number `next` on.
fn assemble(
    space: Arc<Space>,
    superblock: Superblock,
    next: u64,
    used: UsedMap,
    options: &OpenOptions,
    lock: Option<Arc<dyn DiskFile>>,
    counts: Counts,
) -> Engine {
    let root = Root { blob: superblock.root, levels: superblock.levels, generation: 1 };
    let head = JournalHead { seq: next, ..superblock.journal };
    let journal = (!options.read_only).then(|| Journal::new(Arc::clone(&space), head, session()));
    let fold =
        FoldState { superblock, used, segments: Vec::new(), spare: None, begun: None, last: None };
    let (cache, durability) = (options.cache_bytes, options.durability);
    let limit = options.journal_bytes;
    let engine = Engine::new(space, cache, journal, root, counts, fold, durability, limit, lock);
    let reserve = engine.reserve_sectors(&engine.lock_fold().superblock);
    engine.space.set_reserve(reserve);
    engine
}

/// The block files that are there, with their lengths in sectors.
fn open_files(
    disk: &dyn Disk,
    first: &Arc<dyn DiskFile>,
    superblock: &Superblock,
    read_only: bool,
) -> Result<Vec<(Arc<BlockFile>, u32)>> {
    let mut files = Vec::new();
    for number in 0..=u16::MAX {
        let name = file_name(number);
        let file = if number == 0 {
            Arc::clone(first)
        } else {
            match disk.open(&name, false, !read_only) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error).doing("opening", &name, 0),
            }
        };
        if number > 0 {
            let header = encode_file_header(superblock.store_id, number);
            let mut bytes = Vec::new();
            file.read_onto(&mut bytes, header.len(), 0).doing("reading", &name, 0)?;
            if bytes != header {
                // Begun by a process that died before it was used.
                if number >= superblock.files && !bytes.starts_with(&FILE_MAGIC) {
                    break;
                }
                return Err(Error::damaged("a block file", name, 0, "it is not of this store"));
            }
        }
        let len = file.len().doing("reading", &name, 0)?;
        let sectors = len / u64::from(superblock.sector_bytes);
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX - 1);
        files.push((Arc::new(BlockFile::new(name, file)), sectors));
    }
    if files.len() < usize::from(superblock.files) {
        let name = file_name(u16::try_from(files.len()).expect("fewer than counted"));
        return Err(Error::damaged("a block file", name, 0, "it is not there"));
    }
    Ok(files)
}

/// Opens what a superblock names, and what the journal says since.
fn open_state(
    disk: &Arc<dyn Disk>,
    first: &Arc<dyn DiskFile>,
    superblock: &Superblock,
    options: &OpenOptions,
    lock: Option<Arc<dyn DiskFile>>,
) -> Result<Engine> {
    let sector_bytes = superblock.sector_bytes;
    let files = open_files(&**disk, first, superblock, options.read_only)?;
    let limits = Limits {
        store_id: superblock.store_id,
        file_sectors: superblock.file_sectors,
        total_bytes: options.max_bytes,
    };
    let block_files: Vec<_> = files.iter().map(|(file, _)| Arc::clone(file)).collect();
    // For reading alone: what is free is not known yet.
    let full = files.iter().map(|(_, total)| FreeMap::full(SectorCount::new(*total))).collect();
    let reading =
        Arc::new(Space::new(Arc::clone(disk), block_files.clone(), full, sector_bytes, limits));
    let mut used = UsedMap::load(&reading, superblock.map_table)?;
    if superblock.map_table.is_none() {
        let reserved = reserved_sectors(0, sector_bytes);
        used.insert(&[Extent { file: 0, start: 0, count: reserved }, superblock.journal.segment]);
    }
    let mut found = replay(&reading, superblock.journal)?;
    let root = Root { blob: superblock.root, levels: superblock.levels, generation: 1 };
    let nodes = Nodes::new(Arc::clone(&reading), options.cache_bytes / 2);
    // Numbers go on behind those that were found, whether they count or not.
    let last = found.commits.last().map(|commit| commit.header.seq);
    let overlay = settle_journal(&reading, &mut found)?;

    let mut now = used.clone();
    let mut counts = Counts { objects: superblock.objects, bytes: superblock.object_bytes };
    apply(&mut now, &mut counts, &nodes, &root, &overlay)?;
    now.insert(&found.segments);
    let mut maps = Vec::new();
    for (number, (file, total)) in (0..).zip(&files) {
        let reserved =
            Extent { file: number, start: 0, count: reserved_sectors(number, sector_bytes) };
        now.insert(&[reserved]);
        if now.used_end(number) > *total {
            let offset = u64::from(*total) * u64::from(sector_bytes);
            let why = "it ends before sectors that are in use";
            return Err(Error::damaged("a block file", file.name.clone(), offset, why));
        }
        maps.push(now.free_map(number, *total));
    }
    drop(nodes);
    let space = Arc::new(Space::new(Arc::clone(disk), block_files, maps, sector_bytes, limits));
    let next = last.map_or(superblock.journal.seq, |last| last + 1);
    let engine = assemble(space, superblock.clone(), next, used, options, lock, counts);
    {
        let mut commit = engine.lock_commit();
        for (key, object) in &overlay {
            engine.live().set(Arc::clone(key), object.clone());
            commit.active.insert(Arc::clone(key), object.clone());
        }
    }
    if !options.read_only {
        // Whoever wrote this state may not have flushed it, nor its superblock. What
        // the state before needs is free in it, and may be overwritten from here on.
        for file in &*engine.files() {
            file.mark_dirty();
        }
        engine.space.sync()?;
        if last.is_some() {
            engine.fold_replayed(found)?;
        }
    }
    Ok(engine)
}

/// What the keys of the journal have at its end: of the commits that count.
fn settle_journal(space: &Space, found: &mut Replay) -> Result<BTreeMap<Key, Option<Arc<Object>>>> {
    let durable = found.commits.iter().map(|commit| commit.header.durable).max().unwrap_or(0);
    loop {
        let mut overlay: BTreeMap<Key, (u64, Option<Arc<Object>>)> = BTreeMap::new();
        for commit in &found.commits {
            for op in &commit.ops {
                match op {
                    Op::Put(key, object) => {
                        let object = Some(Arc::clone(object));
                        overlay.insert(Arc::clone(key), (commit.header.seq, object));
                    }
                    Op::Delete(key) => {
                        overlay.insert(Arc::clone(key), (commit.header.seq, None));
                    }
                    Op::Next { .. } => {}
                }
            }
        }
        // Only what is still there can be asked for: the sectors of what was
        // replaced may have been used again.
        let mut first_bad = None;
        for (seq, object) in overlay.values() {
            let Some(object) = object else { continue };
            let is_sure = *seq <= durable || matches!(object.body, Body::Inline(_));
            if !is_sure && first_bad.is_none_or(|bad| *seq < bad) && !is_whole(space, object)? {
                first_bad = Some(*seq);
            }
        }
        match first_bad {
            None => {
                return Ok(overlay.into_iter().map(|(key, (_, object))| (key, object)).collect());
            }
            Some(bad) => {
                found.commits.retain(|commit| commit.header.seq < bad);
            }
        }
    }
}

/// Whether all bytes of an object are those that were written.
fn is_whole(space: &Space, object: &Object) -> Result<bool> {
    match check_all(space, object, &mut |_| ()) {
        Ok(()) => Ok(true),
        // Other bytes, or a file that ends before them: it did not grow in time.
        Err(ReadError::Mismatch(_) | ReadError::Other(Error::Damaged { .. })) => Ok(false),
        Err(ReadError::Other(error)) => Err(error),
    }
}

/// Gives back what the journal replaces, and takes what it names.
fn apply(
    used: &mut UsedMap,
    counts: &mut Counts,
    nodes: &Nodes,
    root: &Root,
    overlay: &BTreeMap<Key, Option<Arc<Object>>>,
) -> Result<()> {
    for (key, object) in overlay {
        let old = nodes.find(root, key)?;
        let extents: Vec<Extent> = old.iter().flat_map(Object::extents).collect();
        used.remove(&extents);
        counts.replace(old.as_ref(), object.as_deref());
    }
    for object in overlay.values().flatten() {
        if let Some(extent) = used.first_used(object.extents()) {
            let why = "a commit names sectors that something else uses";
            return Err(nodes.space.damaged("the journal", extent, 0, why));
        }
        let extents: Vec<Extent> = object.extents().collect();
        used.insert(&extents);
    }
    Ok(())
}
