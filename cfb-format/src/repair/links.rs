//! Chains out of a table that may be damaged: which units (sectors, or mini
//! sectors) belong to which stream, and how sure that is.
//!
//! Streams are served in order of their evidence. First those whose chain has
//! exactly the length that the entry promises and ends with the mark for it:
//! they are certain, and whatever else enters their units is wrong there. Then
//! those whose links contradict nobody. What is left has lost a link and is
//! marked as guessed from there on. Where the missing length tells how it goes
//! on, by a piece of a chain that has it or by where the way behind ends, that is a
//! [claim](claims), and the claims that take the least on trust are served first; then
//! what is likely: the nearest piece of the length, or the unit behind.
//!
//! Every step either claims a unit for good or is counted against a bound in
//! proportion to the table.

mod claims;
mod guess;

use std::ops::Range;

use self::guess::Survey;
use super::ranges;
use crate::layout::END_OF_CHAIN;

/// A cell that is not known. The format keeps this number for future use.
pub(super) const UNKNOWN: u32 = 0xFFFF_FFFB;
/// Start of a run that is nowhere.
pub(super) const GAP: u32 = u32::MAX;

const NOBODY: u32 = u32::MAX;
/// Units of the tables and the directory.
const METADATA: u32 = u32::MAX - 1;

/// What a stream's entry says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) start: u32,
    pub(super) units: u64,
}

/// Where a stream's units are.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// First unit and count; [`GAP`] for units that are lost.
    pub(super) runs: Vec<(u32, u64)>,
    /// Units, counted in the stream, that were taken without a link to them.
    pub(super) guessed: Vec<Range<u64>>,
    /// Units, counted in the stream, that another stream lays claim to.
    pub(super) doubtful: Vec<Range<u64>>,
    /// Whether the chain goes on behind what the entry promises, or ends before.
    pub(super) has_odd_length: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The chain is what the entry promises.
    Exact,
    Settled,
}

impl Found {
    #[cfg(test)]
    pub(super) fn of(runs: Vec<(u32, u64)>) -> Self {
        Self { runs, ..Self::default() }
    }

    fn push(&mut self, unit: u32) {
        match self.runs.last_mut() {
            Some((start, count)) if *start != GAP && u64::from(*start) + *count == unit.into() => {
                *count += 1;
            }
            _ => self.runs.push((unit, 1)),
        }
    }

    fn gap(&mut self, units: u64) {
        if units > 0 {
            self.runs.push((GAP, units));
        }
    }

    /// Where in the stream a unit is.
    fn position(&self, unit: u32) -> Option<u64> {
        let mut at = 0;
        for &(start, count) in &self.runs {
            if start != GAP && unit >= start && u64::from(unit - start) < count {
                return Some(at + u64::from(unit - start));
            }
            at += count;
        }
        None
    }

    /// The runs from unit `from` of the stream on.
    fn tail(&self, mut from: u64) -> Vec<(u32, u64)> {
        let mut tail = Vec::new();
        for &(start, count) in &self.runs {
            let skip = from.min(count);
            from -= skip;
            if skip < count {
                let at = u32::try_from(skip).expect("a unit of the run");
                let start = if start == GAP { GAP } else { start + at };
                tail.push((start, count - skip));
            }
        }
        tail
    }
}

/// A table of links and who has which unit.
pub(super) struct Links {
    cells: Vec<u32>,
    owner: Vec<u32>,
    /// Units whose bytes are in the file at all.
    present: u32,
    wants: Vec<Want>,
    found: Vec<Found>,
    /// Steps that may still come to nothing.
    wasted_left: u64,
    /// Units that may still be given to a second stream.
    shared_left: u64,
    survey: Survey,
}

impl Links {
    pub(super) fn new(cells: Vec<u32>, present: u32) -> Self {
        let units = cells.len();
        Self {
            owner: vec![NOBODY; units],
            present,
            wants: Vec::new(),
            found: Vec::new(),
            wasted_left: 16 * units as u64 + 1024,
            shared_left: units as u64,
            survey: Survey::default(),
            cells,
        }
    }

