//! What is below an entry, in order, with printable names and paths.

use cfb_format::{Entry, EntryId, EntryKind};
use clap::ValueEnum;
use uuid::{Uuid, uuid};

use crate::failure::{Context, Failure};
use crate::{Compound, escape};

/// Whether names are shown decoded, as installer databases encode them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Msi {
    /// When the root's class says it is an installer file.
    Auto,
    /// Wherever a name decodes.
    Always,
    /// As they are in the file.
    Never,
}

/// Classes of an installer database, transform and patch.
const INSTALLER_CLASSES: [Uuid; 3] = [
    uuid!("000c1084-0000-0000-c000-000000000046"),
    uuid!("000c1082-0000-0000-c000-000000000046"),
    uuid!("000c1086-0000-0000-c000-000000000046"),
];

/// How names are shown in one listing.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    decode: bool,
}

impl Names {
    /// As `choice` says for this file.
    pub(crate) fn for_file(file: &Compound, choice: Msi) -> Self {
        let decode = match choice {
            Msi::Auto => INSTALLER_CLASSES.contains(&file.root().clsid()),
            Msi::Always => true,
            Msi::Never => false,
        };
        Self { decode }
    }

    /// As they are in the file.
    pub(crate) const fn as_stored() -> Self {
        Self { decode: false }
    }

    /// The units to show for an entry.
    pub(crate) fn units(self, entry: &Entry) -> Vec<u16> {
        if self.decode
            && let Some(name) = cfb_format::decode_msi_name(entry.name_utf16())
        {
            return name.encode_utf16().collect();
        }
        entry.name_utf16().to_vec()
    }
}

/// One line of a listing.
pub(crate) struct Item {
    pub(crate) entry: Entry,
    /// Printable.
    pub(crate) name: String,
    /// Printable, from the root of the file, with a leading slash.
    pub(crate) path: String,
    /// 1 for a child of the entry where the listing starts.
    pub(crate) depth: usize,
}

impl Item {
    /// The start of a listing, when it is to be a line itself.
    pub(crate) fn itself(file: &Compound, entry: Entry, names: Names) -> Result<Self, Failure> {
        let path = path_of(file, &entry, names)?;
        Ok(Self { name: escape::shown(&names.units(&entry)), path, depth: 0, entry })
    }
}

/// Everything below an entry, each storage before its content.
///
/// Made step by step: a hostile file nests storages a hundred thousand deep,
/// and then all paths together are many times the file.
pub(crate) struct Listing<'a> {
    entries: Box<dyn Iterator<Item = Entry> + 'a>,
    names: Names,
    /// Of the item made last.
    path: String,
    /// The storages on the way, and how much of `path` is theirs.
    above: Vec<(EntryId, usize)>,
}

impl<'a> Listing<'a> {
    /// Below `start`; with `deep` off, its children alone.
    pub(crate) fn below(
        file: &'a Compound,
        start: &Entry,
        names: Names,
        deep: bool,
    ) -> Result<Self, Failure> {
        let entries: Box<dyn Iterator<Item = Entry>> = if deep {
            // The first is `start` itself.
            Box::new(file.walk_from(start).doing(|| "cannot walk the file".to_owned())?.skip(1))
        } else {
            Box::new(children(file, start)?.into_iter())
        };
        let path = path_of(file, start, names)?;
        let above = vec![(start.id(), path.len())];
        Ok(Self { entries, names, path, above })
    }
}

impl Iterator for Listing<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let entry = self.entries.next()?;
        while self.above.len() > 1 && self.above.last().map(|&(id, _)| id) != entry.parent() {
            self.above.pop();
        }
        let depth = self.above.len();
        let &(_, path_len) = self.above.last().expect("the start stays");
        let name = escape::shown(&self.names.units(&entry));
        self.path.truncate(path_len);
        self.path.push('/');
        self.path.push_str(&name);
        if entry.kind() != EntryKind::Stream {
            self.above.push((entry.id(), self.path.len()));
        }
        Some(Item { entry, name, path: self.path.clone(), depth })
    }
}

/// The entries in a storage, in the order of the format.
pub(crate) fn children(file: &Compound, storage: &Entry) -> Result<Vec<Entry>, Failure> {
    file.children(storage).doing(|| "cannot list a storage".to_owned())
}

/// The printable path of one entry, with a leading slash; empty for the root.
pub(crate) fn path_of(file: &Compound, entry: &Entry, names: Names) -> Result<String, Failure> {
    let mut parts = Vec::new();
    let mut at = entry.clone();
    while let Some(parent) = at.parent() {
        parts.push(escape::shown(&names.units(&at)));
        at = file.entry(parent).doing(|| "cannot find the parent of an entry".to_owned())?;
    }
    Ok(parts.iter().rev().fold(String::new(), |path, part| format!("{path}/{part}")))
}

/// How many streams and storages, and the bytes of the streams together.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) streams: u64,
    pub(crate) storages: u64,
    /// A damaged file may claim more than a `u64` holds: then the largest.
    pub(crate) bytes: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, entry: &Entry) {
        if entry.kind() == EntryKind::Stream {
            self.streams += 1;
            self.bytes = self.bytes.saturating_add(entry.len());
        } else {
            self.storages += 1;
        }
    }
}
