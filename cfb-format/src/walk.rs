//! [`Walk`]: every entry, depth first.

use crate::dir_entry::EntryKind;
use crate::directory::{EntryId, ROOT};
use crate::entry::Entry;
use crate::shared::Shared;
use crate::storage::Storage;

/// Entries of a file, each storage before what it holds.
///
/// The file is not locked between two steps: entries that are removed before
/// the walk comes to them are left out.
pub struct Walk<'a, S: Storage> {
    shared: &'a Shared<S>,
    /// What is still to come, the next one last: id and depth below the start.
    ahead: Vec<(EntryId, usize)>,
    /// Path of the entry last given, and where in it the path of each
    /// storage above it, by depth, ends.
    path: String,
    ends: Vec<usize>,
    /// Depth of the start in the file.
    start_depth: u32,
}

impl<'a, S: Storage> Walk<'a, S> {
    pub(crate) fn new(shared: &'a Shared<S>, slot: u32) -> Self {
        let state = shared.read_state();
        let start = Entry::new(&state, slot);
        let above = state.dir.entry(slot).parent;
        let path = if above == ROOT { String::new() } else { state.dir.path(above) };
        drop(state);
        Self {
            shared,
            ahead: vec![(start.id(), 0)],
            ends: vec![path.len()],
            path,
            start_depth: start.depth(),
        }
    }
}

impl<S: Storage> Iterator for Walk<'_, S> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let state = self.shared.read_trees();
        loop {
            let (id, depth) = self.ahead.pop()?;
            let Some(slot) = state.dir.resolve(id) else { continue };
            self.ends.truncate(depth + 1);
            self.path.truncate(self.ends[depth]);
            let entry = state.dir.entry(slot);
            if slot != ROOT {
                self.path.push('/');
                entry.name.append_to(&mut self.path);
            }
            if entry.kind != EntryKind::Stream {
                self.ends.push(self.path.len());
                let children = state.dir.children(slot).into_iter().rev();
                self.ahead.extend(children.map(|child| (state.dir.id(child), depth + 1)));
            }
            let path = if slot == ROOT { "/".to_owned() } else { self.path.clone() };
            let depth = self.start_depth + u32::try_from(depth).expect("slots are fewer");
            return Some(Entry::with_path(&state, slot, path, depth));
        }
    }
}

impl<S: Storage> std::fmt::Debug for Walk<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("ahead", &self.ahead.len()).finish_non_exhaustive()
    }
}
