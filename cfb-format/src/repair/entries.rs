//! The directory: its sectors, as far as they can be found, and the tree of
//! what is in them.

use std::collections::HashSet;

use super::links::Links;
use super::shape::{DirShape, has_name, is_blank, is_good, is_typed};
use super::source::Source;
use crate::error::Error;
use crate::finding::{Finding, FindingCode};
use crate::layout::{
    END_OF_CHAIN, FREE_SECTOR, NAME_UNITS, NO_STREAM, RawDirEntry, TYPE_ROOT, TYPE_STORAGE,
    TYPE_STREAM,
};
use crate::storage::Storage;

/// The directory as bytes: sectors in order, and their slots.
pub(super) struct Directory {
    pub(super) sectors: Vec<u32>,
    pub(super) slots: Vec<RawDirEntry>,
    /// Whether something of it is known to be lost or out of place.
    pub(super) damaged: bool,
    /// Entries of other directories, which could be the present one as well.
    rivals: Vec<HashSet<Fact>>,
    max_slots: u32,
}

/// What an earlier state of an entry may have otherwise: name, start, length.
type Fact = (Vec<u16>, u32, u64);

fn fact_of(raw: &RawDirEntry) -> Fact {
    (name_of(raw), raw.start_sector.get(), raw.stream_len.get())
}

/// How the tree holds an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// In this storage.
    By(u32),
    /// In none that is known.
    Nowhere,
}

/// An entry in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) slot: u32,
    pub(super) held: Held,
}

