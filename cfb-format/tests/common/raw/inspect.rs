//! The judge: walks a file's tables and accounts for every sector.
//!
//! It takes the rules as [MS-CFB] states them for a writer, without leniency.

use super::tree::Node;
use super::{
    Account, DIFAT, END, FAT, FREE, IN_HEADER, LARGEST_SECTOR, Owner, RANGE_LOCK, RawSource, SLOT,
    header,
};

/// Judges a whole file. Panics only if it is too short for a header or has an impossible sector size.
pub(crate) fn inspect(source: &(impl RawSource + ?Sized)) -> Account {
    let mut judge = Judge {
        source,
        complaints: Vec::new(),
        header: vec![0; 512],
        sector_bytes: 0,
        owners: Vec::new(),
        fat: Vec::new(),
    };
    judge.header();
    judge.fat();
    let dir = judge.take("directory", judge.u32(header::FIRST_DIR), Owner::Directory);
    let expected = if judge.u16(header::MAJOR) == 3 { 0 } else { dir.len() };
    judge.expect(
        "directory sectors in the header",
        judge.u32(header::DIR_COUNT) as usize,
        expected,
    );
    let slots: Vec<u8> = dir.iter().flat_map(|&sector| judge.sector(sector)).collect();
    let nodes: Vec<Node> = slots.chunks(SLOT).map(Node::of).collect();

    let mini_fat_chain = judge.take("MiniFAT", judge.u32(header::FIRST_MINI_FAT), Owner::MiniFat);
    judge.expect(
        "MiniFAT sectors in the header",
        judge.u32(header::MINI_FAT_COUNT) as usize,
        mini_fat_chain.len(),
    );
    let mini_fat: Vec<u32> =
        mini_fat_chain.iter().flat_map(|&sector| cells(&judge.sector(sector))).collect();

    let mut account = Account {
        complaints: Vec::new(),
        major: judge.u16(header::MAJOR),
        sector_bytes: judge.sector_bytes,
        owners: Vec::new(),
        fat: Vec::new(),
        mini_fat,
        mini_stream: Vec::new(),
        items: Vec::new(),
        deepest: 0,
    };
    judge.directory(&slots, &nodes, &mut account);
    judge.unowned();
    account.complaints = judge.complaints;
    account.owners = judge.owners;
    account.fat = judge.fat;
    account
}

fn cells(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|cell| u32::from_le_bytes(cell.try_into().unwrap())).collect()
}

pub(super) struct Judge<'a, R: ?Sized> {
    source: &'a R,
    pub(super) complaints: Vec<String>,
    header: Vec<u8>,
    pub(super) sector_bytes: u64,
    owners: Vec<Owner>,
    pub(super) fat: Vec<u32>,
}

