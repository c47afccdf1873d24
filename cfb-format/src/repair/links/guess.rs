//! Streams whose chains are not what their entries promise: by links that
//! contradict nobody as far as these go, then by guesses.

use std::collections::HashMap;

use super::claims::LONG_UNITS;
use super::{Found, GAP, Links, METADATA, NOBODY, State, UNKNOWN, Want, stamp};
use crate::layout::{END_OF_CHAIN, FREE_SECTOR};
use crate::repair::ranges;

/// What is known about the table while streams are guessed.
#[derive(Default)]
pub(super) struct Survey {
    /// Links to each unit from units that nobody has, and starts at it.
    pub(super) into: Vec<u8>,
    pub(super) starts: Vec<u8>,
    /// Pieces of chains without a start: first unit to length.
    pub(super) pieces: HashMap<u32, u64>,
    /// For each unit, the first from it on that is taken or begins a stream.
    pub(super) blocked: Vec<u32>,
    /// The first units of the pieces of one length, ascending.
    by_length: HashMap<u64, Vec<u32>>,
}

impl Links {
    /// Serves every stream that is still open, by guesses in the end.
    ///
    /// `may_guess` says for which streams a guess is better than nothing.
    pub(in crate::repair) fn settle(&mut self, may_guess: impl Fn(usize) -> bool) {
        let mut open: Vec<usize> =
            (0..self.found.len()).filter(|&id| self.found[id].state == State::Open).collect();
        // A length beyond the table is overwritten, and then the start may be as well.
        let absurd: Vec<usize> =
            open.extract_if(.., |&mut id| self.wants[id].units > self.cells.len() as u64).collect();
        self.count_links(&open);
        open.retain(|&id| !self.follow(id));
        self.find_pieces();
        self.find_blocked();
        // By where they start: each ends where the next begins at the latest.
        open.sort_by_key(|&id| (self.wants[id].start, id));
        self.serve_claims(&mut open, &may_guess);
        let (with_start, without): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|&id| self.is_free(self.wants[id].start));
        for id in with_start.into_iter().chain(without) {
            self.guess(id, may_guess(id));
        }
        for id in absurd {
            self.guess(id, false);
            let found = &mut self.found[id];
            let units = found.runs.iter().filter(|run| run.0 != GAP).map(|run| run.1).sum();
            ranges::add(&mut found.doubtful, 0..units);
        }
    }

    /// Counts, for each unit, the links and starts that lead to it.
    fn count_links(&mut self, open: &[usize]) {
        self.survey.into = vec![0; self.cells.len()];
        self.survey.starts = vec![0; self.cells.len()];
        for (&cell, &owner) in self.cells.iter().zip(&self.owner) {
            if owner == NOBODY
                && let Some(count) = self.survey.into.get_mut(cell as usize)
            {
                *count = count.saturating_add(1);
            }
        }
        for &id in open {
            if let Some(count) = self.survey.starts.get_mut(self.wants[id].start as usize) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// The unit that a unit's cell leads to, if nothing contradicts.
    pub(super) fn next_unit(&self, unit: u32) -> Option<u32> {
        let next = self.cell(unit)?;
        let cell = self.cell(next)?;
        let alone = self.is_free(next)
            && self.survey.into[next as usize] == 1
            && self.survey.starts[next as usize] == 0;
        // A link into what no chain goes through may be the one that is wrong, and so
        // may one beside what was overwritten: half of it may have been.
        let goes_on = cell == END_OF_CHAIN || cell < self.len();
        let likely = next == unit + 1 || (goes_on && !self.is_at_edge(unit));
        (alone && likely).then_some(next)
    }

    /// Whether a neighbour of a unit's cell is impossible or zero.
    pub(super) fn is_at_edge(&self, unit: u32) -> bool {
        let damaged = |unit: Option<u32>| {
            let cell = unit.and_then(|unit| self.cell(unit));
            matches!(cell, Some(UNKNOWN | 0))
        };
        damaged(unit.checked_sub(1)) || damaged(unit.checked_add(1))
    }

    /// Serves a stream whose links contradict nobody as far as it needs them.
    fn follow(&mut self, id: usize) -> bool {
        let want = self.wants[id];
        if !self.is_free(want.start)
            || self.survey.starts[want.start as usize] != 1
            || self.survey.into[want.start as usize] != 0
        {
            return false;
        }
        let mut found = Found::default();
        let mut at = want.start;
        let mut count = 0;
        loop {
            self.owner[at as usize] = stamp(id);
            found.push(at);
            count += 1;
            if count == want.units {
                break;
            }
            let Some(next) = self.next_unit(at) else {
                self.unclaim(&found);
                return false;
            };
            at = next;
        }
        // The rest of the chain is the stream's too.
        while let Some(next) = self.next_unit(at) {
            found.has_odd_length = true;
            self.owner[next as usize] = stamp(id);
            at = next;
        }
        found.state = State::Exact;
        self.found[id] = found;
        true
    }

    /// Finds the pieces of chains that have an end and lack a beginning.
    fn find_pieces(&mut self) {
        self.survey.pieces.clear();
        self.survey.by_length.clear();
        for first in 0..self.len() {
            if !self.is_head(first) {
                continue;
            }
            let (mut at, mut count) = (first, 1);
            while let Some(next) = self.next_unit(at).or_else(|| self.lone_link(at)) {
                at = next;
                count += 1;
            }
            if self.cells[at as usize] == END_OF_CHAIN {
                self.survey.pieces.insert(first, count);
                self.survey.by_length.entry(count).or_default().push(first);
            }
        }
    }

    fn find_blocked(&mut self) {
        self.survey.blocked = vec![0; self.cells.len()];
        let mut next = self.present.min(self.len());
        for unit in (0..self.len()).rev() {
            let taken = self.owner[unit as usize] < METADATA;
            if unit >= self.present {
                self.survey.blocked[unit as usize] = unit;
                continue;
            }
            if taken || self.survey.starts[unit as usize] > 0 {
                next = unit;
            }
            self.survey.blocked[unit as usize] = next;
        }
    }

    fn is_head(&self, unit: u32) -> bool {
        let cell = self.cells[unit as usize];
        let in_chain = cell == END_OF_CHAIN || cell < self.len();
        in_chain
            && self.is_free(unit)
            && self.survey.into[unit as usize] == 0
            && self.survey.starts[unit as usize] == 0
    }

    /// First unit and length of every whole chain that nobody has.
    pub(in crate::repair) fn unowned_chains(&mut self) -> Vec<(u32, u64)> {
        self.count_links(&[]);
        self.find_pieces();
        let mut pieces: Vec<_> =
            self.survey.pieces.iter().map(|(&first, &count)| (first, count)).collect();
        pieces.sort_unstable();
        pieces
    }

    /// The units of a chain of [`unowned_chains`](Self::unowned_chains).
    pub(in crate::repair) fn chain_found(&self, first: u32, units: u64) -> Found {
        let mut found = Found::default();
        let mut at = first;
        for _ in 0..units {
            found.push(at);
            at = self.cells[at as usize];
        }
        found
    }

    /// Serves a stream that has lost a link, as far as the rest can be guessed.
    fn guess(&mut self, id: usize, may_guess: bool) {
        let want = self.wants[id];
        let mut found = Found { state: State::Settled, ..Found::default() };
        let mut guessed_from = None;
        let mut at = want.start;
        if !self.is_free(at) {
            let start = if may_guess { self.piece_of(want.units, None) } else { None };
            let Some(start) = start else {
                if may_guess {
                    self.share_start(id);
                } else {
                    found.gap(want.units);
                    self.found[id] = found;
                }
                return;
            };
            guessed_from = Some(0);
            at = start;
        }
        let mut count = 0;
        // Whether the way behind lost links comes to an end where it should: all along
        // it the answer is the same.
        let mut fits_behind = None;
        while count < want.units {
            self.owner[at as usize] = stamp(id);
            found.push(at);
            count += 1;
            if count == want.units {
                break;
            }
            if let Some(next) = self.next_unit(at) {
                at = next;
                continue;
            }
            if self.cells[at as usize] == END_OF_CHAIN {
                // One of the two is wrong; if it is the length, the stream ends in here.
                found.has_odd_length = true;
                ranges::add(&mut found.doubtful, count - 1..count);
                break;
            }
            let rest = want.units - count;
            let next = if may_guess { self.guess_next(at, rest, &mut fits_behind) } else { None };
            if let Some(next) = next {
                guessed_from = guessed_from.or(Some(count));
                at = next;
                continue;
            }
            count = self.share_rest(id, at, count, want.units, &mut found);
            break;
        }
        found.gap(want.units - count);
        if let Some(from) = guessed_from {
            ranges::add(&mut found.guessed, from..count);
        }
        self.found[id] = found;
    }

    /// A piece of just this length: the only one, or if `near` the first behind a unit.
    pub(super) fn piece_of(&mut self, units: u64, near: Option<u32>) -> Option<u32> {
        let firsts = self.survey.by_length.get(&units)?;
        let mut found: Option<u32> = None;
        for &first in firsts {
            self.wasted_left = self.wasted_left.checked_sub(1)?;
            if !self.is_free(first) {
                continue;
            }
            match (near, found) {
                (None, Some(_)) => return None,
                (Some(unit), _) if first > unit => return Some(first),
                (_, None) => found = Some(first),
                (Some(_), Some(_)) => {}
            }
        }
        found
    }

    /// Whether the links from a unit on, whoever has them, end after just so many units.
    pub(super) fn ends_after(&mut self, from: u32, units: u64) -> bool {
        let mut at = from;
        for _ in 1..units {
            let Some(next) = self.cell(at).filter(|_| self.wasted_left > 0) else { return false };
            self.wasted_left -= 1;
            at = next;
        }
        self.cell(at) == Some(END_OF_CHAIN)
    }

    /// What may come after a unit whose link is lost, with `rest` units to go.
    fn guess_next(&mut self, at: u32, rest: u64, fits_behind: &mut Option<bool>) -> Option<u32> {
        let cell = self.cells[at as usize];
        if cell == END_OF_CHAIN {
            return None;
        }
        // Zeros are what overwriting leaves, more often than a second link to the first unit.
        let is_link = cell != 0 && self.cell(cell).is_some() && !self.is_start(cell);
        if is_link && self.ends_after(cell, rest) {
            return self.lone_link(at);
        }
        let behind = self.unit_behind(at, rest);
        if behind.is_some_and(|behind| self.survey.pieces.get(&behind) == Some(&rest)) {
            return behind;
        }
        if let Some(next) = self.lone_link(at) {
            return Some(next);
        }
        // A link that looks sound and is contradicted by others is followed as doubtful.
        if is_link && !self.looks_damaged(at) {
            return None;
        }
        // Where a piece of another length lies, the stream does not go on.
        let behind = behind.filter(|behind| !self.survey.pieces.contains_key(behind));
        let room = behind.map(|behind| u64::from(self.survey.blocked[behind as usize] - behind));
        // What fits just between here and the next stream belongs here, and a long
        // piece does not have the missing length by accident.
        if room == Some(rest) {
            return behind;
        }
        let piece = self.piece_of(rest, None);
        let is_marked_free =
            behind.is_some_and(|behind| self.cells[behind as usize] == FREE_SECTOR);
        let goes_behind = behind.is_some_and(|behind| match *fits_behind {
            Some(fits) => fits,
            None => *fits_behind.insert(self.reaches_end(behind, rest)),
        });
        if piece.is_some() && (rest >= LONG_UNITS || behind.is_none()) {
            return piece;
        }
        if goes_behind && piece.is_none() {
            return behind;
        }
        if goes_behind {
            return behind;
        }
        if is_marked_free && piece.is_some() {
            return piece;
        }
        if room.is_some_and(|room| room >= rest) {
            return behind;
        }
        piece.or(behind).or_else(|| self.piece_of(rest, Some(at)))
    }

    /// Whether a stream starts at a unit: a link to it is wrong.
    pub(super) fn is_start(&self, unit: u32) -> bool {
        let owner = self.owner.get(unit as usize).copied().unwrap_or(NOBODY);
        let is_owners = self.wants.get(owner as usize).is_some_and(|want| want.start == unit);
        is_owners || self.survey.starts.get(unit as usize).is_some_and(|&count| count > 0)
    }

    /// Whether a cell that is a possible link has the marks of overwriting:
    /// zeros, or neighbours that are the same or impossible.
    pub(super) fn looks_damaged(&self, at: u32) -> bool {
        let cell = self.cells[at as usize];
        let same = |unit: Option<u32>| unit.and_then(|unit| self.cell(unit)) == Some(cell);
        cell == 0 || self.is_at_edge(at) || same(at.checked_sub(1)) || same(at.checked_add(1))
    }

    /// Follows links into units that another stream has; gives how many units
    /// the stream then has.
    fn share_rest(&mut self, id: usize, from: u32, had: u64, units: u64, found: &mut Found) -> u64 {
        let mut count = had;
        let mut at = from;
        while count < units && self.shared_left > 0 {
            let Some(next) = self.cell(at).filter(|&next| self.cell(next).is_some()) else { break };
            let owner = self.owner[next as usize];
            if owner == stamp(id) {
                break;
            }
            self.shared_left -= 1;
            if owner == NOBODY {
                self.owner[next as usize] = stamp(id);
            }
            found.push(next);
            count += 1;
            at = next;
        }
        ranges::add(&mut found.doubtful, had..count);
        count
    }

    /// Serves a stream that starts in units that another stream has.
    fn share_start(&mut self, id: usize) {
        let Want { start, units } = self.wants[id];
        let mut found = Found { state: State::Settled, ..Found::default() };
        let owner = self.owner.get(start as usize).copied().unwrap_or(METADATA);
        let mut count = 0;
        if owner != METADATA && self.shared_left > 0 && self.wasted_left > 0 {
            let theirs_count = self.found.get(owner as usize).map_or(0, |theirs| theirs.runs.len());
            self.wasted_left = self.wasted_left.saturating_sub(theirs_count as u64);
            self.shared_left -= 1;
            found.push(start);
            count = self.share_rest(id, start, 1, units, &mut found);
            ranges::add(&mut found.doubtful, 0..count);
            if let Some(theirs) = self.found.get(owner as usize)
                && let Some(from) = theirs.position(start)
                && theirs.state != State::Exact
            {
                let end = self.wants[owner as usize].units.min(from + count);
                ranges::add(&mut self.found[owner as usize].doubtful, from..end);
            }
        }
        found.gap(units - count);
        self.found[id] = found;
    }
}
