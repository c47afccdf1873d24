//! What a damaged file still says about a stream, told without the library: the measure of what a repair has to bring back.
//!
//! A stream's bytes are known if its sectors are untouched and each of its links, or something in its place, is left:
//!
//! * the cell itself;
//! * the place behind: the stream goes on in the next sector that is not the tables' or the directory's, no other stream
//!   starts there or is led there, and no piece elsewhere has just the missing length;
//! * the length: the stream goes on in a piece that no link leads to, which ends after just so many sectors as are
//!   missing, no other piece does, no other stream misses as many after a lost link, and it cannot go on in the place
//!   behind, or only by accident.
//!
//! The same holds for mini sectors, where the mini stream itself must be known too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cfb_format::Version;

use crate::common::raw::{END, FREE, Owner, kind};
use crate::judge::{expect_none, judge_guesses, overwritten};
use crate::samples::{Sample, small, turns};

/// A piece of this length hardly has the missing length by accident.
const LONG: usize = 12;

/// Why a stream can be brought back, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// Every link is left.
    Linked,
    /// Lost links lead to the place behind.
    Behind,
    /// A lost link leads to the only piece of the missing length.
    Length,
}

/// A table of links, and which of them are left.
struct Table<'a> {
    cells: &'a [u32],
    lost: Vec<bool>,
    /// Units that are a table's or the directory's.
    metadata: Vec<bool>,
    /// Where the streams with this table start.
    starts: BTreeSet<u32>,
    /// For each unit, whether a link that is left leads to it.
    led_to: Vec<bool>,
    /// Pieces that nothing leads to: length and how many.
    pieces: BTreeMap<usize, usize>,
    /// How many lost links of streams have so many sectors behind them.
    missing: BTreeMap<usize, usize>,
}

impl<'a> Table<'a> {
    fn new(cells: &'a [u32], lost: Vec<bool>, metadata: Vec<bool>, starts: BTreeSet<u32>) -> Self {
        let mut led_to = vec![false; cells.len()];
        for (unit, &cell) in cells.iter().enumerate() {
            if !lost[unit]
                && !metadata[unit]
                && let Some(led) = led_to.get_mut(cell as usize)
            {
                *led = true;
            }
        }
        let mut table = Self {
            cells,
            lost,
            metadata,
            starts,
            led_to,
            pieces: BTreeMap::new(),
            missing: BTreeMap::new(),
        };
        for head in 0..cells.len() as u32 {
            if let Some(len) = table.piece(head) {
                *table.pieces.entry(len).or_default() += 1;
            }
        }
        table
    }

    /// The length of the piece that starts at a unit that nothing leads to, if every link of it is left.
    fn piece(&self, head: u32) -> Option<usize> {
        let (mut at, mut len) = (head, 1);
        if self.led_to[head as usize] || self.starts.contains(&head) || self.metadata[head as usize]
        {
            return None;
        }
        loop {
            if *self.lost.get(at as usize)? {
                return None;
            }
            match self.cells[at as usize] {
                END => return Some(len),
                next => at = next,
            }
            len += 1;
        }
    }

    /// Counts what a chain misses behind each of its lost links.
    fn count_missing(&mut self, chain: &[u32]) {
        for (nth, &unit) in chain.iter().enumerate() {
            if self.lost[unit as usize] {
                *self.missing.entry(chain.len() - nth - 1).or_default() += 1;
            }
        }
    }

    /// Whether a stream that has lost its link cannot go on in a unit.
    fn is_ruled_out(&self, unit: u32) -> bool {
        let Some(&cell) = self.cells.get(unit as usize) else { return true };
        let is_free = !self.lost[unit as usize] && cell == FREE;
        is_free
            || self.led_to[unit as usize]
            || self.starts.contains(&unit)
            || self.piece(unit).is_some()
    }

