//! [`CompoundFile`]: open, look up, walk, create, remove, move, copy, save.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::check;
use crate::commit::{self, Cut, Durability};
use crate::dir_entry::{EntryKind, Extra};
use crate::directory::ROOT;
use crate::entry::{At, Entry};
use crate::error::{Doing, Error};
use crate::file_time::FileTime;
use crate::finding::Finding;
use crate::load::load;
use crate::name::Name;
use crate::options::{CreateOptions, OpenOptions};
use crate::read_cache::ReadCache;
use crate::shared::Shared;
use crate::state::State;
use crate::storage::Storage;
use crate::stream::Stream;
use crate::usage::Usage;
use crate::version::Version;
use crate::walk::Walk;

/// A compound file: a tree of storages with streams in it.
///
/// All calls take `&self`, so one file can be shared between threads. Changes
/// to names, lengths and links are made in memory and reach the storage with
/// [`flush`](Self::flush), or when the last handle (of the file or of one of
/// its streams) is dropped; stream data goes out as it is written, gathered
/// to large pieces.
///
/// # Example
///
/// ```
/// use cfb_format::{CompoundFile, MemStorage};
///
/// let file = CompoundFile::create_in(MemStorage::new())?;
/// file.create_storage("/letters")?;
/// file.write_stream("/letters/first", b"Dear reader")?;
/// file.flush()?;
///
/// let names: Vec<String> = file.walk().map(|entry| entry.path().to_owned()).collect();
/// assert_eq!(names, ["/", "/letters", "/letters/first"]);
/// # Ok::<(), cfb_format::Error>(())
/// ```
pub struct CompoundFile<S: Storage = File> {
    shared: Arc<Shared<S>>,
}

impl CompoundFile<File> {
    /// Opens a file for reading, tolerantly; see [`OpenOptions`] for more.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        OpenOptions::new().open(path)
    }

    /// Opens a file for reading and writing, tolerantly.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self, Error> {
        OpenOptions::new().write(true).open(path)
    }

    /// Creates a version 3 file, or empties the one that is there; see
    /// [`CreateOptions`] for more.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        CreateOptions::new().create(path)
    }
}

