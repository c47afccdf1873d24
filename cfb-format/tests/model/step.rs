//! One operation, on the model and on the library.

use cfb_format::{EntryId, MemStorage};
use cfb_format::{Error, FileTime, Stream, Strictness};

use super::{Id, MAX_ENTRIES, MAX_HANDLES, MAX_TOTAL_BYTES, Model, Op, ROOT, Refusal, ops};

/// What the model holds for right: success, or one of these refusals.
type Expected = Vec<Refusal>;

/// Compares an answer of the library to the model's; the value, if both say that it worked.
pub(super) fn agree<T: std::fmt::Debug>(
    real: Result<T, Error>,
    expected: &Expected,
    op: Op,
) -> Option<T> {
    match real {
        Ok(value) => {
            assert!(
                expected.is_empty(),
                "{op:?} worked, but should have been refused: {expected:?}"
            );
            Some(value)
        }
        Err(error) => {
            assert!(!expected.is_empty(), "{op:?} failed: {error:?}");
            assert!(
                expected.contains(&Refusal::of(&error)),
                "{op:?} should give {expected:?}, not {error:?}"
            );
            None
        }
    }
}

impl Model {
    /// Applies `op` to both sides and compares the answers and the trees.
    pub(crate) fn step(&mut self, op: Op) {
        self.seed = self.seed.wrapping_add(1);
        match op {
            Op::CreateStream { parent, name } | Op::CreateNewStream { parent, name } => {
                let new = matches!(op, Op::CreateNewStream { .. });
                self.create_stream(self.any(parent), ops::name(name), new, op);
            }
            Op::WriteStream { parent, name, len } => {
                self.write_stream(self.any(parent), ops::name(name), len, op);
            }
            Op::CreateStorage { parent, name } => {
                self.create_storage(self.any(parent), ops::name(name), op);
            }
            Op::CreateStorageAll { parent, first, second } => {
                self.create_storage_all(
                    self.any(parent),
                    [ops::name(first), ops::name(second)],
                    op,
                );
            }
            Op::CreateMany { parent, count } => self.create_many(self.any(parent), count, op),
            Op::Open { entry } => self.open(self.any(entry), op),
            Op::Close { handle } => {
                if !self.handles.is_empty() {
                    let at = usize::from(handle) % self.handles.len();
                    drop(self.handles.swap_remove(at));
                }
            }
            Op::WriteAt { handle, .. }
            | Op::Append { handle, .. }
            | Op::WriteThroughCursor { handle, .. }
            | Op::SetLen { handle, .. }
            | Op::ReadAt { handle, .. }
            | Op::ReadThroughCursor { handle, .. }
            | Op::Extents { handle } => {
                if matches!(op, Op::Extents { .. }) {
                    // Extents are of the storage, which has everything after a flush.
                    self.file().flush().expect("memory takes all");
                }
                if !self.handles.is_empty() {
                    self.through_handle(usize::from(handle) % self.handles.len(), op);
                }
            }
            Op::RemoveStream { entry } => self.remove_stream(self.any(entry), op),
            Op::RemoveStorage { entry } => self.remove_storage(self.any(entry), op),
            Op::RemoveAll { entry } => self.remove_all(self.any(entry), op),
            Op::Rename { entry, name } => self.rename(self.any(entry), ops::name(name), op),
            Op::MoveTo { entry, parent, name } => {
                self.move_to(self.any(entry), self.any(parent), ops::name(name), op);
            }
            Op::Copy { entry, parent, name } => {
                self.copy(self.any(entry), self.any(parent), ops::name(name), op);
            }
            Op::SetMeta { entry, value } => self.set_meta(self.any(entry), value),
            Op::Flush => self.file().flush().expect("memory takes all"),
            Op::Reopen { strict, flush } => {
                self.reopen(if strict { Strictness::Strict } else { Strictness::Tolerant }, flush);
            }
            Op::CompareAll => self.compare_all(),
        }
        self.compare_tree();
    }

    /// The entry that a byte picks; one pick in eight is the root.
    fn any(&self, index: u8) -> Id {
        if index.is_multiple_of(8) {
            return ROOT;
        }
        *self
            .nodes
            .keys()
            .nth(usize::from(index) % self.nodes.len())
            .expect("the root is always there")
    }

    /// How the library knows a node: half of the calls go by path, half by entry.
    fn entry_id(&self, id: Id) -> EntryId {
        self.file().entry(self.path(id).as_str()).expect("an entry of the model").id()
    }

