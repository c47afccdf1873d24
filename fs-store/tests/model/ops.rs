//! What six bytes mean: keys that are met again and lie about each other's
//! beginnings, lengths at which the store does something else, and options.

use std::collections::BTreeMap;
use std::rc::Rc;

use fs_store::{Batch, Durability, PutOptions};

/// One operation, as a driver makes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw(pub(crate) [u8; 6]);

/// Stands for a version or time that only the store knows yet.
pub(crate) const NOW: u64 = u64::MAX;

/// An object as it should be.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Rc<Vec<u8>>,
    pub(crate) crc: u32,
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
    pub(crate) version: u64,
    pub(crate) created: u64,
    pub(crate) modified: u64,
}

/// All objects as they should be.
pub(crate) type State = BTreeMap<Vec<u8>, Entry>;

/// When a change may be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Any,
    Absent,
    Present,
    Version(u64),
}

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotFound(Vec<u8>),
    AlreadyExists(Vec<u8>),
    Conflict(Vec<u8>, u64, u64),
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Put { key: Vec<u8>, value: Rc<Vec<u8>>, metadata: Vec<(String, Vec<u8>)>, wanted: Wanted },
    Delete { key: Vec<u8>, wanted: Wanted },
    Rename { from: Vec<u8>, to: Vec<u8>, wanted: Wanted },
}

impl Wanted {
    /// By number; a version is the right one or not.
    pub(crate) fn pick(number: u8, key: &[u8], state: &State) -> Self {
        let version = state.get(key).map_or(0, |entry| entry.version);
        match number % 16 {
            0 => Self::Absent,
            1 => Self::Present,
            // The number of a commit under way is not known.
            2 if version != NOW => Self::Version(version),
            3 => Self::Version(version.wrapping_add(1)),
            _ => Self::Any,
        }
    }

    pub(crate) fn options(self) -> PutOptions {
        match self {
            Self::Any => PutOptions::new(),
            Self::Absent => PutOptions::new().create_only(),
            Self::Present => PutOptions::new().replace_only(),
            Self::Version(version) => PutOptions::new().if_version(version),
        }
    }

    fn check(self, key: &[u8], state: &State) -> Result<(), Refusal> {
        let found = state.get(key);
        match (self, found) {
            (Self::Absent, Some(_)) => Err(Refusal::AlreadyExists(key.to_vec())),
            (Self::Present, None) => Err(Refusal::NotFound(key.to_vec())),
            (Self::Version(wanted), found) => {
                let found = found.map_or(0, |entry| entry.version);
                if found == wanted {
                    Ok(())
                } else {
                    Err(Refusal::Conflict(key.to_vec(), wanted, found))
                }
            }
            _ => Ok(()),
        }
    }
}

impl Change {
    /// Makes the change, or says why not.
    pub(crate) fn apply(&self, state: &mut State) -> Result<(), Refusal> {
        match self {
            Self::Put { key, value, metadata, wanted } => {
                wanted.check(key, state)?;
                let entry = Entry {
                    value: Rc::clone(value),
                    crc: crc32c(value),
                    metadata: as_kept(metadata),
                    version: NOW,
                    created: state.get(key).map_or(NOW, |old| old.created),
                    modified: NOW,
                };
                state.insert(key.clone(), entry);
            }
            Self::Delete { key, wanted } => {
                wanted.check(key, state)?;
                state.remove(key);
            }
            Self::Rename { from, to, wanted } => {
                let entry = state.get(from).ok_or_else(|| Refusal::NotFound(from.clone()))?;
                let moved = Entry { version: NOW, ..entry.clone() };
                wanted.check(to, state)?;
                if from != to {
                    state.remove(from);
                    state.insert(to.clone(), moved);
                }
            }
        }
        Ok(())
    }