    /// How the units of a chain are known, if they are.
    fn known(&self, chain: &[u32]) -> Option<Known> {
        let mut known = Known::Linked;
        for (nth, pair) in chain.windows(2).enumerate() {
            let (at, next) = (pair[0], pair[1]);
            if !self.lost[at as usize] {
                continue;
            }
            let behind =
                (at + 1..self.cells.len() as u32).find(|&unit| !self.metadata[unit as usize]);
            if self.led_to[next as usize] || self.starts.contains(&next) {
                return None;
            }
            let rest = chain.len() - nth - 1;
            let fits = self.piece(next) == Some(rest);
            let others = self.pieces.get(&rest).copied().unwrap_or(0) - usize::from(fits);
            if behind == Some(next) {
                if !fits && others > 0 {
                    return None;
                }
                known = known.max(Known::Behind);
                continue;
            }
            let not_behind = behind.is_none_or(|unit| self.is_ruled_out(unit));
            let is_told = fits && others == 0 && self.missing.get(&rest) == Some(&1);
            return (is_told && (not_behind || rest >= LONG)).then_some(Known::Length);
        }
        Some(known)
    }
}

/// How a stream is known, with the mini stream if it lies in that, and by its own links.
struct Ways {
    all: Known,
    own: Known,
}

/// How each stream is known after the damage, for those whose own bytes are untouched and that are.
fn known(sample: &Sample, touched: &[Range<usize>]) -> BTreeMap<String, Ways> {
    let sector_bytes = sample.sector_bytes();
    let is_hit =
        |at: usize, len: usize| touched.iter().any(|hit| at < hit.end && hit.start < at + len);
    let account = &sample.account;
    let cells_of = |table: &[usize], count: usize| -> Vec<bool> {
        let per_sector = sector_bytes / 4;
        (0..count).map(|unit| is_hit(table[unit / per_sector] + unit % per_sector * 4, 4)).collect()
    };
    let streams = || account.items.iter().filter(|item| item.kind == kind::STREAM && item.len > 0);
    let large = |len: u64| len >= 4096;

    let fat = &account.fat[..account.owners.len()];
    let metadata = |owner: &Owner| {
        matches!(owner, Owner::Fat | Owner::Difat | Owner::Directory | Owner::MiniFat)
    };
    let mut starts: BTreeSet<u32> =
        streams().filter(|item| large(item.len)).map(|item| item.start).collect();
    starts.extend(account.mini_stream.first());
    let mut sectors = Table::new(
        fat,
        cells_of(&sample.fat_places(), fat.len()),
        account.owners.iter().map(metadata).collect(),
        starts,
    );
    let minis_count = (account.mini_stream.len() * sector_bytes / 64).min(account.mini_fat.len());
    let mut minis = Table::new(
        &account.mini_fat[..minis_count],
        cells_of(&sample.mini_fat_places(), minis_count),
        vec![false; minis_count],
        streams().filter(|item| !large(item.len)).map(|item| item.start).collect(),
    );
    for item in streams() {
        if large(item.len) { &mut sectors } else { &mut minis }.count_missing(&item.chain);
    }
    sectors.count_missing(&account.mini_stream);
    // The tables and the directory themselves are found by content: they have to be known for everything else.
    let mini_stream = sectors.known(&account.mini_stream);
    let mut all = BTreeMap::new();
    for item in streams() {
        let slot = sample.slot_at(item.slot);
        if is_hit(slot, 128) || sample.places(&item.path).iter().any(|&(at, len)| is_hit(at, len)) {
            continue;
        }
        let (own, home) = if large(item.len) {
            (sectors.known(&item.chain), Some(Known::Linked))
        } else {
            (minis.known(&item.chain), mini_stream)
        };
        if let (Some(own), Some(home)) = (own, home) {
            all.insert(item.path.clone(), Ways { all: own.max(home), own });
        }
    }
    all
}