impl<S: Storage> CompoundFile<S> {
    /// Opens what a storage holds, tolerantly, for reading and writing.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn from_storage(storage: S) -> Result<Self, Error> {
        OpenOptions::new().write(true).open_storage(storage)
    }

    /// Creates a version 3 file in a storage, whose content is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create_in(storage: S) -> Result<Self, Error> {
        CreateOptions::new().create_storage(storage)
    }

    pub(crate) fn with_state(
        storage: ReadCache<S>,
        mut state: State,
        writable: bool,
        in_place: Option<bool>,
    ) -> Self {
        state.atomic = !in_place.unwrap_or(storage.is_memory());
        Self { shared: Arc::new(Shared::new(storage, state, writable)) }
    }

    /// The version of the format.
    pub fn version(&self) -> Version {
        self.shared.geometry.version
    }

    /// Whether the file may be changed.
    pub fn is_writable(&self) -> bool {
        self.shared.writable
    }

    /// The storage underneath. What was not flushed may not be in it yet.
    pub fn storage(&self) -> &S {
        self.shared.storage().inner()
    }

    /// What opening the file overlooked. [`check`](Self::check) looks at everything.
    pub fn findings(&self) -> Vec<Finding> {
        self.shared.read_state().findings.clone()
    }

    /// Verifies the whole file as it is in the storage, after a flush if there
    /// is anything to flush. Reads no stream data; takes time and memory
    /// in proportion to sectors and entries.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Corrupt`]. What can be lived with is no error
    /// but a finding; a file this library wrote has none.
    pub fn check(&self) -> Result<Vec<Finding>, Error> {
        if self.shared.writable {
            commit::flush_again(&self.shared, Cut::Large)?;
        }
        Ok(check::verify(&load(self.shared.storage())?))
    }

    /// The root entry.
    pub fn root(&self) -> Entry {
        Entry::new(&self.shared.read_state(), ROOT)
    }

    /// An entry by path or id. A look-up costs one hash of each name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Stale`].
    pub fn entry<'a>(&self, at: impl Into<At<'a>>) -> Result<Entry, Error> {
        let state = self.shared.read_state();
        let slot = find(&state, at.into())?;
        Ok(Entry::new(&state, slot))
    }

    /// Whether there is such an entry.
    pub fn exists<'a>(&self, at: impl Into<At<'a>>) -> bool {
        find(&self.shared.read_state(), at.into()).is_ok()
    }

    /// Whether there is such a stream.
    pub fn is_stream<'a>(&self, at: impl Into<At<'a>>) -> bool {
        let state = self.shared.read_state();
        find(&state, at.into()).is_ok_and(|slot| state.dir.entry(slot).kind == EntryKind::Stream)
    }

    /// Whether there is such a storage; the root is one.
    pub fn is_storage<'a>(&self, at: impl Into<At<'a>>) -> bool {
        let state = self.shared.read_state();
        find(&state, at.into()).is_ok_and(|slot| state.dir.entry(slot).kind != EntryKind::Stream)
    }

    /// The entries of a storage, in the order of the file.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStorage`], [`Error::Stale`].
    pub fn children<'a>(&self, at: impl Into<At<'a>>) -> Result<Vec<Entry>, Error> {
        let state = self.shared.read_trees();
        let slot = find_storage(&state, at.into())?;
        let children = state.dir.children(slot);
        Ok(children.into_iter().map(|child| Entry::new(&state, child)).collect())
    }

    /// Every entry, each storage before what it holds, the root first.
    pub fn walk(&self) -> Walk<'_, S> {
        Walk::new(&self.shared, ROOT)
    }

    /// An entry and everything below it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Stale`].
    pub fn walk_from<'a>(&self, at: impl Into<At<'a>>) -> Result<Walk<'_, S>, Error> {
        let slot = find(&self.shared.read_state(), at.into())?;
        Ok(Walk::new(&self.shared, slot))
    }

    /// Opens a stream. Any number of handles may be open, also to one stream.
    ///
    /// Follows the stream's chain once: its cost is that of its runs.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStream`], [`Error::Stale`]. A damaged
    /// stream opens, and reads as far as it goes.
    pub fn open_stream<'a>(&self, at: impl Into<At<'a>>) -> Result<Stream<S>, Error> {
        let mut state = self.shared.write_state();
        let slot = find_stream(&state, at.into())?;
        Ok(Stream::new(Arc::clone(&self.shared), state.node(slot)))
    }

    /// Creates a stream, or empties the one of this name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] when the storage to hold it is missing,
    /// [`Error::NotAStream`] when a storage has the name, [`Error::BadName`],
    /// [`Error::ReadOnly`].
    pub fn create_stream(&self, path: &str) -> Result<Stream<S>, Error> {
        let (stream, is_new) = self.make_stream(path)?;
        if !is_new {
            stream.set_len(0)?;
        }
        Ok(stream)
    }

    /// Opens the stream of this path, or creates it; says which.
    fn make_stream(&self, path: &str) -> Result<(Stream<S>, bool), Error> {
        let mut state = self.shared.change_state()?;
        let (parent, name) = split(&state, path)?;
        let (slot, is_new) = find_or_insert(&mut state, parent, EntryKind::Stream, name)?;
        if state.dir.entry(slot).kind != EntryKind::Stream {
            return Err(Error::NotAStream { path: path.to_owned() });
        }
        Ok((Stream::new(Arc::clone(&self.shared), state.node(slot)), is_new))
    }

    /// Creates a stream where no entry has the name.
    ///
    /// # Errors
    ///
    /// As [`create_stream`](Self::create_stream), and [`Error::AlreadyExists`].
    pub fn create_new_stream(&self, path: &str) -> Result<Stream<S>, Error> {
        let mut state = self.shared.change_state()?;
        let slot = insert_new(&mut state, path, EntryKind::Stream)?;
        Ok(Stream::new(Arc::clone(&self.shared), state.node(slot)))
    }

    /// Creates a storage in an existing one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AlreadyExists`], [`Error::BadName`], [`Error::ReadOnly`].
    pub fn create_storage(&self, path: &str) -> Result<Entry, Error> {
        let mut state = self.shared.change_state()?;
        let slot = insert_new(&mut state, path, EntryKind::Storage)?;
        Ok(Entry::new(&state, slot))
    }

    /// Creates a storage and those above it, as far as they are missing.
    ///
    /// # Errors
    ///
    /// [`Error::NotAStorage`] when a stream is in the way, [`Error::BadName`],
    /// [`Error::ReadOnly`]. Storages created before the error stay.
    pub fn create_storage_all(&self, path: &str) -> Result<Entry, Error> {
        let mut state = self.shared.change_state()?;
        let mut at = ROOT;
        for name in names(path) {
            (at, _) = find_or_insert(&mut state, at, EntryKind::Storage, name)?;
            if state.dir.entry(at).kind == EntryKind::Stream {
                return Err(Error::NotAStorage { path: state.dir.path(at) });
            }
        }
        Ok(Entry::new(&state, at))
    }

    /// Removes a stream. Its handles become [stale](Error::Stale).
    ///
    /// Costs one step a run of its chain; its space is free once the removal is flushed.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStream`], [`Error::Stale`], [`Error::ReadOnly`].
    pub fn remove_stream<'a>(&self, at: impl Into<At<'a>>) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_stream(&state, at.into())?;
        state.remove_entry(slot);
        Ok(())
    }

    /// Removes a storage that holds nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStorage`], [`Error::NotEmpty`],
    /// [`Error::IsRoot`], [`Error::Stale`], [`Error::ReadOnly`].
    pub fn remove_storage<'a>(&self, at: impl Into<At<'a>>) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_storage(&state, at.into())?;
        if slot == ROOT {
            return Err(Error::IsRoot);
        }
        if !state.dir.has_no_children(slot) {
            return Err(Error::NotEmpty { path: state.dir.path(slot) });
        }
        state.remove_entry(slot);
        Ok(())
    }

    /// Removes an entry and everything below it; of the root, everything below it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Stale`], [`Error::ReadOnly`].
    pub fn remove_all<'a>(&self, at: impl Into<At<'a>>) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find(&state, at.into())?;
        for slot in state.subtree(slot) {
            if slot != ROOT {
                state.remove_entry(slot);
            }
        }
        Ok(())
    }

    /// Gives an entry another name in the same storage. Open handles go on.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AlreadyExists`], [`Error::BadName`],
    /// [`Error::IsRoot`], [`Error::Stale`], [`Error::ReadOnly`].
    pub fn rename<'a>(&self, at: impl Into<At<'a>>, new_name: &str) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find(&state, at.into())?;
        if slot == ROOT {
            return Err(Error::IsRoot);
        }
        let parent = state.dir.entry(slot).parent;
        relocate(&mut state, slot, parent, new_name, new_name)
    }

    /// Moves an entry, with everything below it, to another path. No data
    /// moves, and open handles go on.
    ///
    /// # Errors
    ///
    /// As [`rename`](Self::rename), and [`Error::IntoItself`].
    pub fn move_to<'a>(&self, at: impl Into<At<'a>>, new_path: &str) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find(&state, at.into())?;
        if slot == ROOT {
            return Err(Error::IsRoot);
        }
        let (parent, name) = split(&state, new_path)?;
        if state.dir.is_within(parent, slot) {
            return Err(Error::IntoItself { path: new_path.to_owned() });
        }
        relocate(&mut state, slot, parent, name, new_path)
    }

    /// Creates a stream with this content, or replaces the content of the one
    /// that is there. Its space is taken in one piece where there is one.
    ///
    /// # Errors
    ///
    /// As [`create_stream`](Self::create_stream) and [`Stream::write_at`]; the
    /// stream is as before then, or still not there.
    pub fn write_stream(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let (stream, is_new) = self.make_stream(path)?;
        let written = stream.replace(bytes);
        if written.is_err() && is_new {
            self.remove_stream(stream.entry()?.id())?;
        }
        written
    }

    /// The whole content of a stream.
    ///
    /// # Errors
    ///
    /// As [`open_stream`](Self::open_stream) and [`Stream::read_to_vec`].
    pub fn read_stream<'a>(&self, at: impl Into<At<'a>>) -> Result<Vec<u8>, Error> {
        self.open_stream(at)?.read_to_vec()
    }

    /// Sets the class of a storage, or of the root.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAStorage`], [`Error::Stale`], [`Error::ReadOnly`].
    pub fn set_clsid<'a>(&self, at: impl Into<At<'a>>, clsid: Uuid) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_storage(&state, at.into())?;
        set_extra(&mut state, slot, |extra| extra.clsid = clsid.to_bytes_le());
        Ok(())
    }

    /// Sets the user-defined flags of a storage.
    ///
    /// # Errors
    ///
    /// As [`set_clsid`](Self::set_clsid).
    pub fn set_state_bits<'a>(&self, at: impl Into<At<'a>>, bits: u32) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_storage(&state, at.into())?;
        set_extra(&mut state, slot, |extra| extra.state_bits = bits);
        Ok(())
    }

    /// Sets when a storage was created. The root has no such time.
    ///
    /// # Errors
    ///
    /// As [`set_clsid`](Self::set_clsid), and [`Error::IsRoot`].
    pub fn set_created<'a>(&self, at: impl Into<At<'a>>, time: FileTime) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_storage(&state, at.into())?;
        if slot == ROOT {
            return Err(Error::IsRoot);
        }
        set_extra(&mut state, slot, |extra| extra.created = time.raw());
        Ok(())
    }

    /// Sets when a storage, or the root, was last changed.
    ///
    /// # Errors
    ///
    /// As [`set_clsid`](Self::set_clsid).
    pub fn set_modified<'a>(&self, at: impl Into<At<'a>>, time: FileTime) -> Result<(), Error> {
        let mut state = self.shared.change_state()?;
        let slot = find_storage(&state, at.into())?;
        set_extra(&mut state, slot, |extra| extra.modified = time.raw());
        Ok(())
    }

    /// Sets when a storage, or the root, was last changed to now. The library
    /// sets no times by itself, so that files can be reproduced.
    ///
    /// # Errors
    ///
    /// As [`set_clsid`](Self::set_clsid).
    pub fn touch<'a>(&self, at: impl Into<At<'a>>) -> Result<(), Error> {
        self.set_modified(at, FileTime::now())
    }

    /// Makes every change so far, of every handle, the file's state for every
    /// reader of it: stream data, then FAT, MiniFAT and directory, then the header.
    ///
    /// After a crash of the process the file has this state or the one before,
    /// and nothing between, unless it is written
    /// [in place](crate::CreateOptions::in_place). A crash of the machine is what
    /// [`sync`](Self::sync) is for. Costs what has changed: its sectors, and the
    /// directory and FAT sectors that tell of them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::FileFull`]: the file is as it was, all changes stay
    /// in memory, and the next call tries again.
    pub fn flush(&self) -> Result<(), Error> {
        self.save(Durability::Process)
    }

    /// [`flush`](Self::flush), and sees to it that after a crash of the machine
    /// the file has this state or that of the last `sync` before. Waits for the
    /// storage twice: before the header is written and after it.
    ///
    /// Between two calls of `sync` a `flush` writes without waiting, and a crash of
    /// the machine may then find its header on the medium and its data not. Who
    /// fears that uses `sync` alone.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush).
    pub fn sync(&self) -> Result<(), Error> {
        self.save(Durability::Machine)
    }

    fn save(&self, durability: Durability) -> Result<(), Error> {
        if self.shared.writable { commit::flush(&self.shared, durability) } else { Ok(()) }
    }

    /// Drops every change since the last [`flush`](Self::flush) or
    /// [`sync`](Self::sync): reads the file anew. What was open of it, handles and
    /// [`EntryId`](crate::EntryId)s, is [stale](Error::Stale) afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::NotAtomic`] for a file that is written in place, whose old bytes
    /// are gone; [`Error::ReadOnly`]; [`Error::Io`] and [`Error::Corrupt`] from
    /// reading. Nothing has changed then.
    ///
    /// # Example
    ///
    /// ```
    /// use cfb_format::{CreateOptions, MemStorage};
    ///
    /// let file = CreateOptions::new().in_place(false).create_storage(MemStorage::new())?;
    /// file.write_stream("a", b"saved")?;
    /// file.flush()?;
    /// file.write_stream("a", b"not saved")?;
    /// file.write_stream("b", b"nor this")?;
    /// file.revert()?;
    /// assert_eq!(file.read_stream("a")?, b"saved");
    /// assert!(!file.exists("b"));
    /// # Ok::<(), cfb_format::Error>(())
    /// ```
    pub fn revert(&self) -> Result<(), Error> {
        if !self.shared.writable {
            return Err(Error::ReadOnly);
        }
        let mut state = self.shared.write_state();
        if !state.atomic {
            return Err(Error::NotAtomic);
        }
        let saved = load(self.shared.storage())?;
        let len = self.shared.storage().len().doing("asking for the length of the storage", 0)?;
        state.revert_to(saved);
        // Handles are stale by now: nobody adds to it.
        self.shared.pending.discard();
        self.shared.set_physical_end(len);
        Ok(())
    }

    /// How the file's bytes are used. Follows every chain.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn usage(&self) -> Result<Usage, Error> {
        if self.shared.writable {
            commit::flush_again(&self.shared, Cut::Large)?;
        }
        Usage::of(&load(self.shared.storage())?, self.shared.storage())
    }

    /// Flushes and hands the storage back.
    ///
    /// # Errors
    ///
    /// As [`flush`](Self::flush), and [`Error::StreamsOpen`] while stream
    /// handles live: they keep the file open, and nothing is lost.
    pub fn into_storage(self) -> Result<S, Error> {
        // First alone, then the flush: a handle may write until it is dropped.
        let shared = Arc::try_unwrap(self.shared).map_err(|shared| Error::StreamsOpen {
            count: Arc::strong_count(&shared).saturating_sub(1).max(1),
        })?;
        if shared.writable {
            commit::flush_again(&shared, Cut::All)?;
        }
        Ok(shared.into_storage())
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }
}

