//! What the inspector gives: whose every sector is, every entry, and all that is wrong.

use super::{CUTOFF, FREE, MINI};

/// Bytes to be judged.
pub(crate) trait RawSource {
    fn byte_len(&self) -> u64;
    /// Fills `buf` with the bytes from `at` on; what is past the end reads as zeros.
    fn load(&self, at: u64, buf: &mut [u8]);
}

impl RawSource for [u8] {
    fn byte_len(&self) -> u64 {
        self.len() as u64
    }

    fn load(&self, at: u64, buf: &mut [u8]) {
        buf.fill(0);
        let from = usize::try_from(at).unwrap().min(self.len());
        let count = buf.len().min(self.len() - from);
        buf[..count].copy_from_slice(&self[from..from + count]);
    }
}

impl RawSource for Vec<u8> {
    fn byte_len(&self) -> u64 {
        self.as_slice().byte_len()
    }

    fn load(&self, at: u64, buf: &mut [u8]) {
        self.as_slice().load(at, buf);
    }
}

/// Whose a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Fat,
    Difat,
    Directory,
    MiniFat,
    MiniStream,
    RangeLock,
    /// The stream in this slot.
    Stream(u32),
}

/// An entry that the tree reaches.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) slot: u32,
    pub(crate) path: String,
    pub(crate) kind: u8,
    pub(crate) len: u64,
    pub(crate) start: u32,
    /// Sectors, or mini sectors if the stream is small.
    pub(crate) chain: Vec<u32>,
    pub(crate) state: u32,
    pub(crate) created: u64,
    pub(crate) modified: u64,
    pub(crate) clsid: [u8; 16],
}

/// The full account of a file.
#[derive(Debug)]
pub(crate) struct Account {
    /// Every departure from the specification, as a sentence; empty for a sound file.
    pub(crate) complaints: Vec<String>,
    pub(crate) major: u16,
    pub(crate) sector_bytes: u64,
    /// One for each sector of the file.
    pub(crate) owners: Vec<Owner>,
    pub(crate) fat: Vec<u32>,
    pub(crate) mini_fat: Vec<u32>,
    /// The sectors of the mini stream.
    pub(crate) mini_stream: Vec<u32>,
    /// Every entry that can be reached, the root first, depth first in tree order.
    pub(crate) items: Vec<Item>,
    /// Levels of the deepest sibling tree.
    pub(crate) deepest: usize,
}

impl Account {
    pub(crate) fn count(&self, owner: Owner) -> usize {
        self.owners.iter().filter(|&&of| of == owner).count()
    }

    /// Mini sectors that no stream has.
    pub(crate) fn free_minis(&self) -> usize {
        let minis = usize::try_from(self.items[0].len / MINI).unwrap();
        self.mini_fat.iter().take(minis).filter(|&&cell| cell == FREE).count()
    }

    pub(crate) fn item(&self, path: &str) -> &Item {
        self.items
            .iter()
            .find(|item| item.path == path)
            .unwrap_or_else(|| panic!("no entry {path}"))
    }

    /// Consecutive pieces of the stream's chain.
    pub(crate) fn pieces(&self, path: &str) -> usize {
        let chain = &self.item(path).chain;
        usize::from(!chain.is_empty())
            + chain.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count()
    }

    /// The whole content of a stream.
    pub(crate) fn content(&self, source: &(impl RawSource + ?Sized), path: &str) -> Vec<u8> {
        let item = self.item(path);
        let small = item.len < CUTOFF;
        let unit_bytes = if small { MINI } else { self.sector_bytes };
        let mut content = Vec::new();
        for &unit in &item.chain {
            let at = if small {
                let byte = u64::from(unit) * MINI;
                let sector = self.mini_stream[usize::try_from(byte / self.sector_bytes).unwrap()];
                (u64::from(sector) + 1) * self.sector_bytes + byte % self.sector_bytes
            } else {
                (u64::from(unit) + 1) * self.sector_bytes
            };
            let mut piece = vec![0; usize::try_from(unit_bytes).unwrap()];
            source.load(at, &mut piece);
            content.extend(piece);
        }
        content.truncate(usize::try_from(item.len).unwrap());
        content
    }

    /// Panics with all complaints if there is one.
    #[track_caller]
    pub(crate) fn expect_sound(self) -> Self {
        assert!(
            self.complaints.is_empty(),
            "the file breaks the format:\n  {}",
            self.complaints.join("\n  ")
        );
        self
    }
}
