//! Copying streams and whole storages, within a file and between files.

use crate::compound_file::{CompoundFile, find, find_or_insert, set_extra, split};
use crate::dir_entry::{EntryKind, Extra};
use crate::directory::{EntryId, ROOT, Vacancy};
use crate::entry::At;
use crate::error::{Corruption, Error};
use crate::name::Name;
use crate::state::State;
use crate::storage::Storage;
use crate::stream::Stream;

/// Bytes go from file to file in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// A stream that could be copied only up to a damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Path of the stream in the source.
    pub path: String,
    /// Bytes that were copied.
    pub copied_bytes: u64,
    /// Why not more.
    pub cause: Corruption,
}

/// One entry to be copied: where from, whose child it becomes, what it is.
struct Item {
    from: EntryId,
    path: String,
    kind: EntryKind,
    name: Name,
    extra: Extra,
    /// Index of the item that becomes its storage; the target's for the first.
    parent: Option<usize>,
}

impl<S: Storage> CompoundFile<S> {
    /// Copies a stream, or a storage with everything below it, within the file.
    ///
    /// Gives the streams that could be copied in part only; see
    /// [`copy_into`](Self::copy_into).
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AlreadyExists`], [`Error::IntoItself`],
    /// [`Error::BadName`], [`Error::Stale`], [`Error::ReadOnly`], and those of
    /// reading and writing streams; what was copied before an error stays.
    pub fn copy<'a>(&self, at: impl Into<At<'a>>, to_path: &str) -> Result<Vec<Damaged>, Error> {
        let at = at.into();
        {
            let state = self.shared().read_state();
            let slot = find(&state, at)?;
            let (parent, _) = split(&state, to_path)?;
            if state.dir.is_within(parent, slot) && state.dir.entry(slot).kind != EntryKind::Stream
            {
                return Err(Error::IntoItself { path: to_path.to_owned() });
            }
        }
        self.copy_into(at, self, to_path)
    }

    /// Copies a stream, or a storage with everything below it, to a path of
    /// another file. The root can be copied to `"/"`: its entries are added to
    /// the other file's root.
    ///
    /// CLSIDs, state bits and times of storages come along. Names that the
    /// format forbids (files from the wild have some) get `_` for each
    /// forbidden character.
    ///
    /// A damaged stream is copied up to its damage and listed in what is
    /// returned; the rest is not affected.
    ///
    /// # Errors
    ///
    /// As [`copy`](Self::copy).
    pub fn copy_into<'a, T: Storage>(
        &self,
        at: impl Into<At<'a>>,
        other: &CompoundFile<T>,
        to_path: &str,
    ) -> Result<Vec<Damaged>, Error> {
        let items = self.items(at.into())?;
        let mut targets: Vec<EntryId> = Vec::with_capacity(items.len());
        let mut damaged = Vec::new();
        for item in &items {
            let parent = item.parent.map(|index| targets[index]);
            let target = other.make_target(item, parent, to_path)?;
            targets.push(target);
            if item.kind == EntryKind::Stream {
                let from = self.open_stream(item.from)?;
                let to = other.open_stream(target)?;
                if let Some((copied_bytes, cause)) = copy_bytes(&from, &to)? {
                    damaged.push(Damaged { path: item.path.clone(), copied_bytes, cause });
                }
            }
        }
        Ok(damaged)
    }

    /// What is to be copied, each storage before what it holds.
    fn items(&self, at: At<'_>) -> Result<Vec<Item>, Error> {
        let state = self.shared().read_trees();
        let mut slots = vec![(find(&state, at)?, None)];
        let mut items = Vec::new();
        while let Some((slot, parent)) = slots.pop() {
            let entry = state.dir.entry(slot);
            if entry.kind != EntryKind::Stream {
                let index = Some(items.len());
                slots.extend(state.dir.children(slot).into_iter().rev().map(|s| (s, index)));
            }
            items.push(Item {
                from: state.dir.id(slot),
                path: state.dir.path(slot),
                kind: entry.kind,
                name: entry.name.clone(),
                extra: state.dir.extra(slot),
                parent,
            });
        }
        Ok(items)
    }

    /// Makes the entry that an item is copied to.
    fn make_target(
        &self,
        item: &Item,
        parent: Option<EntryId>,
        to_path: &str,
    ) -> Result<EntryId, Error> {
        let mut state = self.shared().change_state()?;
        let kind = match item.kind {
            EntryKind::Stream => EntryKind::Stream,
            EntryKind::Storage | EntryKind::Root => EntryKind::Storage,
        };
        let slot = match parent {
            Some(parent) => {
                let parent = state.dir.resolve(parent).ok_or(Error::Stale)?;
                let (vacancy, name) = legal_name(&state, parent, &item.name);
                state.dir.insert(vacancy, kind, name)
            }
            None if item.kind == EntryKind::Root && to_path.trim_matches('/').is_empty() => ROOT,
            None => {
                let (parent, name) = split(&state, to_path)?;
                match find_or_insert(&mut state, parent, kind, name)? {
                    (slot, true) => slot,
                    (_, false) => return Err(Error::AlreadyExists { path: to_path.to_owned() }),
                }
            }
        };
        if kind == EntryKind::Storage {
            let mut extra = item.extra.clone();
            if slot == ROOT {
                extra.created = 0;
            }
            set_extra(&mut state, slot, |target| *target = extra);
        }
        Ok(state.dir.id(slot))
    }
}

/// The name itself where it may be created and is not taken; else one like it.
pub(crate) fn legal_name(state: &State, parent: u32, name: &Name) -> (Vacancy, Name) {
    let mut units = Vec::with_capacity(31);
    for character in char::decode_utf16(name.units().iter().copied()) {
        let character = match character {
            Ok('\0' | '/' | '\\' | ':' | '!') | Err(_) => '_',
            Ok(character) => character,
        };
        if units.len() + character.len_utf16() <= 31 {
            units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
        }
    }
    if units.is_empty() {
        units.push(u16::from(b'_'));
    }
    let mut number = 1_u32;
    let stem = units.clone();
    loop {
        if let Err(vacancy) = state.dir.find_units(parent, &units) {
            return (vacancy, Name::from_wild(&units));
        }
        number += 1;
        let suffix: Vec<u16> = format!("~{number}").encode_utf16().collect();
        units.clear();
        units.extend(stem.iter().take(31 - suffix.len()));
        units.extend(suffix);
    }
}

/// Copies a stream's bytes; gives how far it got and why not further.
fn copy_bytes<S: Storage, T: Storage>(
    from: &Stream<S>,
    to: &Stream<T>,
) -> Result<Option<(u64, Corruption)>, Error> {
    let len = from.intact_len();
    to.reserve(len)?;
    // One byte at least: where nothing is intact, asking for it tells why.
    let piece_bytes = len.clamp(1, PIECE_BYTES);
    let mut buffer = vec![0; usize::try_from(piece_bytes).expect("at most 1 MiB")];
    let mut at = 0;
    loop {
        match from.read_at(&mut buffer, at) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                to.write_at(&buffer[..count], at)?;
                at += count as u64;
            }
            Err(Error::Corrupt(cause)) => return Ok(Some((at, cause))),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::MemStorage;

    #[test]
    fn storage_copied_into_another_file_brings_classes_and_content() {
        let from = CompoundFile::create_in(MemStorage::new()).unwrap();
        let clsid = uuid::Uuid::from_u128(7);
        from.create_storage("/a").unwrap();
        from.set_clsid("/a", clsid).unwrap();
        from.write_stream("/a/small", b"1").unwrap();
        from.write_stream("/a/large", &[7; 10_000]).unwrap();
        let to = CompoundFile::create_in(MemStorage::new()).unwrap();
        assert_eq!(from.copy_into("/a", &to, "/b").unwrap(), []);
        assert_eq!(to.entry("/b").unwrap().clsid(), clsid);
        assert_eq!(to.read_stream("/b/small").unwrap(), b"1");
        assert_eq!(to.read_stream("/b/large").unwrap(), [7; 10_000]);
        assert_eq!(Arc::strong_count(from.shared()), 1, "no handle is left open");
    }

    #[test]
    fn storage_is_not_copied_into_itself() {
        let file = CompoundFile::create_in(MemStorage::new()).unwrap();
        file.create_storage("/a").unwrap();
        assert!(matches!(file.copy("/a", "/a/b"), Err(Error::IntoItself { .. })));
        assert!(matches!(file.copy("/", "/b"), Err(Error::IntoItself { .. })));
        file.write_stream("/s", b"x").unwrap();
        file.copy("/s", "/t").unwrap();
        assert_eq!(file.read_stream("/t").unwrap(), b"x");
    }
}
