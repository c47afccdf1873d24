//! Going through keys in order: what is in the index and what is not yet, as one.

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::Overlay;
use crate::error::Result;
use crate::frame::Key;
use crate::object::Object;
use crate::snapshot::Snapshot;
use crate::store::Stat;
use crate::tree::Cursor;

/// Which keys, and how.
///
/// ```
/// use fs_store::{ListOptions, MemDisk, OpenOptions};
///
/// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
/// for key in ["a", "dir/1", "dir/2", "dir/sub/3", "e"] {
///     store.put(key, b"")?;
/// }
/// let keys = |options: &ListOptions| -> fs_store::Result<Vec<String>> {
///     let name = |item: fs_store::Result<fs_store::Item>| {
///         item.map(|item| String::from_utf8_lossy(&item.key).into_owned())
///     };
///     store.list(options)?.map(name).collect()
/// };
/// let dir = ListOptions::new().prefix("dir/");
/// assert_eq!(keys(&dir)?, ["dir/1", "dir/2", "dir/sub/3"]);
/// assert_eq!(keys(&dir.clone().delimiter(b'/'))?, ["dir/1", "dir/2", "dir/sub/"]);
/// assert_eq!(keys(&dir.reverse().limit(1))?, ["dir/sub/3"]);
/// # Ok::<(), fs_store::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    prefix: Vec<u8>,
    start_after: Option<Vec<u8>>,
    delimiter: Option<u8>,
    limit: Option<usize>,
    reverse: bool,
    keys_only: bool,
}

impl ListOptions {
    /// All keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only keys that begin with this.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Only keys behind this one, in the direction of the list: to go on where
    /// another list has ended.
    #[must_use]
    pub fn start_after(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.start_after = Some(key.into());
        self
    }

    /// Keys that have this byte behind the prefix are given as one, cut off
    /// behind it: as directories.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = Some(delimiter);
        self
    }

    /// At most so many items.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// From the last key to the first.
    #[must_use]
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Without [`Item::stat`], which saves time.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }
}

/// A key of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// The key, or where keys with the delimiter are given as one, their common beginning.
    pub key: Bytes,
    /// What is known of its object. `None` for a common beginning, and if only
    /// keys were asked for.
    pub stat: Option<Stat>,
}

type Changes = std::vec::IntoIter<(Key, Option<Arc<Object>>)>;

/// How many changes are looked at in one go: so few that a list of a few keys costs little.
const STEP: usize = 256;

/// An iterator over keys. See [`Store::list`](crate::Store::list).
pub struct List {
    snapshot: Snapshot,
    options: ListOptions,
    cursor: Option<Cursor>,
    /// Changes that are not in the index, from the newer and the older overlay.
    active: Peekable<Changes>,
    frozen: Peekable<Changes>,
    /// Behind which key the overlays have not been looked at; `None` at the ends.
    active_from: Option<Bound<Vec<u8>>>,
    frozen_from: Option<Bound<Vec<u8>>>,
    left: usize,
    /// The last common beginning that was given.
    group: Option<Bytes>,
    is_done: bool,
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("options", &self.options).finish_non_exhaustive()
    }
}

enum Found {
    Encoded(Bytes),
    Here(Option<Arc<Object>>),
}

/// The first key behind all that begin with a prefix.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < 0xFF)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}

impl List {
    pub(crate) fn new(snapshot: Snapshot, options: &ListOptions) -> Result<Self> {
        let mut list = Self {
            snapshot,
            options: options.clone(),
            cursor: None,
            active: Vec::new().into_iter().peekable(),
            frozen: Vec::new().into_iter().peekable(),
            active_from: None,
            frozen_from: None,
            left: options.limit.unwrap_or(usize::MAX),
            group: None,
            is_done: false,
        };
        let from = list.first_bound();
        let sought = list.seek(from);
        sought.map_err(|error| list.snapshot.engine().explain(error))?;
        Ok(list)
    }

