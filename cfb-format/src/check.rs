//! The whole-file rules as findings: who owns which sector, and whether
//! lengths, starts and trees fit.
//!
//! What can be seen while a file is read (header, DIFAT, FAT marks, directory
//! fields) is found by the decoders; here is what takes a look at everything
//! at once.

use std::collections::HashSet;

use alloc_core::{Chain, Run, SectorCount, SectorId, SectorSet};

use crate::dir_entry::EntryKind;
use crate::dir_tree::walk::{TreeFault, faults};
use crate::directory::ROOT;
use crate::finding::{Finding, FindingCode};
use crate::layout::{DIFAT_SECTOR, END_OF_CHAIN, FAT_SECTOR, FREE_SECTOR};
use crate::state::State;

/// Paths of findings take at most so many bytes for each slot of the directory, and
/// [`PATH_BYTES`] more: what is deep enough has paths longer than itself.
const PATH_BYTES_PER_SLOT: usize = 256;
const PATH_BYTES: usize = 1 << 20;

/// Chains are followed for at most so many sectors for each one of the file, and
/// [`STEPS`] more: many entries may lead into one chain.
const STEPS_PER_SECTOR: u64 = 16;
const STEPS: u64 = 1 << 16;

/// Every finding of a file just read, worst first.
///
/// Takes time and memory in proportion to the file, whatever is in it.
pub(crate) fn verify(state: &State) -> Vec<Finding> {
    let mut findings = state.findings.clone();
    check_trees(state, &mut findings);
    check_ownership(state, &mut findings);
    check_range_lock(state, &mut findings);
    check_last_sector(state, &mut findings);
    // One field may break a rule in several ways, and two links may lead to one slot.
    let mut told = HashSet::with_capacity(findings.len());
    findings.retain(|finding| told.insert(finding.clone()));
    drop(told);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    name_entries(state, &mut findings);
    findings
}

/// Adds the paths of entries, the worst findings first, as long as there is room.
fn name_entries(state: &State, findings: &mut [Finding]) {
    let mut room = state.dir.slots_count() as usize * PATH_BYTES_PER_SLOT + PATH_BYTES;
    for finding in findings {
        if let Some(slot) = finding.entry()
            && state.dir.has_entry(slot)
        {
            let path = state.dir.path(slot);
            let Some(rest) = room.checked_sub(path.len()) else { break };
            room = rest;
            *finding = finding.clone().named(path);
        }
    }
}

/// Order and colours of every storage's tree. [MS-CFB] 2.6.4
fn check_trees(state: &State, findings: &mut Vec<Finding>) {
    for slot in state.dir.slots() {
        let entry = state.dir.entry(slot);
        if entry.kind == EntryKind::Stream || state.dir.tree_fault(slot).is_none() {
            continue;
        }
        for fault in faults(&state.dir, entry.child, state.dir.slots_count()) {
            let (code, at) = match fault {
                TreeFault::OutOfOrder { slot } => (FindingCode::DirOrder, slot),
                TreeFault::TwoReds { slot } => (FindingCode::DirTwoReds, slot),
                TreeFault::RedRoot { slot } => (FindingCode::DirRedRoot, slot),
                TreeFault::BlackHeight { slot } => (FindingCode::DirBlackHeight, slot),
                // Links that lead astray were found when they were followed.
                TreeFault::OutOfRange { .. } | TreeFault::Shared { .. } => continue,
            };
            findings.push(Finding::new(code).at_entry(at));
        }
    }
}

/// Claims every sector once, for whom it belongs to.
struct Ledger {
    claimed: SectorSet,
    total: u32,
    /// How far chains may still be followed through what is claimed already.
    steps_left: u64,
}

impl Ledger {
    fn new(total: u32) -> Self {
        Self {
            claimed: SectorSet::new(SectorCount::new(total)),
            total,
            steps_left: u64::from(total) * STEPS_PER_SECTOR + STEPS,
        }
    }

    /// Claims a chain; gives the first sector that is another's already.
    fn claim(&mut self, runs: impl Iterator<Item = Run>) -> Option<SectorId> {
        let mut taken = None;
        for run in runs {
            if run.end().get() > self.total {
                continue;
            }
            taken = taken.or(self.claimed.first_common(run));
            self.claimed.insert_run(run);
        }
        taken
    }

    /// Claims what links lead to, up to the first sector that another has, and gives that.
    fn claim_links(&mut self, cells: &[u32], start: u32) -> Option<SectorId> {
        let (mut at, mut count) = (start, 0);
        while at < self.total
            && let Some(&next) = cells.get(at as usize)
        {
            let sector = SectorId::new(at);
            if self.claimed.contains(sector) {
                let mut own = start;
                let is_loop = (0..count).any(|_| {
                    let here = own;
                    own = cells[here as usize];
                    here == at
                });
                return (!is_loop).then_some(sector);
            }
            self.claimed.insert_run(Run::single(sector));
            count += 1;
            at = next;
        }
        None
    }
}

