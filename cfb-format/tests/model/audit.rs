//! A second opinion on a finished file: reads the bytes by [MS-CFB] alone, sharing no code with the crate, and
//! accounts for every sector, every mini sector and every directory slot.
//!
//! It holds what this library writes to a stricter rule than the specification: no sector without an owner, no
//! free sector at the end, header counts exact, unused slots and cells filled as the specification says.

use std::cmp::Ordering;

const MAX_REGULAR: u32 = 0xFFFF_FFFA;
const DIFAT_SECTOR: u32 = 0xFFFF_FFFC;
const FAT_SECTOR: u32 = 0xFFFF_FFFD;
const END_OF_CHAIN: u32 = 0xFFFF_FFFE;
const FREE: u32 = 0xFFFF_FFFF;
const NO_STREAM: u32 = 0xFFFF_FFFF;
const MINI_CUTOFF: u64 = 4096;

/// What a sound file is made of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Sectors behind the header.
    pub(crate) sectors: usize,
    /// Of these, free ones.
    pub(crate) free_sectors: usize,
    /// Stream entries.
    pub(crate) streams: usize,
    /// Storage entries, the root not counted.
    pub(crate) storages: usize,
    /// Bytes in all streams.
    pub(crate) stream_bytes: u64,
}

struct File<'a> {
    bytes: &'a [u8],
    sector_bytes: usize,
    fat: Vec<u32>,
    owner: Vec<Option<String>>,
}

struct Slot {
    name: Vec<u16>,
    kind: u8,
    black: bool,
    left: u32,
    right: u32,
    child: u32,
    start: u32,
    len: u64,
}

/// Accounts for every byte of `bytes`, or panics with what is wrong.
pub(crate) fn audit(bytes: &[u8]) -> Audit {
    assert_eq!(&bytes[..8], b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "signature");
    assert_eq!(&bytes[8..24], &[0; 16], "header CLSID");
    let (major, shift) = (u16_at(bytes, 26), u16_at(bytes, 30));
    assert_eq!(u16_at(bytes, 24), 0x3E, "minor version");
    assert_eq!(u16_at(bytes, 28), 0xFFFE, "byte order");
    assert!(matches!((major, shift), (3, 9) | (4, 12)), "version {major} with shift {shift}");
    assert_eq!(u16_at(bytes, 32), 6, "mini sector shift");
    assert_eq!(&bytes[34..40], &[0; 6], "reserved bytes");
    assert_eq!(u64::from(u32_at(bytes, 56)), MINI_CUTOFF, "mini stream cutoff");
    let sector_bytes = 1usize << shift;
    assert_eq!(bytes.len() % sector_bytes, 0, "the file ends in the middle of a sector");
    assert!(bytes[512..sector_bytes].iter().all(|&b| b == 0), "padding of the header");
    let sectors = bytes.len() / sector_bytes - 1;

    let mut file = File { bytes, sector_bytes, fat: Vec::new(), owner: vec![None; sectors] };
    file.read_fat();
    let directory = file.chain(u32_at(bytes, 48), "the directory");
    let expected = if major == 4 { directory.len() } else { 0 };
    assert_eq!(u32_at(bytes, 40) as usize, expected, "directory sectors in the header");
    let slots = file.slots(&directory, major);
    let mini_fat_chain = file.chain(u32_at(bytes, 60), "the MiniFAT");
    assert_eq!(u32_at(bytes, 64) as usize, mini_fat_chain.len(), "MiniFAT sectors in the header");
    let mini_fat: Vec<u32> = mini_fat_chain.iter().flat_map(|&s| file.cells(s)).collect();

    let root = &slots[0];
    assert_eq!((root.kind, root.left, root.right), (5, NO_STREAM, NO_STREAM), "the root entry");
    assert_eq!(String::from_utf16_lossy(&root.name), "Root Entry");
    assert_eq!(root.len % 64, 0, "the mini stream's length");
    let mini_stream = file.chain(root.start, "the mini stream");
    assert_eq!(
        mini_stream.len(),
        (root.len as usize).div_ceil(sector_bytes),
        "mini stream sectors"
    );

    let mut reached = vec![false; slots.len()];
    reached[0] = true;
    let mut mini_owner = vec![None; (root.len / 64) as usize];
    let mut found = Audit { sectors, free_sectors: 0, streams: 0, storages: 0, stream_bytes: 0 };
    let mut storages = vec![0];
    while let Some(storage) = storages.pop() {
        for id in siblings(&slots, slots[storage].child, &mut reached) {
            let slot = &slots[id];
            let name = String::from_utf16_lossy(&slot.name);
            if slot.kind == 1 {
                assert_eq!((slot.start, slot.len), (0, 0), "start and length of storage {name}");
                found.storages += 1;
                storages.push(id);
                continue;
            }
            assert_eq!((slot.kind, slot.child), (2, NO_STREAM), "stream {name}");
            found.streams += 1;
            found.stream_bytes += slot.len;
            if slot.len >= MINI_CUTOFF {
                let chain = file.chain(slot.start, &name);
                assert_eq!(
                    chain.len(),
                    (slot.len as usize).div_ceil(sector_bytes),
                    "sectors of {name}"
                );
            } else {
                mini_chain(&mini_fat, &mut mini_owner, slot, &name);
            }
        }
    }
    for (id, slot) in slots.iter().enumerate() {
        assert_eq!(
            reached[id],
            slot.kind != 0,
            "slot {id} of kind {} is reached: {}",
            slot.kind,
            reached[id]
        );
    }
    for (mini, cell) in mini_fat.iter().enumerate() {
        let owned = mini_owner.get(mini).is_some_and(Option::is_some);
        assert_eq!(owned, *cell != FREE, "mini sector {mini} says {cell:#x}, owned: {owned}");
    }
    // A flush leaves what is too little to be worth another round of writing.
    let minis = sector_bytes / 64;
    let free_minis = mini_owner.iter().rev().take_while(|owner| owner.is_none()).count();
    let idle = free_minis / minis;
    assert!(
        idle == 0 || idle < sectors / 4,
        "{idle} of {sectors} sectors are an unused end of the mini stream"
    );
    for (sector, owner) in file.owner.iter().enumerate() {
        assert_eq!(owner.is_none(), file.fat[sector] == FREE, "sector {sector} of {owner:?}");
    }
    if let Some(last) = file.owner.last() {
        assert!(last.is_some(), "the file ends in a free sector");
    }
    found.free_sectors = file.owner.iter().filter(|o| o.is_none()).count();
    found
}