impl<R: RawSource + ?Sized> Judge<'_, R> {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.header[at..at + 2].try_into().unwrap())
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.header[at..at + 4].try_into().unwrap())
    }

    fn sector(&self, number: u32) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.sector_bytes).unwrap()];
        self.source.load((u64::from(number) + 1) * self.sector_bytes, &mut bytes);
        bytes
    }

    pub(super) fn complain(&mut self, complaint: String) {
        self.complaints.push(complaint);
    }

    #[allow(clippy::needless_pass_by_value, reason = "most callers make the values in place")]
    pub(super) fn expect<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        found: T,
        expected: T,
    ) {
        if found != expected {
            self.complain(format!("{what}: {found:?}, not {expected:?}"));
        }
    }

    /// [MS-CFB] 2.2
    fn header(&mut self) {
        assert!(self.source.byte_len() >= 512, "no room for a header");
        let mut bytes = vec![0; 512];
        self.source.load(0, &mut bytes);
        self.header = bytes;
        self.expect(
            "signature",
            self.header[..8].to_vec(),
            vec![0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1],
        );
        self.expect("header CLSID", self.header[8..24].to_vec(), vec![0; 16]);
        self.expect("minor version", self.u16(header::MINOR), 0x3E);
        let shift = if self.u16(header::MAJOR) == 3 { 9 } else { 12 };
        self.expect("version 3 or 4", matches!(self.u16(header::MAJOR), 3 | 4), true);
        self.expect("byte order", self.u16(header::BYTE_ORDER), 0xFFFE);
        self.expect("sector shift", self.u16(header::SHIFT), shift);
        self.expect("mini sector shift", self.u16(header::MINI_SHIFT), 6);
        self.expect(
            "reserved bytes",
            self.header[header::RESERVED..header::DIR_COUNT].to_vec(),
            vec![0; 6],
        );
        self.expect("mini stream cutoff", self.u32(header::CUTOFF), 4096);
        self.sector_bytes = 1 << self.u16(header::SHIFT);
        assert!(matches!(self.sector_bytes, 512 | 4096), "sectors of {} bytes", self.sector_bytes);
        let mut rest = vec![0; usize::try_from(self.sector_bytes).unwrap() - 512];
        self.source.load(512, &mut rest);
        self.expect("zeros after the header", rest.iter().all(|&byte| byte == 0), true);
        let len = self.source.byte_len();
        self.expect("bytes after the last whole sector", len % self.sector_bytes, 0);
        let sectors = (len / self.sector_bytes).saturating_sub(1);
        self.owners = vec![Owner::Nobody; usize::try_from(sectors).unwrap()];
    }

    /// Reads DIFAT and FAT. [MS-CFB] 2.3, 2.5
    fn fat(&mut self) {
        let mut named = cells(&self.header[header::DIFAT..header::DIFAT + 4 * IN_HEADER]);
        let mut difat = Vec::new();
        let mut next = self.u32(header::FIRST_DIFAT);
        while next <= LARGEST_SECTOR && self.own(next, Owner::Difat) {
            difat.push(next);
            let mut fields = cells(&self.sector(next));
            next = fields.pop().unwrap();
            named.extend(fields);
        }
        self.expect("end of the DIFAT", next, END);
        self.expect(
            "DIFAT sectors in the header",
            self.u32(header::DIFAT_COUNT) as usize,
            difat.len(),
        );
        let count = named.iter().position(|&field| field == FREE).unwrap_or(named.len());
        self.expect(
            "DIFAT fields after the last FAT sector",
            named[count..].iter().all(|&field| field == FREE),
            true,
        );
        self.expect("FAT sectors in the header", self.u32(header::FAT_COUNT) as usize, count);
        let whole = usize::try_from(self.sector_bytes / 4).unwrap() - 1;
        self.expect(
            "DIFAT sectors needed",
            difat.len(),
            count.saturating_sub(IN_HEADER).div_ceil(whole),
        );
        for &sector in &named[..count] {
            self.own(sector, Owner::Fat);
            self.fat.extend(cells(&self.sector(sector)));
        }
        for (sectors, mark) in [(&named[..count], FAT), (&difat[..], DIFAT)] {
            for &sector in sectors {
                self.expect(
                    &format!("FAT cell {sector}"),
                    self.fat.get(sector as usize).copied(),
                    Some(mark),
                );
            }
        }
        let sectors = self.owners.len();
        self.expect("cells for every sector", self.fat.len() >= sectors, true);
        self.expect(
            "cells past the end are free",
            self.fat.iter().skip(sectors).all(|&cell| cell == FREE),
            true,
        );
        if self.sector_bytes == 4096 && self.source.byte_len() > RANGE_LOCK {
            let lock = u32::try_from(RANGE_LOCK / self.sector_bytes - 1).unwrap();
            self.own(lock, Owner::RangeLock);
            self.expect("FAT cell of the range lock sector", self.fat[lock as usize], END);
        }
    }

    /// Notes whose the sector is; false if it cannot be.
    fn own(&mut self, sector: u32, owner: Owner) -> bool {
        match self.owners.get_mut(sector as usize) {
            Some(slot @ Owner::Nobody) => *slot = owner,
            Some(other) => {
                let other = *other;
                self.complain(format!("sector {sector} belongs to {other:?} and to {owner:?}"));
                return false;
            }
            None => {
                self.complain(format!(
                    "{owner:?} has sector {sector}, the file has {}",
                    self.owners.len()
                ));
                return false;
            }
        }
        true
    }

    /// Follows a chain through the FAT and takes its sectors.
    pub(super) fn take(&mut self, what: &str, start: u32, owner: Owner) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut next = start;
        while next <= LARGEST_SECTOR && self.own(next, owner) {
            chain.push(next);
            next = self.fat.get(next as usize).copied().unwrap_or(FREE);
        }
        self.expect(&format!("end of the chain of the {what}"), next, END);
        chain
    }

    /// Sectors that nothing owns are free.
    fn unowned(&mut self) {
        for sector in 0..self.owners.len() {
            if self.owners[sector] == Owner::Nobody
                && self.fat.get(sector).is_some_and(|&cell| cell != FREE)
            {
                self.complain(format!(
                    "nothing owns sector {sector}, whose cell is {:#x}",
                    self.fat[sector]
                ));
            }
        }
    }
}