impl<S: Storage> fmt::Debug for CompoundFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.read_state();
        f.debug_struct("CompoundFile")
            .field("version", &self.version())
            .field("entries", &state.dir.entries_count())
            .field("sectors", &state.sectors_count())
            .finish_non_exhaustive()
    }
}

/// The names of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').filter(move |_| !path.is_empty())
}

/// The slot that `at` names.
pub(crate) fn find(state: &State, at: At<'_>) -> Result<u32, Error> {
    match at {
        At::Entry(id) => state.dir.resolve(id).ok_or(Error::Stale),
        At::Path(path) => {
            let mut at = ROOT;
            for name in names(path) {
                at = state
                    .dir
                    .find(at, name)
                    .ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
            }
            Ok(at)
        }
    }
}

fn find_stream(state: &State, at: At<'_>) -> Result<u32, Error> {
    let slot = find(state, at)?;
    if state.dir.entry(slot).kind == EntryKind::Stream {
        Ok(slot)
    } else {
        Err(Error::NotAStream { path: state.dir.path(slot) })
    }
}

fn find_storage(state: &State, at: At<'_>) -> Result<u32, Error> {
    let slot = find(state, at)?;
    if state.dir.entry(slot).kind == EntryKind::Stream {
        Err(Error::NotAStorage { path: state.dir.path(slot) })
    } else {
        Ok(slot)
    }
}