impl File<'_> {
    /// Reads the FAT, its sectors listed by the header and by the DIFAT chain.
    fn read_fat(&mut self) {
        let bytes = self.bytes;
        let (fat_count, difat_count) = (u32_at(bytes, 44) as usize, u32_at(bytes, 72) as usize);
        let mut listed: Vec<u32> = (0..109).map(|i| u32_at(bytes, 76 + 4 * i)).collect();
        let mut next = u32_at(bytes, 68);
        let mut difat = Vec::new();
        while next != END_OF_CHAIN {
            self.own(next, "the DIFAT");
            difat.push(next);
            let mut cells = self.cells(next);
            next = cells.pop().expect("a sector has cells");
            listed.extend(cells);
        }
        assert_eq!(difat.len(), difat_count, "DIFAT sectors in the header");
        assert!(
            listed[fat_count..].iter().all(|&cell| cell == FREE),
            "DIFAT cells behind the last FAT sector"
        );
        listed.truncate(fat_count);
        for &sector in &listed {
            self.own(sector, "the FAT");
            self.fat.extend(self.cells(sector));
        }
        let sectors = self.owner.len();
        assert!(self.fat.len() >= sectors, "{} cells for {sectors} sectors", self.fat.len());
        assert!(
            self.fat[sectors..].iter().all(|&cell| cell == FREE),
            "FAT cells past the end of the file"
        );
        let cells_in_a_sector = self.sector_bytes / 4;
        let needed = sectors.div_ceil(cells_in_a_sector);
        assert!(
            (needed..=2 * needed).contains(&fat_count),
            "{fat_count} FAT sectors for {sectors} sectors"
        );
        assert!(
            listed.iter().all(|&s| self.fat[s as usize] == FAT_SECTOR),
            "FAT sectors are marked so"
        );
        assert!(
            difat.iter().all(|&s| self.fat[s as usize] == DIFAT_SECTOR),
            "DIFAT sectors are marked so"
        );
    }

    fn own(&mut self, sector: u32, by: &str) {
        let slot = self.owner.get_mut(sector as usize);
        let slot = slot
            .unwrap_or_else(|| panic!("{by} reaches sector {sector}, past the end of the file"));
        assert!(slot.is_none(), "{by} shares sector {sector} with {slot:?}");
        *slot = Some(by.to_owned());
    }

    fn chain(&mut self, start: u32, by: &str) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut at = start;
        while at != END_OF_CHAIN {
            assert!(at < MAX_REGULAR, "the chain of {by} meets {at:#x}");
            self.own(at, by);
            chain.push(at);
            at = self.fat[at as usize];
        }
        chain
    }

    fn cells(&self, sector: u32) -> Vec<u32> {
        self.sector(sector).chunks_exact(4).map(|cell| u32_at(cell, 0)).collect()
    }

    fn sector(&self, sector: u32) -> &[u8] {
        &self.bytes[(sector as usize + 1) * self.sector_bytes..][..self.sector_bytes]
    }

    fn slots(&self, directory: &[u32], major: u16) -> Vec<Slot> {
        let slots = directory.iter().flat_map(|&sector| self.sector(sector).chunks_exact(128));
        slots.map(|raw| slot(raw, major)).collect()
    }
}