    /// Where the list begins.
    fn first_bound(&self) -> Bound<Vec<u8>> {
        let ListOptions { prefix, start_after, reverse, .. } = &self.options;
        if *reverse {
            let end = behind(prefix);
            match (end, start_after.clone()) {
                (None, None) => Bound::Unbounded,
                (Some(end), None) => Bound::Excluded(end),
                (None, Some(after)) => Bound::Excluded(after),
                (Some(end), Some(after)) => Bound::Excluded(end.min(after)),
            }
        } else {
            match start_after {
                Some(after) if after >= prefix => Bound::Excluded(after.clone()),
                _ => Bound::Included(prefix.clone()),
            }
        }
    }

    /// Goes to the first key at or behind a bound.
    fn seek(&mut self, from: Bound<Vec<u8>>) -> Result<()> {
        let (engine, root) = (self.snapshot.engine(), &self.snapshot.view().root);
        let nodes = &engine.nodes;
        self.cursor = Some(if self.options.reverse {
            match &from {
                Bound::Unbounded => Cursor::below(nodes, root, None)?,
                Bound::Excluded(key) | Bound::Included(key) => {
                    Cursor::below(nodes, root, Some(key))?
                }
            }
        } else {
            match &from {
                Bound::Unbounded => Cursor::at_or_above(nodes, root, &[])?,
                Bound::Included(key) => Cursor::at_or_above(nodes, root, key)?,
                Bound::Excluded(key) => {
                    let mut cursor = Cursor::at_or_above(nodes, root, key)?;
                    if cursor.entry(nodes, false)?.is_some_and(|(found, _)| found[..] == key[..]) {
                        cursor.forward(nodes)?;
                    }
                    cursor
                }
            }
        });
        self.active = Vec::new().into_iter().peekable();
        self.frozen = Vec::new().into_iter().peekable();
        self.active_from = Some(from.clone());
        self.frozen_from = Some(from);
        Ok(())
    }

    /// The next of what changes, without an end.
    fn refill(&mut self) {
        let view = self.snapshot.view();
        let reverse = self.options.reverse;
        if self.active.peek().is_none()
            && let Some(from) = self.active_from.take()
        {
            let (step, next) = next_of(&view.active, &from, reverse);
            (self.active, self.active_from) = (step.into_iter().peekable(), next);
        }
        if self.frozen.peek().is_none()
            && let Some(from) = self.frozen_from.take()
        {
            let (step, next) = next_of(&view.frozen, &from, reverse);
            (self.frozen, self.frozen_from) = (step.into_iter().peekable(), next);
        }
    }

    /// The next key that has an object, in the order of the list.
    fn next_object(&mut self) -> Result<Option<(Bytes, Found)>> {
        loop {
            self.refill();
            let nodes = &self.snapshot.engine().nodes;
            let cursor = self.cursor.as_mut().expect("made by seek");
            let in_index = cursor.entry(nodes, !self.options.keys_only)?;
            if self.active.len() == 0 && self.frozen.len() == 0 {
                // All that is left is in the index.
                let Some((key, value)) = in_index else { return Ok(None) };
                if self.options.reverse {
                    cursor.back(nodes)?;
                } else {
                    cursor.forward(nodes)?;
                }
                return Ok(Some((key, Found::Encoded(value))));
            }
            let in_active = self.active.peek().map(|(key, _)| &key[..]);
            let in_frozen = self.frozen.peek().map(|(key, _)| &key[..]);
            let reverse = self.options.reverse;
            let keys = [in_active, in_frozen, in_index.as_ref().map(|(key, _)| &key[..])];
            let keys = keys.into_iter().flatten();
            let Some(first) = (if reverse { keys.max() } else { keys.min() }) else {
                return Ok(None);
            };
            let is = [in_active == Some(first), in_frozen == Some(first)];
            let in_index = in_index.as_ref().filter(|(key, _)| key[..] == *first).cloned();
            if in_index.is_some() {
                if reverse { cursor.back(nodes)? } else { cursor.forward(nodes)? }
            }
            // The newest wins; the others are passed over with it.
            let newer = if is[0] { self.active.next() } else { None };
            let older = if is[1] { self.frozen.next() } else { None };
            match (newer.or(older), in_index) {
                (Some((_, None)), _) => {}
                (Some((key, object)), in_index) => {
                    let key = in_index.map_or_else(|| Bytes::copy_from_slice(&key), |(key, _)| key);
                    return Ok(Some((key, Found::Here(object))));
                }
                (None, Some((key, value))) => return Ok(Some((key, Found::Encoded(value)))),
                (None, None) => unreachable!("one of them had the key"),
            }
        }
    }

