//! The slow, obvious compound file: entries in a map, contents in vectors. [`Model::step`] applies one operation
//! to it and to the library, and compares what both answer.

mod audit;
mod handle;
mod ops;
mod step;

use std::collections::BTreeMap;

use cfb_format::{
    CompoundFile, CreateOptions, Entry, Error, MemStorage, OpenOptions, Stream, Strictness, Version,
};

pub(crate) use audit::audit;
pub(crate) use ops::{Op, Raw};

/// Names an entry of the model for good; 0 is the root.
type Id = usize;

const ROOT: Id = 0;
/// So that a run of many operations on long streams stays short: no stream grows past this.
const MAX_STREAM_BYTES: usize = 400_000;
const MAX_TOTAL_BYTES: usize = 2_000_000;
const MAX_ENTRIES: usize = 600;
const MAX_HANDLES: usize = 12;

/// An entry as the model has it.
#[derive(Clone, Debug)]
struct Node {
    parent: Id,
    name: String,
    /// `None` for a storage.
    content: Option<Vec<u8>>,
    clsid: u128,
    state_bits: u32,
    modified: u64,
}

/// A compound file and what it should hold, side by side.
pub(crate) struct Model {
    version: Version,
    in_place: bool,
    storage: MemStorage,
    file: Option<CompoundFile<MemStorage>>,
    nodes: BTreeMap<Id, Node>,
    handles: Vec<(Id, Stream<MemStorage>)>,
    next_id: Id,
    seed: u32,
}

/// The refusals that the model can predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    NotFound,
    AlreadyExists,
    NotAStream,
    NotAStorage,
    NotEmpty,
    IsRoot,
    IntoItself,
    Stale,
}

impl Refusal {
    fn of(error: &Error) -> Self {
        match error {
            Error::NotFound { .. } => Self::NotFound,
            Error::AlreadyExists { .. } => Self::AlreadyExists,
            Error::NotAStream { .. } => Self::NotAStream,
            Error::NotAStorage { .. } => Self::NotAStorage,
            Error::NotEmpty { .. } => Self::NotEmpty,
            Error::IsRoot => Self::IsRoot,
            Error::IntoItself { .. } => Self::IntoItself,
            Error::Stale => Self::Stale,
            other => panic!("no operation of the model may end in {other:?}"),
        }
    }
}

impl Model {
    /// An empty file of `version` in memory, saved in place or not.
    pub(crate) fn new(version: Version, in_place: bool) -> Self {
        let storage = MemStorage::new();
        let file = CreateOptions::new()
            .version(version)
            .in_place(in_place)
            .create_storage(storage.clone())
            .expect("an empty file");
        let clsid = 0;
        let root = Node {
            parent: ROOT,
            name: String::new(),
            content: None,
            clsid,
            state_bits: 0,
            modified: 0,
        };
        let nodes = BTreeMap::from([(ROOT, root)]);
        Self {
            version,
            in_place,
            storage,
            file: Some(file),
            nodes,
            handles: Vec::new(),
            next_id: 1,
            seed: 0,
        }
    }

    /// Runs all of `ops`, then reopens the file, accounts for it, empties it, and accounts again.
    pub(crate) fn run(version: Version, in_place: bool, wide: bool, ops: &[Raw]) -> Vec<u8> {
        let mut model = Self::new(version, in_place);
        for raw in ops {
            model.step(raw.op(wide));
        }
        model.finish()
    }

    fn file(&self) -> &CompoundFile<MemStorage> {
        self.file.as_ref().expect("the file is open between two operations")
    }

    /// The path of a node, without a slash in front; the root's is empty.
    fn path(&self, id: Id) -> String {
        if id == ROOT {
            return String::new();
        }
        let node = &self.nodes[&id];
        let parent = self.path(node.parent);
        if parent.is_empty() { node.name.clone() } else { format!("{parent}/{}", node.name) }
    }

    fn path_of_new(&self, parent: Id, name: &str) -> String {
        let parent = self.path(parent);
        if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
    }

    fn child(&self, parent: Id, name: &str) -> Option<Id> {
        let key = ops::key(name);
        let named = |(&id, node): (&Id, &Node)| {
            (id != ROOT && node.parent == parent && ops::key(&node.name) == key).then_some(id)
        };
        self.nodes.iter().find_map(named)
    }

    fn children(&self, parent: Id) -> Vec<Id> {
        self.nodes
            .iter()
            .filter(|&(&id, node)| id != ROOT && node.parent == parent)
            .map(|(&id, _)| id)
            .collect()
    }

    /// `top` and all below it.
    fn subtree(&self, top: Id) -> Vec<Id> {
        let mut all = vec![top];
        let mut next = 0;
        while next < all.len() {
            all.extend(self.children(all[next]));
            next += 1;
        }
        all
    }

    fn is_storage(&self, id: Id) -> bool {
        self.nodes[&id].content.is_none()
    }

    fn total_bytes(&self) -> usize {
        self.nodes.values().filter_map(|node| node.content.as_ref()).map(Vec::len).sum()
    }

    fn insert(&mut self, parent: Id, name: &str, content: Option<Vec<u8>>) -> Id {
        let id = self.next_id;
        self.next_id += 1;
        let node =
            Node { parent, name: name.to_owned(), content, clsid: 0, state_bits: 0, modified: 0 };
        self.nodes.insert(id, node);
        id
    }

