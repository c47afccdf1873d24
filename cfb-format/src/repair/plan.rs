//! One reading of the damaged file: a sector size, the tables and the
//! directory as far as they are found, and where every stream's bytes are.

mod minis;

use std::collections::HashMap;

use self::minis::Minis;
use super::body::Body;
use super::entries::{Directory, Held, Placed, kind_of, name_of};
use super::fat;
use super::links::{Found, Links, Want};
use super::ranges;
use super::source::Source;
use crate::error::Error;
use crate::finding::Finding;
use crate::header::Header;
use crate::layout::{
    DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR, RawDirEntry, TYPE_STREAM,
};
use crate::storage::Storage;
use crate::version::{Geometry, Version};

/// An entry to be written into the new file.
pub(super) struct Node {
    /// Index of the storage that holds it, always before it; `None` for the root.
    pub(super) parent: Option<usize>,
    pub(super) name: Vec<u16>,
    pub(super) is_stream: bool,
    /// No storage of the damaged file is known to hold it.
    pub(super) orphan: bool,
    pub(super) raw: Option<RawDirEntry>,
    pub(super) body: Body,
    /// Length as the entry has it, in bytes.
    pub(super) promised: u64,
    /// The length itself may be wrong.
    pub(super) is_unsure: bool,
}

/// A reading of the file, and how well it fits together.
pub(super) struct Plan {
    pub(super) geometry: Geometry,
    pub(super) findings: Vec<Finding>,
    pub(super) root: Option<RawDirEntry>,
    pub(super) nodes: Vec<Node>,
    /// Streams whose chain is not what their entry says.
    pub(super) misfits: u64,
    /// Chains of the FAT that are, and FAT sectors that mark themselves: what
    /// could not be so by accident.
    pub(super) proofs: u64,
    /// FAT sectors that mark themselves.
    pub(super) marked_count: u32,
    pub(super) dir_sectors_count: u32,
}

/// Streams being put together.
struct Work<'a, S: ?Sized> {
    source: &'a Source<'a, S>,
    links: Links,
    directory: Directory,
    placed: Vec<Placed>,
    findings: Vec<Finding>,
    /// Sectors whose links another state of the file has otherwise.
    contested: Vec<u32>,
}

impl Plan {
    /// Reads the file as `source` has its sectors.
    pub(super) fn of<S: Storage + ?Sized>(
        source: &Source<'_, S>,
        header: &Header,
        mut findings: Vec<Finding>,
    ) -> Result<Self, Error> {
        let geometry = source.geometry;
        let fat = fat::find(source, header, &mut findings)?;
        let marked_count = fat.marked_count;
        let mut links = Links::new(fat.cells, source.sectors);
        for &sector in &fat.own {
            links.take_metadata(sector);
        }
        for sector in 0..links.len() {
            if matches!(links.cell(sector), Some(FAT_SECTOR | DIFAT_SECTOR)) {
                links.take_metadata(sector);
            }
        }
        // A header of zeros points to the first sector, whatever is in it.
        let is_blank = header.fat_sectors_count == 0 && header.first_dir_sector == 0;
        let first = if is_blank { END_OF_CHAIN } else { header.first_dir_sector };
        let has_old_states = !fat.contested.is_empty();
        let mut directory =
            Directory::find(source, &mut links, first, has_old_states, &mut findings)?;
        let mut tree_findings = Vec::new();
        let placed = directory.tree(&mut tree_findings);
        let contested = fat.contested;
        let mut work = Work { source, links, directory, placed, findings, contested };

        let named = work.named_mini_fat(header)?;
        if let Some(sectors) = &named {
            for &sector in sectors {
                work.links.take_metadata(sector);
            }
        }
        let mini_stream = work.add_mini_stream();
        let mut wants = vec![None; work.directory.slots.len()];
        work.add_streams(&mut wants, false);
        if work.directory.damaged {
            let before = work.directory.slots.len();
            work.directory.collect(source, &mut work.links)?;
            if work.directory.slots.len() > before {
                tree_findings.clear();
                work.placed = work.directory.tree(&mut tree_findings);
                wants.resize(work.directory.slots.len(), None);
                work.add_streams(&mut wants, false);
            }
        }
        work.findings.append(&mut tree_findings);
        work.add_streams(&mut wants, true);
        let dir_sectors_count = u32::try_from(work.directory.sectors.len()).unwrap_or(u32::MAX);

        let orphans = work.streams(false, true);
        let orphans = orphans.iter().filter_map(|row| wants[row.0 as usize]).collect();
        let mut minis = work.read_minis(header, named, mini_stream, &orphans)?;
        let root = work.directory.root().cloned();
        let mut plan = Self {
            geometry,
            findings: Vec::new(),
            root,
            nodes: Vec::new(),
            misfits: 0,
            // Chains of the MiniFAT are the same whatever the sectors' size.
            proofs: u64::from(marked_count) + work.links.exact_chains_count(),
            marked_count,
            dir_sectors_count,
        };
        work.add_entries(&mut plan, &wants, &minis);
        work.add_nameless(&mut plan, &mut minis)?;
        plan.findings = work.findings;
        Ok(plan)
    }
}