    /// Adds the change to a batch.
    pub(crate) fn add_to(&self, batch: &mut Batch) {
        match self {
            Self::Put { key, value, metadata, wanted } => {
                let options = with_metadata(wanted.options(), metadata);
                batch.put_with(key.clone(), value.to_vec(), &options);
            }
            Self::Delete { key, wanted } => drop(batch.delete_with(key.clone(), &wanted.options())),
            Self::Rename { from, to, wanted } => {
                batch.rename_with(from.clone(), to.clone(), &wanted.options());
            }
        }
    }

    /// Whether it puts nothing new.
    pub(crate) fn is_delete(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }
}

pub(crate) fn with_metadata(options: PutOptions, metadata: &[(String, Vec<u8>)]) -> PutOptions {
    metadata
        .iter()
        .fold(options, |options, (name, value)| options.metadata(name.clone(), value.clone()))
}

/// Metadata as it comes back: the last value of each name, in order.
fn as_kept(metadata: &[(String, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    metadata.iter().cloned().collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// A key.
pub(crate) fn key(which: u8) -> Vec<u8> {
    let n = which / 8;
    match which % 8 {
        0 => format!("a/{}", n % 5).into_bytes(),
        1 => format!("a/b/{}", n % 6).into_bytes(),
        2 => format!("dir{}/{}", n % 2, n % 7).into_bytes(),
        3 => {
            let odd: [&[u8]; 12] = [
                b"a",
                b"a/",
                b"a0",
                b"\0",
                b"\0/",
                b"\xFF",
                b"\xFF/\xFF",
                b"\xFF\xFF\xFF",
                b"/",
                b"//",
                b"a/b/",
                b"a.",
            ];
            odd[usize::from(n) % odd.len()].to_vec()
        }
        // Long keys make nodes of the index that hold few.
        4 => [&[b'k'; 1500][..], &[n % 4]].concat(),
        5 if n < 2 => vec![b'K' + n; 4096],
        5 => vec![b'x', n % 3],
        _ => vec![b'n', n],
    }
}

/// Lengths about which something changes: values in the record, those that ride
/// in the journal, chunks, checksums in the record.
const LENS: [usize; 24] = [
    0, 1, 60, 300, 511, 512, 513, 2000, 4096, 4097, 8192, 16_383, 16_384, 16_385, 20_000, 32_768,
    32_769, 65_536, 70_000, 131_072, 262_144, 524_288, 540_000, 1_300_000,
];

/// A length.
pub(crate) fn len(size: u8, extra: u8) -> usize {
    let len = LENS[usize::from(size) % LENS.len()];
    (len + usize::from(extra % 3)).saturating_sub(1)
}

/// What a call promises; `None` leaves it to the store.
pub(crate) fn durability(number: u8) -> Option<Durability> {
    match number % 4 {
        0 => None,
        1 => Some(Durability::Buffered),
        2 => Some(Durability::Group),
        _ => Some(Durability::Sync),
    }
}

/// Metadata: mostly none.
pub(crate) fn metadata(number: u8) -> Vec<(String, Vec<u8>)> {
    let pair = |name: &str, value: &[u8]| (name.to_owned(), value.to_vec());
    match number % 8 {
        1 => vec![pair("type", b"text")],
        2 => vec![pair("z", b"1"), pair("a", b""), pair("z", b"2")],
        3 => vec![pair("long", &[number; 3000])],
        _ => Vec::new(),
    }
}

/// Bytes that are other ones for each seed.
pub(crate) fn pattern(seed: u64, len: usize) -> Rc<Vec<u8>> {
    let mut out = Vec::with_capacity(len + 8);
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    Rc::new(out)
}

/// CRC-32C, a byte at a time.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let (mut index, mut crc_of) = (0, 0_u32);
        while index < 256 {
            let mut crc = crc_of;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
                bit += 1;
            }
            table[index] = crc;
            (index, crc_of) = (index + 1, crc_of + 1);
        }
        table
    };
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize];
    !bytes.iter().fold(!0, step)
}