fn check_ownership(state: &State, findings: &mut Vec<Finding>) {
    let mini_stream = state.mini_stream.read().expect("not poisoned");
    let mut sectors = Ledger::new(state.sectors_count());
    let mini_total =
        mini_stream.sector_count().get().saturating_mul(state.geometry.minis_per_sector());
    let mut minis = Ledger::new(mini_total);

    let fat_own = state.fat_sectors.iter().flatten().chain(&state.difat_sectors);
    let mut own = |taken: Option<SectorId>| {
        if let Some(sector) = taken {
            findings.push(Finding::new(FindingCode::SectorShared).at_sector(sector.get()));
        }
    };
    own(sectors.claim(fat_own.map(|&sector| Run::single(sector))));
    own(sectors.claim(state.dir_chain.runs()));
    own(sectors.claim(state.mini_fat_chain.runs()));
    own(sectors.claim(mini_stream.runs()));

    for slot in state.dir.slots() {
        let entry = state.dir.entry(slot);
        if entry.kind != EntryKind::Stream {
            continue;
        }
        let is_mini = state.geometry.is_mini(entry.len_bytes);
        let (ledger, unit, code) = if is_mini {
            (&mut minis, state.geometry.mini_bytes(), FindingCode::MiniSectorShared)
        } else {
            (&mut sectors, state.geometry.sector_bytes(), FindingCode::SectorShared)
        };
        // Whether its chain is whole is not worth a walk through others' chains for ever.
        let is_tired = ledger.steps_left == 0 && entry.len_bytes > 0;
        if is_tired {
            let cells = if is_mini { state.mini_fat().cells() } else { state.fat().cells() };
            if let Some(sector) = ledger.claim_links(cells, entry.start_sector) {
                findings.push(Finding::new(code).at_entry(slot).at_sector(sector.get()));
                continue;
            }
        }
        let found = state.find_stream(slot);
        ledger.steps_left =
            ledger.steps_left.saturating_sub(found.chain.sector_count().get().into());
        if found.damage.is_some() {
            findings.push(
                Finding::new(FindingCode::StreamBroken)
                    .at_entry(slot)
                    .found(found.intact)
                    .expected(entry.len_bytes),
            );
        }
        if found.broken.is_some() && found.damage.is_none() {
            findings.push(Finding::new(FindingCode::ChainEnd).at_entry(slot));
        }
        let chain_bytes = found.chain.sector_count().bytes(unit);
        if chain_bytes >= entry.len_bytes.saturating_add(u64::from(unit)) {
            findings.push(
                Finding::new(FindingCode::StreamChainLong)
                    .at_entry(slot)
                    .found(chain_bytes)
                    .expected(entry.len_bytes),
            );
        }
        let taken = if is_tired { None } else { ledger.claim(found.chain.runs()) };
        if let Some(sector) = taken {
            findings.push(Finding::new(code).at_entry(slot).at_sector(sector.get()));
        }
    }
    check_cells(state, &sectors, findings);
    check_mini_cells(state, &minis, &mini_stream, findings);
}

/// FAT cells in use that nobody claims, and cells that make no sense.
fn check_cells(state: &State, sectors: &Ledger, findings: &mut Vec<Finding>) {
    let lock = state.range_lock();
    for (sector, &cell) in (0..sectors.total).zip(state.fat().cells()) {
        let id = SectorId::new(sector);
        let marks = matches!(cell, FREE_SECTOR | END_OF_CHAIN | FAT_SECTOR | DIFAT_SECTOR);
        if !marks && cell >= sectors.total {
            findings.push(Finding::new(FindingCode::FatBadCell).at_sector(sector).found(cell));
        }
        let own_mark = matches!(cell, FREE_SECTOR | FAT_SECTOR | DIFAT_SECTOR);
        if !own_mark && !sectors.claimed.contains(id) && lock != Some(sector) {
            findings.push(Finding::new(FindingCode::SectorUnused).at_sector(sector).found(cell));
        }
    }
}

fn check_mini_cells(
    state: &State,
    minis: &Ledger,
    mini_stream: &Chain,
    findings: &mut Vec<Finding>,
) {
    let root_len = state.dir.entry(ROOT).len_bytes;
    let mini_bytes = u64::from(state.geometry.mini_bytes());
    let used = u32::try_from(root_len.div_ceil(mini_bytes)).unwrap_or(u32::MAX);
    let cells = state.mini_fat().cells();
    for (mini, &cell) in (0_u32..).zip(cells) {
        if cell == FREE_SECTOR {
            continue;
        }
        if mini >= used {
            findings.push(Finding::new(FindingCode::MiniFatPastEnd).at_sector(mini).found(cell));
            break;
        }
        if mini < minis.total && !minis.claimed.contains(SectorId::new(mini)) {
            findings.push(Finding::new(FindingCode::MiniSectorUnused).at_sector(mini).found(cell));
        }
    }
    let needed = used.min(minis.total);
    if (cells.len() as u64) < u64::from(needed) && !mini_stream.is_empty() {
        findings.push(
            Finding::new(FindingCode::MiniFatShort).found(cells.len() as u64).expected(needed),
        );
    }
}

/// No data may lie where Windows locks bytes. [MS-CFB] 2.7
fn check_range_lock(state: &State, findings: &mut Vec<Finding>) {
    if let Some(sector) = state.range_lock() {
        let cell = state.fat().get(sector).unwrap_or(FREE_SECTOR);
        if cell != END_OF_CHAIN {
            findings.push(
                Finding::new(FindingCode::RangeLock)
                    .at_sector(sector)
                    .found(cell)
                    .expected(END_OF_CHAIN),
            );
        }
    }
}

/// What the last sector lacks is read as zeros: no loss in a stream that ends before, but
/// one in a table. [MS-CFB] 2.1
fn check_last_sector(state: &State, findings: &mut Vec<Finding>) {
    let is_cut = state.findings.iter().any(|f| f.code() == FindingCode::FilePartialSector);
    let Some(last) = state.sectors_count().checked_sub(1).map(SectorId::new).filter(|_| is_cut)
    else {
        return;
    };
    if state.metadata_runs().any(|run| run.contains(last)) {
        findings.push(Finding::new(FindingCode::FileCutMetadata).at_sector(last.get()));
    }
}