impl Plan {
    /// How much speaks for this reading; the greater the better.
    pub(super) fn evidence(&self) -> impl Ord + use<> {
        let held = self.nodes.iter().filter(|node| !node.orphan).count();
        (self.proofs, self.root.is_some(), held)
    }
}

impl Plan {
    /// Marks every byte as guessed: nothing proves that this reading is the right one.
    pub(super) fn doubt_all(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.is_stream) {
            ranges::add(&mut node.body.guessed, 0..node.body.len);
        }
    }
}

impl<S: Storage + ?Sized> Work<'_, S> {
    /// Length of the stream in a slot, in bytes.
    fn stream_len(&self, raw: &RawDirEntry) -> u64 {
        let len = raw.stream_len.get();
        match self.source.geometry.version {
            // Writers leave garbage in the high half.
            Version::V3 => len & u64::from(u32::MAX),
            Version::V4 => len,
        }
    }

    /// Placed streams of one kind of home: slot, start, length, whether orphan.
    fn streams(&self, mini: bool, orphans: bool) -> Vec<(u32, u32, u64)> {
        let cutoff = u64::from(self.source.geometry.mini_cutoff);
        let rows = self.placed.iter().filter_map(|placed| {
            let raw = &self.directory.slots[placed.slot as usize];
            let len = self.stream_len(raw);
            let is_orphan = placed.held == Held::Nowhere;
            let wanted =
                kind_of(raw) == TYPE_STREAM && is_orphan == orphans && (len < cutoff) == mini;
            wanted.then(|| (placed.slot, raw.start_sector.get(), len))
        });
        rows.collect()
    }

    /// Serves the streams with sectors of their own as far as their chains are sound.
    fn add_streams(&mut self, wants: &mut [Option<usize>], orphans: bool) {
        for (slot, start, len) in self.streams(false, orphans) {
            // An entry that was removed: its sectors are free.
            let stale =
                orphans && !self.directory.damaged && self.links.cell(start) == Some(FREE_SECTOR);
            if wants[slot as usize].is_none() && !stale {
                let units = self.source.geometry.sectors_for(len);
                wants[slot as usize] = Some(self.links.add(Want { start, units }, !orphans));
            }
        }
    }

    /// Makes the nodes of the new file that have entries in the old one.
    fn add_entries(&self, plan: &mut Plan, wants: &[Option<usize>], minis: &Minis) {
        let geometry = self.source.geometry;
        let mut index = vec![None; self.directory.slots.len()];
        let minis_agreed =
            minis.is_sure && plan.root.as_ref().is_none_or(|root| self.directory.is_agreed(root));
        plan.nodes.push(Node {
            parent: None,
            name: Vec::new(),
            is_stream: false,
            orphan: false,
            raw: plan.root.clone(),
            body: Body::default(),
            promised: 0,
            is_unsure: false,
        });
        if let Some(root) = index.first_mut() {
            *root = Some(0);
        }
        for &Placed { slot, held } in &self.placed {
            let raw = &self.directory.slots[slot as usize];
            let is_stream = kind_of(raw) == TYPE_STREAM;
            let parent = match held {
                Held::By(storage) => index[storage as usize],
                Held::Nowhere => None,
            };
            let len = if is_stream { self.stream_len(raw) } else { 0 };
            let mut body = Body::default();
            let mut is_unsure = false;
            if is_stream {
                if let Some(id) = wants[slot as usize] {
                    plan.misfits += u64::from(!self.links.is_exact(id));
                    let found = self.links.found(id);
                    is_unsure = found.has_odd_length;
                    body = Body::in_sectors(found, len, geometry, self.source.len);
                } else if let Some(id) = minis.wants[slot as usize] {
                    plan.misfits += u64::from(!minis.links.is_exact(id));
                    let unit = u64::from(geometry.mini_bytes());
                    let found = minis.links.found(id);
                    is_unsure = found.has_odd_length;
                    body = Body::in_minis(found, len, unit, &minis.body);
                } else {
                    body = Body::in_sectors(&Found::default(), len, geometry, self.source.len);
                }
            }
            let in_minis = is_stream && minis.wants[slot as usize].is_some();
            if !self.directory.is_agreed(raw) || (in_minis && !minis_agreed) {
                ranges::add(&mut body.doubtful, 0..body.len);
            }
            index[slot as usize] = Some(plan.nodes.len());
            plan.nodes.push(Node {
                parent: Some(parent.unwrap_or(0)),
                name: name_of(raw),
                is_stream,
                orphan: held == Held::Nowhere,
                raw: Some(raw.clone()),
                body,
                promised: len,
                is_unsure,
            });
        }
    }

    /// Adds the chains that no entry has, if entries are lost.
    ///
    /// A chain goes to the entry that has its start and no length that would fit.
    /// Without one its name is gone. Its length is that of its sectors.
    fn add_nameless(&mut self, plan: &mut Plan, minis: &mut Minis) -> Result<(), Error> {
        let lost = |node: &Node| node.is_stream && node.promised > 0 && node.body.there() == 0;
        // An empty stream that has a start may have been overwritten there.
        let emptied = |node: &Node| {
            let start = node.raw.as_ref().map_or(END_OF_CHAIN, |raw| raw.start_sector.get());
            node.is_stream && node.promised == 0 && start < END_OF_CHAIN
        };
        let some_emptied = plan.nodes.iter().any(emptied);
        let damaged = self.directory.damaged || plan.nodes.iter().any(lost);
        if !damaged && !some_emptied && plan.misfits == 0 {
            return Ok(());
        }
        let geometry = self.source.geometry;
        let mut chains = self.links.unowned_chains();
        if !chains.is_empty() {
            // Metadata that is no longer in use is no stream.
            let scan = self.source.scan()?;
            let is_dir = |at: u32| scan.dirs.binary_search_by_key(&at, |dir| dir.sector).is_ok();
            let is_table = |at: u32| {
                let found = scan.tables.binary_search_by_key(&at, |table| table.sector);
                found.is_ok_and(|nth| scan.tables[nth].shape.marks > 0)
            };
            chains.retain(|&(first, _)| !is_dir(first) && !is_table(first));
        }
        let mini_chains = minis.links.unowned_chains();
        let some_unowned = !(chains.is_empty() && mini_chains.is_empty());
        if damaged || some_unowned || plan.misfits > 0 {
            for node in plan.nodes.iter_mut().filter(|node| emptied(node)) {
                node.is_unsure = true;
            }
        }
        let mut nameless = HashMap::new();
        for (nth, node) in plan.nodes.iter().enumerate() {
            let is_bare = node.promised == 0 || node.body.is_doubtful() || lost(node);
            let may_be_cut = node.promised < u64::from(geometry.mini_cutoff);
            if let Some(raw) = node.raw.as_ref().filter(|_| node.is_stream && is_bare && may_be_cut)
            {
                nameless.insert(raw.start_sector.get(), nth);
            }
        }
        let mut add = |first: u32, name: String, mut body: Body| {
            if body.there() == 0 {
                return;
            }
            ranges::add(&mut body.guessed, 0..body.len);
            if let Some(nth) = nameless.remove(&first) {
                let node = &mut plan.nodes[nth];
                (node.body, node.is_unsure) = (body, true);
                return;
            }
            plan.nodes.push(Node {
                parent: Some(0),
                name: name.encode_utf16().collect(),
                is_stream: true,
                orphan: true,
                raw: None,
                promised: body.len,
                body,
                is_unsure: true,
            });
        };
        for (first, units) in chains {
            let found = self.links.chain_found(first, units);
            let len = units * u64::from(geometry.sector_bytes());
            let body = Body::in_sectors(&found, len, geometry, self.source.len);
            add(first, format!("Sector {first}"), body);
        }
        for (first, units) in mini_chains {
            let found = minis.links.chain_found(first, units);
            let unit = u64::from(geometry.mini_bytes());
            let body = Body::in_minis(&found, units * unit, unit, &minis.body);
            add(first, format!("Mini sector {first}"), body);
        }
        Ok(())
    }
}