    /// Names, kinds and lengths of all entries, as the library lists them and as they should be.
    pub(crate) fn compare_tree(&self) {
        let mut real: Vec<_> = self.file().walk().map(|entry| listed(&entry)).collect();
        real.sort();
        let line = |(&id, node): (&Id, &Node)| {
            (
                self.path(id),
                node.content.is_some(),
                node.content.as_ref().map_or(0, Vec::len) as u64,
            )
        };
        let mut model: Vec<_> = self.nodes.iter().map(line).collect();
        model.sort();
        assert_eq!(real, model, "path, is a stream, length");
    }

    /// Everything that can be asked, contents included, through paths and through all held handles.
    pub(crate) fn compare_all(&self) {
        self.compare_tree();
        for (&id, node) in &self.nodes {
            let path = self.path(id);
            let entry = self.file().entry(path.as_str()).expect("an entry of the model");
            if let Some(content) = &node.content {
                let real = self.file().read_stream(&entry).expect("a sound stream");
                assert_same_bytes(&real, content, &path);
                assert!(
                    self.file().is_stream(path.as_str()) && !self.file().is_storage(path.as_str())
                );
            } else {
                assert_eq!(entry.clsid().as_u128(), node.clsid, "CLSID of {path:?}");
                assert_eq!(entry.state_bits(), node.state_bits, "state bits of {path:?}");
                if node.modified != 0 {
                    assert_eq!(entry.modified().raw(), node.modified, "time of {path:?}");
                }
                let children = self.file().children(path.as_str()).expect("a storage of the model");
                assert_eq!(children.len(), self.children(id).len(), "children of {path:?}");
            }
        }
        for (id, handle) in &self.handles {
            if let Some(node) = self.nodes.get(id) {
                let content = node.content.as_ref().expect("handles are of streams");
                assert_same_bytes(
                    &handle.read_to_vec().expect("a sound stream"),
                    content,
                    &node.name,
                );
            } else {
                assert!(
                    matches!(handle.read_to_vec(), Err(Error::Stale)),
                    "a removed stream is not read"
                );
                assert!(matches!(handle.write_at(b"x", 0), Err(Error::Stale)), "nor written");
                assert!(matches!(handle.set_len(9), Err(Error::Stale)), "nor resized");
            }
        }
    }

    /// Closes all handles and the file, and opens what was written.
    fn reopen(&mut self, strictness: Strictness, flush: bool) {
        if flush {
            self.file().flush().expect("memory takes all");
        }
        self.handles.clear();
        self.file = None;
        let options = OpenOptions::new().strictness(strictness).write(true).in_place(self.in_place);
        let file =
            options.open_storage(self.storage.clone()).expect("what the library wrote opens");
        let found: Vec<String> = file.findings().iter().map(ToString::to_string).collect();
        assert_eq!(found, Vec::<String>::new(), "findings in a file that the library wrote");
        assert_eq!(file.version(), self.version);
        self.file = Some(file);
    }

    /// The last comparison and the accounting. Gives back the bytes of the file before it was emptied.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.compare_all();
        self.reopen(Strictness::Strict, true);
        self.compare_all();
        let bytes = self.storage.to_vec();
        self.account(&bytes);

        self.file().remove_all("/").expect("everything can be removed");
        self.file().flush().expect("memory takes all");
        let emptied = self.storage.to_vec();
        audit(&emptied);
        let fresh = MemStorage::new();
        drop(
            CreateOptions::new()
                .version(self.version)
                .create_storage(fresh.clone())
                .expect("an empty file"),
        );

        assert_eq!(emptied.len(), fresh.to_vec().len(), "an emptied file is as small as a new one");
        bytes
    }

    /// The library's own check, its statistics and the audit of the bytes say the same.
    fn account(&self, bytes: &[u8]) {
        let findings: Vec<String> = self
            .file()
            .check()
            .expect("memory can be read")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(findings, Vec::<String>::new(), "findings of a whole-file check");
        let audit = audit(bytes);
        let streams = self.nodes.values().filter(|node| node.content.is_some()).count();
        assert_eq!(audit.streams, streams);
        assert_eq!(audit.storages, self.nodes.len() - 1 - streams);
        assert_eq!(audit.stream_bytes, self.total_bytes() as u64);

        let usage = self.file().usage().expect("memory can be read");
        assert_eq!(usage.file_bytes, bytes.len() as u64);
        assert_eq!(usage.stream_bytes, audit.stream_bytes);
        assert_eq!(usage.sectors as usize, audit.sectors);
        assert_eq!(usage.free_sectors as usize, audit.free_sectors);
        assert_eq!((usage.unowned_sectors, usage.damaged_streams), (0, 0));
        let owned = usage.metadata_sectors + usage.mini_stream_sectors + usage.data_sectors;
        assert_eq!(owned + usage.free_sectors, usage.sectors, "every sector is accounted for");
        assert_eq!(
            (usage.streams as usize, usage.storages as usize),
            (audit.streams, audit.storages)
        );
    }
}

fn listed(entry: &Entry) -> (String, bool, u64) {
    let path = entry.path().trim_start_matches('/').to_owned();
    let len = if entry.is_stream() { entry.len() } else { 0 };
    (path, entry.is_stream(), len)
}

fn assert_same_bytes(real: &[u8], model: &[u8], what: &str) {
    assert_eq!(real.len(), model.len(), "length of {what:?}");
    if let Some(at) = real.iter().zip(model).position(|(a, b)| a != b) {
        panic!(
            "{what:?} differs from byte {at} of {} on: {} for {}",
            model.len(),
            real[at],
            model[at]
        );
    }
}