/// The storage that is to hold `path`, and the last name.
pub(crate) fn split<'p>(state: &State, path: &'p str) -> Result<(u32, &'p str), Error> {
    let whole = path.strip_prefix('/').unwrap_or(path);
    if whole.is_empty() {
        return Err(Error::AlreadyExists { path: path.to_owned() });
    }
    match whole.bytes().rposition(|byte| byte == b'/') {
        Some(at) => Ok((find_storage(state, At::Path(&whole[..at]))?, &whole[at + 1..])),
        None => Ok((ROOT, whole)),
    }
}

/// The entry of this name in a storage, or else a new one; and whether it is new.
pub(crate) fn find_or_insert(
    state: &mut State,
    parent: u32,
    kind: EntryKind,
    name: &str,
) -> Result<(u32, bool), Error> {
    match Name::new(name) {
        Ok(name) => Ok(match state.dir.find_units(parent, name.units()) {
            Ok(slot) => (slot, false),
            Err(vacancy) => (state.dir.insert(vacancy, kind, name), true),
        }),
        // Files have names that none may be given.
        Err(rule) => state
            .dir
            .find(parent, name)
            .map(|slot| (slot, false))
            .ok_or_else(|| Error::BadName { name: name.to_owned(), rule }),
    }
}

fn insert_new(state: &mut State, path: &str, kind: EntryKind) -> Result<u32, Error> {
    let (parent, name) = split(state, path)?;
    match find_or_insert(state, parent, kind, name)? {
        (slot, true) => Ok(slot),
        (_, false) => Err(Error::AlreadyExists { path: path.to_owned() }),
    }
}

fn relocate(
    state: &mut State,
    slot: u32,
    parent: u32,
    name: &str,
    path: &str,
) -> Result<(), Error> {
    let checked = Name::new(name).map_err(|rule| Error::BadName { name: name.to_owned(), rule })?;
    match state.dir.find(parent, name) {
        Some(other) if other != slot => Err(Error::AlreadyExists { path: path.to_owned() }),
        _ => {
            state.dir.relocate(slot, parent, checked);
            Ok(())
        }
    }
}

/// Changes the rarely used fields of an entry, if that changes anything.
pub(crate) fn set_extra(state: &mut State, slot: u32, change: impl FnOnce(&mut Extra)) {
    let mut extra = state.dir.extra(slot);
    let before = extra.clone();
    change(&mut extra);
    if extra != before {
        state.dir.set_extra(slot, extra);
    }
}
