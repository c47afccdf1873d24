//! [`Walk`]: every entry, depth first.

use crate::dir_entry::EntryKind;
use crate::directory::ROOT;
use crate::entry::Entry;
use crate::shared::Shared;
use crate::storage::Storage;

/// Entries of a file, each storage before what it holds.
///
/// The file is not locked between two steps: entries that are removed before
/// the walk comes to them are left out.
pub struct Walk<'a, S: Storage> {
    shared: &'a Shared<S>,
    /// What is still to come, the next one last: id, path, depth.
    ahead: Vec<(crate::EntryId, String, u32)>,
}

impl<'a, S: Storage> Walk<'a, S> {
    pub(crate) fn new(shared: &'a Shared<S>, slot: u32) -> Self {
        let state = shared.read_state();
        let entry = Entry::new(&state, slot);
        drop(state);
        Self { shared, ahead: vec![(entry.id(), entry.path().to_owned(), entry.depth())] }
    }
}

impl<S: Storage> Iterator for Walk<'_, S> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let state = self.shared.read_trees();
        loop {
            let (id, path, depth) = self.ahead.pop()?;
            let Some(slot) = state.dir.resolve(id) else { continue };
            if state.dir.entry(slot).kind != EntryKind::Stream {
                let prefix = if slot == ROOT { "" } else { path.as_str() };
                for child in state.dir.children(slot).into_iter().rev() {
                    let name = state.dir.entry(child).name.to_string_lossy();
                    self.ahead.push((state.dir.id(child), format!("{prefix}/{name}"), depth + 1));
                }
            }
            return Some(Entry::with_path(&state, slot, path, depth));
        }
    }
}

impl<S: Storage> std::fmt::Debug for Walk<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("ahead", &self.ahead.len()).finish_non_exhaustive()
    }
}