impl Directory {
    /// Reads the directory from its chain, or finds it by its root entry.
    pub(super) fn find<S: Storage + ?Sized>(
        source: &Source<'_, S>,
        links: &mut Links,
        first: u32,
        has_old_states: bool,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, Error> {
        let max_slots = source.max_slots();
        let mut directory = Self {
            sectors: Vec::new(),
            slots: Vec::new(),
            damaged: false,
            rivals: Vec::new(),
            max_slots,
        };
        let shape = |sector: u32| -> Result<DirShape, Error> {
            Ok(DirShape::of_entries(&source.entries(sector)?, max_slots))
        };
        let named = first < source.sectors && links.is_free(first);
        let mut start = if named && shape(first)?.root { Some(first) } else { None };
        if start.is_none() {
            directory.damaged = true;
            let roots = find_roots(source, links, has_old_states)?;
            start = roots.first().copied();
            for &rival in roots.iter().skip(1) {
                let entries = read_chain(source, links, rival)?;
                directory.rivals.push(entries.iter().map(fact_of).collect());
            }
            let here = named && directory_goes_on(source, links, first)?;
            if start.is_none() && here {
                start = Some(first);
            }
        }
        if let Some(start) = start {
            directory.follow(source, links, start, findings)?;
        }
        Ok(directory)
    }

    /// Takes the sectors of the chain from `start` on.
    fn follow<S: Storage + ?Sized>(
        &mut self,
        source: &Source<'_, S>,
        links: &mut Links,
        start: u32,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        let mut at = start;
        // Sectors at the end that hold nothing of a directory: a wrong link.
        let mut strange = 0;
        loop {
            let entries = source.entries(at)?;
            let shape = DirShape::of_entries(&entries, self.max_slots);
            strange = if shape.has_some() { 0 } else { strange + 1 };
            links.take_metadata(at);
            self.sectors.push(at);
            self.slots.extend(entries);
            let next = links.cell(at).unwrap_or(FREE_SECTOR);
            if next == END_OF_CHAIN {
                break;
            }
            if next < source.sectors && links.is_free(next) {
                at = next;
                continue;
            }
            self.damaged = true;
            findings.push(Finding::new(FindingCode::DirChain).at_sector(at).found(next));
            // The link is lost; the sector behind may be the next one.
            let behind = at + 1;
            // A sector in use that is marked free says that such marks are worth nothing here.
            let marks_count = links.cell(at) != Some(FREE_SECTOR);
            if behind < source.sectors
                && links.is_free(behind)
                && !(marks_count && links.cell(behind) == Some(FREE_SECTOR))
                && DirShape::of_entries(&source.entries(behind)?, self.max_slots).is_directory()
            {
                at = behind;
                continue;
            }
            break;
        }
        if strange > 0 {
            self.damaged = true;
            let per_sector = source.geometry.entries_per_sector() as usize;
            let keep = self.sectors.len() - strange;
            links.give_back(&self.sectors[keep..]);
            self.sectors.truncate(keep);
            self.slots.truncate(keep * per_sector);
        }
        Ok(())
    }

    /// Adds sectors that look like the directory and that nobody has.
    pub(super) fn collect<S: Storage + ?Sized>(
        &mut self,
        source: &Source<'_, S>,
        links: &mut Links,
    ) -> Result<(), Error> {
        let has_root = self.slots.first().is_some_and(|raw| raw.object_type == TYPE_ROOT);
        let marked_free = |sector: u32| links.cell(sector) == Some(FREE_SECTOR);
        let marks_count = !self.sectors.iter().any(|&sector| marked_free(sector));
        let candidates: Vec<u32> = source
            .scan()?
            .dirs
            .iter()
            .filter(|dir| {
                let removed = marks_count && marked_free(dir.sector);
                links.is_free(dir.sector) && !removed && !(dir.shape.root && has_root)
            })
            .map(|dir| dir.sector)
            .collect();
        let is_candidate = |sector: u32| candidates.binary_search(&sector).is_ok();
        let mut linked_to: Vec<u32> = candidates
            .iter()
            .filter_map(|&sector| links.cell(sector))
            .filter(|&next| is_candidate(next))
            .collect();
        linked_to.sort_unstable();
        // Chains of candidates in the order of their first sectors, then what only loops hold.
        let firsts = candidates.iter().filter(|sector| linked_to.binary_search(sector).is_err());
        for &first in firsts.chain(&candidates) {
            let mut at = first;
            while is_candidate(at) && links.take_metadata(at) {
                self.sectors.push(at);
                self.slots.extend(source.entries(at)?);
                at = links.cell(at).unwrap_or(END_OF_CHAIN);
            }
        }
        Ok(())
    }

    /// Whether every directory that could be the present one has the entry like this.
    pub(super) fn is_agreed(&self, raw: &RawDirEntry) -> bool {
        self.rivals.is_empty() || {
            let fact = fact_of(raw);
            self.rivals.iter().all(|rival| rival.contains(&fact))
        }
    }

    pub(super) fn root(&self) -> Option<&RawDirEntry> {
        self.slots.first().filter(|raw| raw.object_type == TYPE_ROOT)
    }

    /// Every entry that can be told, each after the storage that holds it; the
    /// root is not among them.
    ///
    /// Entries that no storage reaches come last, those at the top of what is
    /// left of their tree first.
    pub(super) fn tree(&mut self, findings: &mut Vec<Finding>) -> Vec<Placed> {
        let mut placed = Vec::new();
        let mut seen = vec![false; self.slots.len()];
        if let Some(root) = self.root() {
            let child = root.child.get();
            seen[0] = true;
            self.place(child, Held::By(0), &mut seen, &mut placed, findings);
        } else {
            self.damaged = true;
            let found = self.slots.first().map_or(0, |raw| raw.object_type);
            findings.push(Finding::new(FindingCode::RootType).at_entry(0).found(found));
        }

        let orphan = |slot: &u32| {
            let raw = &self.slots[*slot as usize];
            !seen[*slot as usize] && is_good(raw, self.max_slots) && raw.object_type != TYPE_ROOT
        };
        let slots = 0..u32::try_from(self.slots.len()).expect("slots are numbered by u32");
        let orphans: Vec<u32> = slots.filter(orphan).collect();
        if orphans.is_empty() {
            return placed;
        }
        let mut below = vec![false; self.slots.len()];
        for &slot in &orphans {
            let raw = &self.slots[slot as usize];
            for link in [raw.left, raw.right, raw.child] {
                if let Some(below) = below.get_mut(link.get() as usize) {
                    *below = true;
                }
            }
        }
        let mut heads: Vec<u32> =
            orphans.iter().copied().filter(|&slot| !below[slot as usize]).collect();
        // Without a root entry, the largest tree that is left is the root's.
        let mut top = None;
        if self.root().is_none() {
            let size = |&head: &u32| {
                let (mut seen, mut all) = (seen.clone(), Vec::new());
                self.walk(head, Held::Nowhere, &mut seen, &mut all, &mut Vec::new());
                all.len()
            };
            // Few heads, or the sizes are not worth their cost.
            top = if heads.len() <= 16 {
                heads.iter().copied().max_by_key(size)
            } else {
                heads.first().copied()
            };
        }
        if let Some(top) = top {
            heads.retain(|&head| head != top);
            self.walk(top, Held::By(0), &mut seen, &mut placed, findings);
        }
        for head in heads.into_iter().chain(orphans) {
            if !seen[head as usize] {
                findings.push(Finding::new(FindingCode::DirOrphan).at_entry(head));
                self.walk(head, Held::Nowhere, &mut seen, &mut placed, findings);
            }
        }
        placed
    }

    fn place(
        &mut self,
        child: u32,
        held: Held,
        seen: &mut [bool],
        placed: &mut Vec<Placed>,
        findings: &mut Vec<Finding>,
    ) {
        let before = findings.len();
        self.walk(child, held, seen, placed, findings);
        self.damaged |= findings.len() > before;
    }

    /// Follows the links of a storage's entries, and of the storages among them.
    fn walk(
        &self,
        child: u32,
        held: Held,
        seen: &mut [bool],
        placed: &mut Vec<Placed>,
        findings: &mut Vec<Finding>,
    ) {
        let mut storages = vec![(child, held)];
        while let Some((child, held)) = storages.pop() {
            // Ancestors whose left side is done, with their right links.
            let mut above: Vec<(u32, u32)> = Vec::new();
            let mut at = child;
            loop {
                if at == NO_STREAM {
                    let Some((slot, right)) = above.pop() else { break };
                    at = right;
                    let raw = &self.slots[slot as usize];
                    if !is_entry(raw) {
                        findings.push(Finding::new(FindingCode::DirUnusedReached).at_entry(slot));
                        continue;
                    }
                    placed.push(Placed { slot, held });
                    if kind_of(raw) == TYPE_STORAGE {
                        storages.push((raw.child.get(), Held::By(slot)));
                    }
                } else if let Some(seen) = seen.get_mut(at as usize) {
                    if std::mem::replace(seen, true) {
                        findings.push(Finding::new(FindingCode::DirLoop).at_entry(at));
                        at = NO_STREAM;
                    } else {
                        let raw = &self.slots[at as usize];
                        let (left, right) = (raw.left.get(), raw.right.get());
                        above.push((at, right));
                        at = left;
                    }
                } else {
                    findings.push(Finding::new(FindingCode::DirLink).found(at));
                    at = NO_STREAM;
                }
            }
        }
    }
}

/// Whether a slot that a link leads to holds an entry, if need be with a lost type.
fn is_entry(raw: &RawDirEntry) -> bool {
    is_typed(raw) || (has_name(raw) && !is_blank(raw))
}

/// The type, or what the other fields say about it. A root entry in a storage is one.
pub(super) fn kind_of(raw: &RawDirEntry) -> u8 {
    match raw.object_type {
        TYPE_STREAM => TYPE_STREAM,
        TYPE_ROOT | TYPE_STORAGE => TYPE_STORAGE,
        _ if raw.stream_len.get() == 0 && raw.child.get() != NO_STREAM => TYPE_STORAGE,
        _ => TYPE_STREAM,
    }
}

/// The name as readers of the sound file take it.
pub(super) fn name_of(raw: &RawDirEntry) -> Vec<u16> {
    let mut end = usize::from(raw.name_len.get().min(64)).div_ceil(2).min(NAME_UNITS);
    while end > 0 && raw.name[end - 1].get() == 0 {
        end -= 1;
    }
    raw.name[..end].iter().map(|unit| unit.get()).collect()
}

/// Whether a chain holds directory entries, whatever its first sector holds.
fn directory_goes_on<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    links: &Links,
    first: u32,
) -> Result<bool, Error> {
    let mut at = first;
    // A few sectors tell; the chain may be anything.
    for _ in 0..4 {
        if at >= source.sectors || !links.is_free(at) {
            return Ok(false);
        }
        if DirShape::of_entries(&source.entries(at)?, source.max_slots()).good > 0 {
            return Ok(true);
        }
        at = links.cell(at).unwrap_or(END_OF_CHAIN);
    }
    Ok(false)
}