    fn next_item(&mut self) -> Result<Option<Item>> {
        loop {
            let Some((key, found)) = self.next_object()? else { return Ok(None) };
            if !key.starts_with(&self.options.prefix) {
                return Ok(None);
            }
            if let Some(delimiter) = self.options.delimiter {
                let rest = &key[self.options.prefix.len()..];
                if let Some(at) = rest.iter().position(|byte| *byte == delimiter) {
                    let group = key.slice(..=self.options.prefix.len() + at);
                    // On behind all keys that are given as this one.
                    if self.options.reverse {
                        self.seek(Bound::Excluded(group.to_vec()))?;
                    } else if let Some(behind) = behind(&group) {
                        self.seek(Bound::Included(behind))?;
                    } else {
                        self.is_done = true;
                    }
                    let is_new = self.group.as_ref() != Some(&group)
                        && self.options.start_after.as_deref() != Some(&group[..]);
                    self.group = Some(group.clone());
                    if is_new {
                        return Ok(Some(Item { key: group, stat: None }));
                    }
                    if self.is_done {
                        return Ok(None);
                    }
                    continue;
                }
            }
            let stat = if self.options.keys_only { None } else { Some(self.stat(found)?) };
            return Ok(Some(Item { key, stat }));
        }
    }

    fn stat(&self, found: Found) -> Result<Stat> {
        let object = match found {
            Found::Here(object) => object.expect("deleted keys are passed over"),
            Found::Encoded(value) => Arc::new(self.snapshot.engine().nodes.decode(&value)?),
        };
        Ok(Stat::of(&object))
    }
}

/// A few changes at or behind a bound, and where to go on.
#[expect(clippy::type_complexity, reason = "its parts go to one caller")]
fn next_of(
    overlay: &Overlay,
    from: &Bound<Vec<u8>>,
    reverse: bool,
) -> (Vec<(Key, Option<Arc<Object>>)>, Option<Bound<Vec<u8>>>) {
    let bound = match from {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(&key[..]),
        Bound::Excluded(key) => Bound::Excluded(&key[..]),
    };
    let own = |(key, object): (&Key, &Option<Arc<Object>>)| (Arc::clone(key), object.clone());
    let step: Vec<_> = if reverse {
        overlay.range::<_, [u8]>((Bound::Unbounded, bound)).rev().take(STEP).map(own).collect()
    } else {
        overlay.range::<_, [u8]>((bound, Bound::Unbounded)).take(STEP).map(own).collect()
    };
    let next =
        step.last().filter(|_| step.len() == STEP).map(|(key, _)| Bound::Excluded(key.to_vec()));
    (step, next)
}

impl Iterator for List {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        if self.is_done || self.left == 0 {
            return None;
        }
        match self.next_item() {
            Ok(Some(item)) => {
                self.left -= 1;
                Some(Ok(item))
            }
            Ok(None) => {
                self.is_done = true;
                None
            }
            Err(error) => {
                self.is_done = true;
                Some(Err(self.snapshot.engine().explain(error)))
            }
        }
    }
}

impl std::iter::FusedIterator for List {}