    fn by_path(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    fn full(&self, more_bytes: usize) -> bool {
        self.nodes.len() >= MAX_ENTRIES || self.total_bytes() + more_bytes > MAX_TOTAL_BYTES
    }

    fn create_stream(&mut self, parent: Id, name: &str, new: bool, op: Op) {
        if self.full(0) {
            return;
        }
        let there = self.child(parent, name);
        let expected = match there {
            _ if !self.is_storage(parent) => vec![Refusal::NotAStorage],
            Some(_) if new => vec![Refusal::AlreadyExists],
            Some(id) if self.is_storage(id) => vec![Refusal::NotAStream, Refusal::AlreadyExists],
            _ => vec![],
        };
        let path = self.path_of_new(parent, name);
        let file = self.file();
        let real = if new {
            file.create_new_stream(path.as_str())
        } else {
            file.create_stream(path.as_str())
        };
        let Some(stream) = agree(real, &expected, op) else { return };
        let id = match there {
            Some(id) => {
                self.nodes.get_mut(&id).expect("just found").content = Some(Vec::new());
                id
            }
            None => self.insert(parent, name, Some(Vec::new())),
        };
        self.hold(id, stream);
    }

    fn write_stream(&mut self, parent: Id, name: &str, len: u32, op: Op) {
        if self.full(len as usize) {
            return;
        }
        let there = self.child(parent, name);
        let expected = match there {
            _ if !self.is_storage(parent) => vec![Refusal::NotAStorage],
            Some(id) if self.is_storage(id) => vec![Refusal::NotAStream, Refusal::AlreadyExists],
            _ => vec![],
        };
        let bytes = ops::pattern(self.seed, len);
        let path = self.path_of_new(parent, name);
        if agree(self.file().write_stream(path.as_str(), &bytes), &expected, op).is_none() {
            return;
        }
        match there {
            Some(id) => self.nodes.get_mut(&id).expect("just found").content = Some(bytes),
            None => _ = self.insert(parent, name, Some(bytes)),
        }
    }

    fn create_storage(&mut self, parent: Id, name: &str, op: Op) {
        if self.full(0) {
            return;
        }
        let expected = match self.child(parent, name) {
            _ if !self.is_storage(parent) => vec![Refusal::NotAStorage],
            Some(_) => vec![Refusal::AlreadyExists],
            None => vec![],
        };
        let path = self.path_of_new(parent, name);
        if agree(self.file().create_storage(path.as_str()), &expected, op).is_some() {
            self.insert(parent, name, None);
        }
    }

    fn create_storage_all(&mut self, parent: Id, names: [&str; 2], op: Op) {
        if self.full(0) {
            return;
        }
        // What is missing below `parent`, and whether a stream is in the way.
        let mut at = parent;
        let mut missing = Vec::new();
        let mut blocked = !self.is_storage(parent);
        for name in names {
            let there = if missing.is_empty() { self.child(at, name) } else { None };
            match there {
                Some(id) => {
                    blocked |= !self.is_storage(id);
                    at = id;
                }
                None => missing.push(name),
            }
        }
        let expected =
            if blocked { vec![Refusal::NotAStorage, Refusal::AlreadyExists] } else { vec![] };
        let path = format!("{}/{}", self.path_of_new(parent, names[0]), names[1]);
        if agree(self.file().create_storage_all(path.as_str()), &expected, op).is_some() {
            for name in missing {
                at = self.insert(at, name, None);
            }
        }
    }

    /// Small streams with names of their own, so that the directory grows by sectors.
    fn create_many(&mut self, parent: Id, count: u8, op: Op) {
        for i in 0..count {
            let name = format!("{}-{i}", self.seed);
            if self.full(200) || !self.is_storage(parent) {
                return;
            }
            let bytes = ops::pattern(self.seed ^ u32::from(i) << 8, u32::from(i));
            let path = self.path_of_new(parent, &name);
            agree(self.file().write_stream(path.as_str(), &bytes), &vec![], op);
            self.insert(parent, &name, Some(bytes));
        }
    }

    fn open(&mut self, id: Id, op: Op) {
        let expected = if self.is_storage(id) { vec![Refusal::NotAStream] } else { vec![] };
        let real = if self.by_path() {
            self.file().open_stream(self.path(id).as_str())
        } else {
            self.file().open_stream(self.entry_id(id))
        };
        if let Some(stream) = agree(real, &expected, op) {
            self.hold(id, stream);
        }
    }

    /// Keeps a handle open, in place of an older one when there are many.
    fn hold(&mut self, id: Id, stream: Stream<MemStorage>) {
        if self.handles.len() == MAX_HANDLES {
            let oldest = self.seed as usize % MAX_HANDLES;
            self.handles[oldest] = (id, stream);
        } else {
            self.handles.push((id, stream));
        }
    }

    fn remove_stream(&mut self, id: Id, op: Op) {
        let expected = match id {
            ROOT => vec![Refusal::NotAStream, Refusal::IsRoot],
            _ if self.is_storage(id) => vec![Refusal::NotAStream],
            _ => vec![],
        };
        if agree(self.file().remove_stream(self.path(id).as_str()), &expected, op).is_some() {
            self.nodes.remove(&id);
        }
    }

    fn remove_storage(&mut self, id: Id, op: Op) {
        let expected = match id {
            ROOT => vec![Refusal::IsRoot],
            _ if !self.is_storage(id) => vec![Refusal::NotAStorage],
            _ if !self.children(id).is_empty() => vec![Refusal::NotEmpty],
            _ => vec![],
        };
        if agree(self.file().remove_storage(self.entry_id(id)), &expected, op).is_some() {
            self.nodes.remove(&id);
        }
    }

    fn remove_all(&mut self, id: Id, op: Op) {
        // The root is emptied less often than it is picked, or no tree would grow large.
        if id == ROOT && !self.seed.is_multiple_of(16) {
            return;
        }
        let entry = self.entry_id(id);
        let gone = self.subtree(id);
        agree(self.file().remove_all(entry), &vec![], op);
        for id in gone.into_iter().filter(|&id| id != ROOT) {
            self.nodes.remove(&id);
        }
        if id != ROOT {
            assert!(self.file().entry(entry).is_err(), "a removed entry is not found again");
        }
    }

    fn rename(&mut self, id: Id, name: &str, op: Op) {
        let expected = match self.child(self.nodes[&id].parent, name) {
            _ if id == ROOT => vec![Refusal::IsRoot],
            Some(other) if other != id => vec![Refusal::AlreadyExists],
            _ => vec![],
        };
        let real = if self.by_path() {
            self.file().rename(self.path(id).as_str(), name)
        } else {
            self.file().rename(self.entry_id(id), name)
        };
        if agree(real, &expected, op).is_some() {
            name.clone_into(&mut self.nodes.get_mut(&id).expect("just named").name);
        }
    }

    fn move_to(&mut self, id: Id, parent: Id, name: &str, op: Op) {
        let mut expected = vec![];
        if id == ROOT {
            expected.push(Refusal::IsRoot);
        }
        if !self.is_storage(parent) {
            expected.push(Refusal::NotAStorage);
        }
        if self.subtree(id).contains(&parent) {
            expected.push(Refusal::IntoItself);
        }
        if self.child(parent, name).is_some_and(|there| there != id) {
            expected.push(Refusal::AlreadyExists);
        }
        let path = self.path_of_new(parent, name);
        if agree(self.file().move_to(self.entry_id(id), path.as_str()), &expected, op).is_some() {
            let node = self.nodes.get_mut(&id).expect("just named");
            node.parent = parent;
            name.clone_into(&mut node.name);
        }
    }

    fn copy(&mut self, id: Id, parent: Id, name: &str, op: Op) {
        let subtree = self.subtree(id);
        let bytes: usize =
            subtree.iter().filter_map(|id| self.nodes[id].content.as_ref()).map(Vec::len).sum();
        if self.full(bytes) || self.nodes.len() + subtree.len() > MAX_ENTRIES {
            return;
        }
        let mut expected = vec![];
        if id == ROOT {
            expected.push(Refusal::IsRoot);
        }
        if !self.is_storage(parent) {
            expected.push(Refusal::NotAStorage);
        }
        if subtree.contains(&parent) {
            expected.push(Refusal::IntoItself);
        }
        if self.child(parent, name).is_some() {
            expected.push(Refusal::AlreadyExists);
        }
        let path = self.path_of_new(parent, name);
        if agree(self.file().copy(self.entry_id(id), path.as_str()), &expected, op).is_none() {
            return;
        }
        let mut copies = std::collections::BTreeMap::new();
        for old in subtree {
            let mut node = self.nodes[&old].clone();
            (node.parent, node.name) = if old == id {
                (parent, name.to_owned())
            } else {
                (copies[&node.parent], node.name)
            };
            let new = self.next_id;
            self.next_id += 1;
            self.nodes.insert(new, node);
            copies.insert(old, new);
        }
    }

    /// CLSID, state bits and, below the root, the time of a storage. Streams must have none of them.
    fn set_meta(&mut self, id: Id, value: u8) {
        if !self.is_storage(id) {
            return;
        }
        let entry = self.entry_id(id);
        let clsid = u128::from(value) << 100 | 0x1234_5678;
        self.file().set_clsid(entry, uuid::Uuid::from_u128(clsid)).expect("a storage of the model");
        self.file().set_state_bits(entry, u32::from(value) << 8).expect("a storage of the model");
        let modified = 131_000_000_000_000_000 + u64::from(value);
        if id != ROOT {
            self.file()
                .set_modified(entry, FileTime::from_raw(modified))
                .expect("a storage of the model");
        }
        let node = self.nodes.get_mut(&id).expect("just named");
        node.clsid = clsid;
        node.state_bits = u32::from(value) << 8;
        node.modified = if id == ROOT { 0 } else { modified };
    }
}