/// The sectors that may have the directory's root entry, by content; the
/// likeliest first, and only those that are as likely.
///
/// A stream may hold a compound file of its own: its directory is in the
/// middle of the stream's chain, so the first sector of a chain is preferred.
/// Directories of an earlier state lie in free sectors; but which are free is
/// not known if the FAT may be of an earlier state too.
fn find_roots<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    links: &Links,
    has_old_states: bool,
) -> Result<Vec<u32>, Error> {
    let dirs = &source.scan()?.dirs;
    let roots = dirs.iter().filter(|dir| dir.shape.root && links.is_free(dir.sector));
    let linked = links.linked_to();
    let order = |sector: u32| {
        let removed = links.cell(sector) == Some(FREE_SECTOR);
        (removed, linked.get(sector as usize) == Some(&true))
    };
    let mut roots: Vec<u32> = roots.map(|dir| dir.sector).collect();
    let best = roots.iter().map(|&root| order(root)).min();
    if has_old_states {
        roots.sort_unstable_by_key(|&root| (order(root), root));
    } else {
        roots.retain(|&root| Some(order(root)) == best);
    }
    // Of some dozen, one is as good as another.
    roots.truncate(16);
    let mut rated = Vec::with_capacity(roots.len());
    for root in roots {
        let sectors = chain_of(source, links, root);
        let ends = sectors.last().and_then(|&last| links.cell(last)) == Some(END_OF_CHAIN);
        rated.push((order(root), !ends, root));
    }
    rated.sort_unstable();
    Ok(rated.into_iter().map(|(.., root)| root).collect())
}

/// The sectors of a chain, as far as nobody has them.
fn chain_of<S: Storage + ?Sized>(source: &Source<'_, S>, links: &Links, first: u32) -> Vec<u32> {
    let mut seen = HashSet::new();
    let mut at = first;
    while at < source.sectors && links.is_free(at) && seen.insert(at) {
        at = links.cell(at).unwrap_or(END_OF_CHAIN);
    }
    let mut sectors = Vec::with_capacity(seen.len());
    at = first;
    while seen.remove(&at) {
        sectors.push(at);
        at = links.cell(at).unwrap_or(END_OF_CHAIN);
    }
    sectors
}

/// The entries of a chain's sectors.
fn read_chain<S: Storage + ?Sized>(
    source: &Source<'_, S>,
    links: &Links,
    first: u32,
) -> Result<Vec<RawDirEntry>, Error> {
    let mut entries = Vec::new();
    for sector in chain_of(source, links, first) {
        entries.extend(source.entries(sector)?);
    }
    Ok(entries)
}
