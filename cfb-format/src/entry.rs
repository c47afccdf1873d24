//! [`Entry`]: a snapshot of a directory entry; [`At`]: how one is named.

use uuid::Uuid;

use crate::dir_entry::EntryKind;
use crate::directory::{EntryId, ROOT};
use crate::file_time::FileTime;
use crate::name::Name;
use crate::state::State;

/// A directory entry as it was when it was asked for. It does not change when
/// the file does, and keeps no lock and no handle.
///
/// ```
/// use cfb_format::{CompoundFile, EntryKind, MemStorage};
///
/// let file = CompoundFile::create_in(MemStorage::new())?;
/// file.write_stream("/a", b"12345")?;
/// let entry = file.entry("/A")?;
/// assert_eq!((entry.name(), entry.len(), entry.kind()), ("a".into(), 5, EntryKind::Stream));
/// # Ok::<(), cfb_format::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    id: EntryId,
    parent: Option<EntryId>,
    kind: EntryKind,
    name: Name,
    path: String,
    depth: u32,
    len_bytes: u64,
    clsid: Uuid,
    state_bits: u32,
    created: FileTime,
    modified: FileTime,
}

impl Entry {
    pub(crate) fn new(state: &State, slot: u32) -> Self {
        let path = state.dir.path(slot);
        let mut depth = 0;
        let mut at = slot;
        while at != ROOT {
            at = state.dir.entry(at).parent;
            depth += 1;
        }
        Self::with_path(state, slot, path, depth)
    }

    /// For a walk, which knows the path and depth already.
    pub(crate) fn with_path(state: &State, slot: u32, path: String, depth: u32) -> Self {
        let entry = state.dir.entry(slot);
        let extra = state.dir.extra(slot);
        Self {
            id: state.dir.id(slot),
            parent: (slot != ROOT).then(|| state.dir.id(entry.parent)),
            kind: entry.kind,
            name: entry.name.clone(),
            path,
            depth,
            len_bytes: if entry.kind == EntryKind::Stream { state.stream_len(slot) } else { 0 },
            clsid: Uuid::from_bytes_le(extra.clsid),
            state_bits: extra.state_bits,
            created: FileTime::from_raw(extra.created),
            modified: FileTime::from_raw(extra.modified),
        }
    }

    /// Names the entry for as long as it lives.
    pub const fn id(&self) -> EntryId {
        self.id
    }

    /// The storage that holds it; `None` for the root.
    pub const fn parent(&self) -> Option<EntryId> {
        self.parent
    }

    /// What it is.
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Whether it is a stream.
    pub fn is_stream(&self) -> bool {
        self.kind == EntryKind::Stream
    }

    /// Whether it holds entries: a storage or the root.
    pub fn is_storage(&self) -> bool {
        self.kind != EntryKind::Stream
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.kind == EntryKind::Root
    }

    /// The name; what is not valid UTF-16 is replaced by U+FFFD.
    pub fn name(&self) -> String {
        self.name.to_string_lossy()
    }

    /// The name as the file has it.
    pub fn name_utf16(&self) -> &[u16] {
        self.name.units()
    }

    /// The names from the root on, each after a '/'; "/" for the root.
    ///
    /// Names from the wild may hold a '/' or be no valid UTF-16: such a path
    /// is for showing, and [`Entry::id`] for finding.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How many storages lie above it: 0 for the root.
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// Length of a stream in bytes; zero for storages.
    pub const fn len(&self) -> u64 {
        self.len_bytes
    }

    /// Whether [`Entry::len`] is zero.
    pub const fn is_empty(&self) -> bool {
        self.len_bytes == 0
    }

    /// The class that can open a storage; nil where none is set.
    pub const fn clsid(&self) -> Uuid {
        self.clsid
    }

    /// User-defined flags of a storage.
    pub const fn state_bits(&self) -> u32 {
        self.state_bits
    }

    /// When a storage was made; zero where unknown.
    pub const fn created(&self) -> FileTime {
        self.created
    }

    /// When a storage was last changed; zero where unknown.
    pub const fn modified(&self) -> FileTime {
        self.modified
    }
}

/// Which entry a call is about: by path, or by the id of an [`Entry`].
///
/// Every such argument is an `impl Into<At>`, so `"/a/b"`, `&entry` and
/// `entry.id()` can be given as they are. In a path the names are separated by
/// '/', a leading '/' may be left out, and `""` is the root. Upper and lower
/// case are the same, as [MS-CFB] 2.6.4 compares names. `.` and `..` are
/// names like others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// By path.
    Path(&'a str),
    /// By id: finds entries whose names no path can hold.
    Entry(EntryId),
}

impl<'a> From<&'a str> for At<'a> {
    fn from(path: &'a str) -> Self {
        Self::Path(path)
    }
}

impl<'a> From<&'a String> for At<'a> {
    fn from(path: &'a String) -> Self {
        Self::Path(path)
    }
}

impl From<EntryId> for At<'_> {
    fn from(id: EntryId) -> Self {
        Self::Entry(id)
    }
}

impl From<&Entry> for At<'_> {
    fn from(entry: &Entry) -> Self {
        Self::Entry(entry.id)
    }
}