fn slot(raw: &[u8], major: u16) -> Slot {
    let name_bytes = u16_at(raw, 64) as usize;
    let kind = raw[66];
    let links = [u32_at(raw, 68), u32_at(raw, 72), u32_at(raw, 76)];
    if kind == 0 {
        assert_eq!(links, [NO_STREAM; 3], "links of an unused slot");
        let rest = raw[..68].iter().chain(&raw[80..]);
        assert!(rest.copied().all(|b| b == 0), "an unused slot is zeroed");
        return Slot {
            name: Vec::new(),
            kind,
            black: true,
            left: 0,
            right: 0,
            child: 0,
            start: 0,
            len: 0,
        };
    }
    assert!(
        (4..=64).contains(&name_bytes) && name_bytes.is_multiple_of(2),
        "name of {name_bytes} bytes"
    );
    let units: Vec<u16> = raw[..64].chunks_exact(2).map(|unit| u16_at(unit, 0)).collect();
    let (name, rest) = units.split_at(name_bytes / 2 - 1);
    assert!(rest.iter().all(|&unit| unit == 0), "what follows the name {name:?}");
    assert!(raw[67] <= 1, "colour {}", raw[67]);
    if kind == 2 {
        assert!(raw[80..96].iter().all(|&b| b == 0), "a stream has no CLSID");
        assert!(raw[100..116].iter().all(|&b| b == 0), "a stream has no times");
    }
    let len = u64::from(u32_at(raw, 120)) | u64::from(u32_at(raw, 124)) << 32;
    assert!(major == 4 || len <= 0x8000_0000, "length {len:#x} in a version 3 file");
    let [left, right, child] = links;
    Slot {
        name: name.to_vec(),
        kind,
        black: raw[67] == 1,
        left,
        right,
        child,
        start: u32_at(raw, 116),
        len,
    }
}

/// The entries of one storage in order, after a check that their tree is red-black and sorted.
fn siblings(slots: &[Slot], root: u32, reached: &mut [bool]) -> Vec<usize> {
    if root != NO_STREAM {
        assert!(slots[root as usize].black, "the root of a sibling tree is black");
    }
    let mut in_order = Vec::new();
    black_height(slots, root, reached, &mut in_order);
    for pair in in_order.windows(2) {
        let (a, b) = (&slots[pair[0]].name, &slots[pair[1]].name);
        assert_eq!(order(a, b), Ordering::Less, "{a:?} stands before {b:?}");
    }
    in_order
}

fn black_height(slots: &[Slot], at: u32, reached: &mut [bool], in_order: &mut Vec<usize>) -> u32 {
    if at == NO_STREAM {
        return 1;
    }
    let id = at as usize;
    assert!(!std::mem::replace(&mut reached[id], true), "slot {id} is reached twice");
    let slot = &slots[id];
    let left = black_height(slots, slot.left, reached, in_order);
    in_order.push(id);
    let right = black_height(slots, slot.right, reached, in_order);
    assert_eq!(left, right, "black heights below slot {id}");
    let red = |child: u32| child != NO_STREAM && !slots[child as usize].black;
    assert!(
        slot.black || !(red(slot.left) || red(slot.right)),
        "slot {id} and a child are both red"
    );
    left + u32::from(slot.black)
}

/// [MS-CFB] 2.6.4: shorter first, then by upper-cased UTF-16 code unit.
fn order(a: &[u16], b: &[u16]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().copied().map(upper).cmp(b.iter().copied().map(upper)))
}

/// The simple upper case of one UTF-16 unit.
pub(super) fn upper(unit: u16) -> u16 {
    let Some(char) = char::from_u32(u32::from(unit)) else { return unit };
    let mut upper = char.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => u16::try_from(u32::from(one)).unwrap_or(unit),
        _ => unit,
    }
}

fn mini_chain(mini_fat: &[u32], owner: &mut [Option<String>], slot: &Slot, name: &str) {
    let mut at = slot.start;
    let mut count = 0;
    while at != END_OF_CHAIN {
        let mini = at as usize;
        assert!(mini < owner.len(), "{name} reaches mini sector {at:#x} of {}", owner.len());
        assert!(owner[mini].is_none(), "{name} shares mini sector {mini} with {:?}", owner[mini]);
        owner[mini] = Some(name.to_owned());
        count += 1;
        at = mini_fat[mini];
    }
    assert_eq!(count, slot.len.div_ceil(64), "mini sectors of {name}");
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
