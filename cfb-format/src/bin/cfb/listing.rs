//! What is below an entry, in order, with printable names and paths.

use std::collections::HashMap;

use cfb_format::{Entry, EntryKind};
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

/// Everything below `start`, each storage before its content.
///
/// With `deep` off, the children alone.
pub(crate) fn below(
    file: &Compound,
    start: &Entry,
    names: Names,
    deep: bool,
) -> Result<Vec<Item>, Failure> {
    let mut places = HashMap::from([(start.id(), (path_of(file, start, names)?, 0))]);
    let entries = if deep {
        // The first is `start` itself.
        file.walk_from(start).doing(|| "cannot walk the file".to_owned())?.skip(1).collect()
    } else {
        file.children(start).doing(|| "cannot list a storage".to_owned())?
    };
    let mut items = Vec::with_capacity(entries.len());
    for entry in entries {
        let parent = entry.parent().and_then(|parent| places.get(&parent));
        let (path, depth) = parent.expect("a storage comes before its content");
        let name = escape::shown(&names.units(&entry));
        let (path, depth) = (format!("{path}/{name}"), depth + 1);
        if entry.kind() != EntryKind::Stream {
            places.insert(entry.id(), (path.clone(), depth));
        }
        items.push(Item { entry, name, path, depth });
    }
    Ok(items)
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
pub(crate) struct Totals {
    pub(crate) streams: u64,
    pub(crate) storages: u64,
    pub(crate) bytes: u64,
}

impl Totals {
    /// Over a listing. A damaged file may claim more bytes than a `u64` holds.
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut totals = Self { streams: 0, storages: 0, bytes: 0 };
        for item in items {
            if item.entry.kind() == EntryKind::Stream {
                totals.streams += 1;
                totals.bytes = totals.bytes.saturating_add(item.entry.len());
            } else {
                totals.storages += 1;
            }
        }
        totals
    }
}
