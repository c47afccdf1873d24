//! A compound file as bytes, with what a forger needs to find its fields.

use super::{END, FREE, SLOT, entry, header, n32};

/// The bytes of a file and where its parts were put when it was built.
///
/// Setters change the bytes only; what the other fields say stays what it was at building.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sector_bytes: usize,
    pub(crate) fat: Vec<u32>,
    pub(crate) difat: Vec<u32>,
    pub(crate) dir: Vec<u32>,
    pub(crate) mini_fat: Vec<u32>,
    pub(crate) mini_stream: Vec<u32>,
    /// Path and slot of every entry, the root (`""`) first.
    pub(crate) slots: Vec<(String, usize)>,
}

impl Image {
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap())
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    /// Where sector `number` starts.
    pub(crate) fn sector_at(&self, number: u32) -> usize {
        (number as usize + 1) * self.sector_bytes
    }

    /// How many sectors the bytes hold, a partial one included.
    pub(crate) fn sectors(&self) -> u32 {
        n32(self.bytes.len().div_ceil(self.sector_bytes) - 1)
    }

    /// Appends a sector of zeros, which no table mentions, and gives its number.
    pub(crate) fn add_sector(&mut self) -> u32 {
        let number = self.sectors();
        self.bytes.resize(self.sector_at(number) + self.sector_bytes, 0);
        number
    }

    /// Cuts the file so that `sectors` whole sectors and `more_bytes` of the next one remain.
    pub(crate) fn cut(&mut self, sectors: u32, more_bytes: usize) {
        self.bytes.truncate(self.sector_at(sectors) + more_bytes);
    }

    fn cell_at(&self, table: &[u32], number: u32) -> usize {
        let per_sector = self.sector_bytes / 4;
        let sector = table[number as usize / per_sector];
        self.sector_at(sector) + number as usize % per_sector * 4
    }

    /// How many cells the FAT has.
    pub(crate) fn cells(&self) -> u32 {
        n32(self.fat.len() * self.sector_bytes / 4)
    }

    pub(crate) fn cell(&self, number: u32) -> u32 {
        self.u32(self.cell_at(&self.fat, number))
    }

    pub(crate) fn put_cell(&mut self, number: u32, value: u32) {
        self.put_u32(self.cell_at(&self.fat, number), value);
    }

    pub(crate) fn mini_cell(&self, number: u32) -> u32 {
        self.u32(self.cell_at(&self.mini_fat, number))
    }

    pub(crate) fn put_mini_cell(&mut self, number: u32, value: u32) {
        self.put_u32(self.cell_at(&self.mini_fat, number), value);
    }

    /// Links `chain` in the FAT, in this order, and ends it.
    pub(crate) fn link(&mut self, chain: &[u32]) {
        for pair in chain.windows(2) {
            self.put_cell(pair[0], pair[1]);
        }
        self.put_cell(*chain.last().unwrap(), END);
    }

    /// The chain that starts at `start`; the FAT must be sound.
    pub(crate) fn chain(&self, start: u32) -> Vec<u32> {
        let mut chain = vec![start];
        while self.cell(chain[chain.len() - 1]) != END {
            chain.push(self.cell(chain[chain.len() - 1]));
        }
        chain
    }

    /// A FAT cell that is free although the file has its sector, or the first beyond the file.
    pub(crate) fn free_cell(&self) -> u32 {
        (0..self.cells()).find(|&number| self.cell(number) == FREE).expect("a free cell")
    }

    /// How many slots the directory has, unused ones included.
    pub(crate) fn slot_count(&self) -> usize {
        self.dir.len() * self.sector_bytes / SLOT
    }

    /// Where directory slot `slot` starts.
    pub(crate) fn slot_at(&self, slot: usize) -> usize {
        let per_sector = self.sector_bytes / SLOT;
        self.sector_at(self.dir[slot / per_sector]) + slot % per_sector * SLOT
    }

    /// The slot of the entry with this path; `""` is the root.
    pub(crate) fn slot(&self, path: &str) -> usize {
        self.slots.iter().find(|(at, _)| at == path).unwrap_or_else(|| panic!("no entry {path}")).1
    }

    /// Where `field` of the entry with this path is.
    pub(crate) fn at(&self, path: &str, field: usize) -> usize {
        self.slot_at(self.slot(path)) + field
    }

    pub(crate) fn start(&self, path: &str) -> u32 {
        self.u32(self.at(path, entry::START))
    }

    pub(crate) fn put_start(&mut self, path: &str, start: u32) {
        self.put_u32(self.at(path, entry::START), start);
    }

    pub(crate) fn put_size(&mut self, path: &str, size: u64) {
        self.put_u64(self.at(path, entry::SIZE), size);
    }

    /// Writes `name` into the entry's name field, with `len_bytes` as its length field, and nothing after it.
    pub(crate) fn put_name(&mut self, path: &str, name: &[u16], len_bytes: u16) {
        let at = self.at(path, entry::NAME);
        self.put(at, &[0; 64]);
        for (nth, unit) in name.iter().enumerate() {
            self.put_u16(at + 2 * nth, *unit);
        }
        self.put_u16(self.at(path, entry::NAME_LEN), len_bytes);
    }

    /// The first directory slot that no entry uses.
    pub(crate) fn unused_slot(&self) -> usize {
        let unused = (0..self.slot_count()).find(|slot| !self.slots.iter().any(|(_, s)| s == slot));
        unused.expect("an unused slot in the last directory sector")
    }

    /// The header's nth DIFAT field.
    pub(crate) fn difat_at(nth: usize) -> usize {
        header::DIFAT + 4 * nth
    }
}