    pub(super) fn cell(&self, unit: u32) -> Option<u32> {
        self.cells.get(unit as usize).copied()
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.cells.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_free(&self, unit: u32) -> bool {
        self.owner.get(unit as usize) == Some(&NOBODY)
    }

    /// Takes a unit for a table or the directory; false if it is taken.
    pub(super) fn take_metadata(&mut self, unit: u32) -> bool {
        let free = self.is_free(unit);
        if free {
            self.owner[unit as usize] = METADATA;
        }
        free
    }

    /// Undoes [`take_metadata`](Self::take_metadata).
    pub(super) fn give_back(&mut self, units: &[u32]) {
        for &unit in units {
            self.owner[unit as usize] = NOBODY;
        }
    }

    /// For each unit, whether some cell leads to it.
    pub(super) fn linked_to(&self) -> Vec<bool> {
        let mut linked = vec![false; self.cells.len()];
        for &cell in &self.cells {
            if let Some(linked) = linked.get_mut(cell as usize) {
                *linked = true;
            }
        }
        linked
    }

    pub(super) fn found(&self, id: usize) -> &Found {
        &self.found[id]
    }

    pub(super) fn is_exact(&self, id: usize) -> bool {
        self.found[id].state == State::Exact
    }

    /// Streams of at least two units whose chains are what is promised.
    pub(super) fn exact_chains_count(&self) -> u64 {
        let exact = self.found.iter().zip(&self.wants);
        exact.filter(|(found, want)| found.state == State::Exact && want.units > 1).count() as u64
    }

    pub(super) fn units_wanted(&self, id: usize) -> u64 {
        self.wants[id].units
    }

    /// Units of the chain from `start` to its end, if it has one and nobody has any of it.
    pub(super) fn chain_len(&self, start: u32) -> Option<u64> {
        let (mut at, mut count) = (start, 0);
        while at != END_OF_CHAIN {
            if !self.is_free(at) || count > self.cells.len() as u64 {
                return None;
            }
            count += 1;
            at = self.cells[at as usize];
        }
        (count > 0).then_some(count)
    }

    /// Adds a stream to be served, and serves it if its chain is exactly what
    /// is promised. A stream that ends in the units of an exact one before it
    /// gets them too if `share`: one of the two is wrong there.
    pub(super) fn add(&mut self, want: Want, share: bool) -> usize {
        let id = self.wants.len();
        self.wants.push(want);
        self.found.push(Found::default());
        if want.units == 0 {
            self.found[id].state = State::Exact;
        } else {
            self.try_exact(id, share);
        }
        id
    }

    fn try_exact(&mut self, id: usize, share: bool) {
        let want = self.wants[id];
        if want.units > self.cells.len() as u64 || self.wasted_left == 0 {
            return;
        }
        let stamp = stamp(id);
        let mut found = Found::default();
        let (mut at, mut count) = (want.start, 0_u64);
        let mut met = None;
        while let Some(&owner) = self.owner.get(at as usize) {
            if owner != NOBODY {
                met = Some(owner);
                break;
            }
            self.owner[at as usize] = stamp;
            found.push(at);
            count += 1;
            let next = self.cells[at as usize];
            if count == want.units {
                if next == END_OF_CHAIN {
                    found.state = State::Exact;
                    self.found[id] = found;
                    return;
                }
                break;
            }
            at = next;
        }
        if let Some(owner) = met.filter(|&owner| share && owner != stamp && owner != METADATA)
            && self.share_end(id, owner as usize, at, count, &mut found)
        {
            self.found[id] = found;
            return;
        }
        self.unclaim(&found);
        self.wasted_left = self.wasted_left.saturating_sub(count + 1);
    }

    /// Gives a stream the end of another's chain, if that makes it as long as promised.
    fn share_end(
        &mut self,
        id: usize,
        other: usize,
        at: u32,
        count: u64,
        found: &mut Found,
    ) -> bool {
        let theirs = &self.found[other];
        self.wasted_left = self.wasted_left.saturating_sub(theirs.runs.len() as u64);
        let Some(from) = theirs.position(at) else { return false };
        let rest = self.wants[other].units - from;
        // A link to where another stream starts is wrong, and the start is right; so may be
        // one of zeros, which is what overwriting leaves.
        let linked_to_start = (from == 0 || at == 0) && count > 0;
        if linked_to_start || count + rest != self.wants[id].units || rest > self.shared_left {
            return false;
        }
        self.shared_left -= rest;
        for run in theirs.tail(from) {
            found.runs.push(run);
        }
        ranges::add(&mut found.doubtful, count..count + rest);
        ranges::add(&mut self.found[other].doubtful, from..from + rest);
        found.state = State::Exact;
        true
    }

    /// Marks as doubtful the streams that have one of these units.
    pub(super) fn doubt(&mut self, contested: &[u32]) {
        if contested.is_empty() {
            return;
        }
        let mut units = vec![false; self.cells.len()];
        for &unit in contested {
            units[unit as usize] = true;
        }
        for found in &mut self.found {
            let runs = found.runs.iter().filter(|(start, _)| *start != GAP);
            let mut runs = runs.map(|&(start, count)| {
                let count = usize::try_from(count).expect("units of the table");
                &units[start as usize..start as usize + count]
            });
            if runs.any(|run| run.contains(&true)) {
                let all = found.runs.iter().map(|&(_, count)| count).sum();
                ranges::add(&mut found.doubtful, 0..all);
            }
        }
    }

    fn unclaim(&mut self, found: &Found) {
        for &(start, count) in &found.runs {
            let start = start as usize;
            let count = usize::try_from(count).expect("units of the table");
            self.owner[start..start + count].fill(NOBODY);
        }
    }
}

fn stamp(id: usize) -> u32 {
    u32::try_from(id).ok().filter(|&id| id < METADATA).expect("fewer streams than numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::FREE_SECTOR;

    const END: u32 = END_OF_CHAIN;

    fn want(start: u32, units: u64) -> Want {
        Want { start, units }
    }

    fn links(cells: &[u32]) -> Links {
        Links::new(cells.to_vec(), u32::try_from(cells.len()).unwrap())
    }

    #[test]
    fn a_chain_of_the_promised_length_is_certain() {
        let mut links = links(&[1, 4, END, FREE_SECTOR, END]);
        let id = links.add(want(0, 3), true);
        assert!(links.is_exact(id));
        assert_eq!(links.found(id).runs, [(0, 2), (4, 1)]);
        assert!(!links.is_free(4) && links.is_free(2));
        let short = links.add(want(2, 2), true);
        assert!(!links.is_exact(short), "it ends too soon");
    }

    #[test]
    fn two_streams_that_end_in_the_same_units_are_doubtful_there() {
        let mut links = links(&[2, 2, 3, END]);
        let one = links.add(want(0, 3), true);
        let other = links.add(want(1, 3), true);
        for id in [one, other] {
            assert_eq!(links.found(id).doubtful.first(), Some(&(1..3)));
        }
        assert_eq!(links.found(other).runs, [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_lost_link_is_replaced_by_the_unit_behind_and_said_so() {
        let mut links = links(&[1, UNKNOWN, 3, END, END]);
        let id = links.add(want(0, 4), true);
        links.settle(|_| true);
        assert_eq!(links.found(id).runs, [(0, 4)]);
        assert_eq!(links.found(id).guessed.first(), Some(&(2..4)));
    }

    #[test]
    fn a_lost_link_is_replaced_by_the_piece_of_the_missing_length() {
        // Behind the lost link lies a piece of another length.
        let mut links = links(&[UNKNOWN, 2, END, 4, 5, END]);
        let id = links.add(want(0, 4), true);
        links.settle(|_| true);
        assert_eq!(links.found(id).runs, [(0, 1), (3, 3)]);
        assert_eq!(links.found(id).guessed.first(), Some(&(1..4)));
        assert_eq!(links.unowned_chains(), [(1, 2)]);
    }

    #[test]
    fn of_two_streams_that_miss_a_piece_the_one_before_it_has_the_better_claim() {
        // Both have lost a link and miss two units; one of them ends where the piece begins.
        let mut links = links(&[UNKNOWN, END, UNKNOWN, 4, END, UNKNOWN, UNKNOWN]);
        let one = links.add(want(2, 3), true);
        let other = links.add(want(5, 3), true);
        links.settle(|_| true);
        assert_eq!(links.found(one).runs, [(2, 3)]);
        assert_eq!(links.found(one).guessed.first(), Some(&(1..3)));
        assert_ne!(links.found(other).runs.get(1), Some(&(3, 2)));
    }

    #[test]
    fn a_link_to_a_unit_that_lost_its_own_is_followed_and_what_comes_behind_guessed() {
        let mut links = links(&[3, END, END, FREE_SECTOR, FREE_SECTOR, 6, 7, END]);
        let id = links.add(want(0, 5), true);
        links.settle(|_| true);
        assert_eq!(links.found(id).runs, [(0, 1), (3, 1), (5, 3)]);
        assert_eq!(links.found(id).guessed.first(), Some(&(1..5)));
    }

    #[test]
    fn a_lost_link_of_zeros_is_no_claim_to_the_first_unit() {
        let mut links = links(&[1, END, 3, 0, END]);
        let first = links.add(want(0, 2), true);
        let id = links.add(want(2, 3), true);
        links.settle(|_| true);
        assert!(links.found(first).doubtful.is_empty());
        assert_eq!(links.found(id).runs, [(2, 3)]);
    }

    #[test]
    fn without_a_guess_the_rest_is_a_gap() {
        let mut links = links(&[UNKNOWN, END]);
        let id = links.add(want(0, 2), true);
        links.settle(|_| false);
        assert_eq!(links.found(id).runs, [(0, 1), (GAP, 1)]);
    }
}