/// Overwrites parts of a table in every way and judges what comes back of each stream by what is known of it.
fn overwrite(
    sample: &Sample,
    places: &[usize],
    lengths: &[usize],
    counts: &mut BTreeMap<Known, usize>,
) -> (usize, Vec<String>) {
    let (mut cases, mut complaints) = (0, Vec::new());
    let mut ranges: Vec<Vec<Range<usize>>> = Vec::new();
    for &sector in places {
        for len in lengths.iter().map(|&len| len.min(sample.sector_bytes())) {
            let starts = (0..sample.sector_bytes()).step_by(len);
            let end = |at: usize| (at + len).min(sample.sector_bytes());
            ranges
                .extend(starts.map(|at| std::iter::once(sector + at..sector + end(at)).collect()));
        }
    }
    let whole = |&at: &usize| at..at + sample.sector_bytes();
    ranges.push(places.iter().map(whole).collect());
    for touched in ranges {
        let known = known(sample, &touched);
        for how in ["zeros", "ones", "noise"] {
            let mut damaged = sample.bytes.clone();
            for range in &touched {
                let next = overwritten(&damaged, range).find(|(name, _)| *name == how);
                damaged = next.expect("one of the three ways").1;
            }
            cases += 1;
            for known in known.values() {
                *counts.entry(known.all).or_default() += 1;
            }
            let what = format!("{how} over {} ranges, the first {:?}", touched.len(), touched[0]);
            let found = judge_guesses(
                sample,
                &damaged,
                &touched,
                &what,
                |path| known.contains_key(path),
                |path| known.get(path).is_some_and(|known| known.own != Known::Linked),
            );
            let ways = |text: String| {
                let named = known.iter().filter(|(path, _)| text.contains(&format!("{path:?}")));
                let named: Vec<_> =
                    named.map(|(path, known)| format!("{path} {:?}", known.all)).collect();
                format!("{named:?}: {text}")
            };
            complaints.extend(found.into_iter().map(ways));
        }
    }
    (cases, complaints)
}

fn samples() -> Vec<Sample> {
    let mut samples = small();
    samples.extend([turns(Version::V3), turns(Version::V4)]);
    samples
}

/// How much is overwritten at once.
fn lengths(sample: &Sample) -> &'static [usize] {
    match (sample.sector_bytes(), sample.name.starts_with("by turns")) {
        (512, false) => &[4, 64, 512],
        (512, true) => &[36, 512],
        (_, false) => &[36, 256, 4096],
        (_, true) => &[68, 1024, 4096],
    }
}

/// Overwrites these places of all samples.
fn overwrite_all(places_of: fn(&Sample) -> Vec<usize>) {
    let (mut cases, mut complaints) = (0, Vec::new());
    let mut counts: BTreeMap<Known, usize> = BTreeMap::new();
    for sample in samples() {
        let places = places_of(&sample);
        let (more, found) = overwrite(&sample, &places, lengths(&sample), &mut counts);
        cases += more;
        complaints.extend(found);
    }
    println!("{cases} cases, streams by what is known of them: {counts:?}");
    expect_none(&complaints, cases);
}

#[test]
fn what_is_known_of_a_stream_comes_back_from_an_overwritten_fat() {
    overwrite_all(Sample::fat_places);
}

#[test]
fn what_is_known_of_a_stream_comes_back_from_an_overwritten_mini_fat() {
    overwrite_all(Sample::mini_fat_places);
}

#[test]
fn what_is_known_of_a_stream_comes_back_from_a_cut_file() {
    let (mut cases, mut complaints) = (0, Vec::new());
    let mut counts: BTreeMap<Known, usize> = BTreeMap::new();
    for sample in samples() {
        for kept in 0..sample.account.owners.len() {
            let end = (kept + 1) * sample.sector_bytes() + [0, 100][kept % 2];
            let damaged = &sample.bytes[..end.min(sample.bytes.len())];
            let cut = std::iter::once(end..usize::MAX).collect::<Vec<_>>();
            let known = known(&sample, &cut);
            cases += 1;
            for known in known.values() {
                *counts.entry(known.all).or_default() += 1;
            }
            let what = format!("cut to {end} bytes");
            complaints.extend(judge_guesses(
                &sample,
                damaged,
                &cut,
                &what,
                |path| known.contains_key(path),
                |path| known.get(path).is_some_and(|known| known.own != Known::Linked),
            ));
        }
    }
    println!("{cases} cases, streams by what is known of them: {counts:?}");
    expect_none(&complaints, cases);
}
