//! Streams that have lost links, where what is missing is told by its length: no other
//! piece has it, and no other stream has a better claim to the piece that has.

use std::collections::HashMap;

use super::{Found, Links, METADATA, NOBODY, State, UNKNOWN, stamp};
use crate::layout::{END_OF_CHAIN, FREE_SECTOR};
use crate::repair::ranges;

/// Pieces of chains of this length or more hardly ever have the same length.
pub(super) const LONG_UNITS: u64 = 12;

/// All the units of a stream, some of them guessed, and nothing claimed yet.
struct Claim {
    id: usize,
    found: Found,
    /// The unit in which the chain ends: two claims to one end contradict each other.
    end: u32,
    /// What has to be taken on trust: little for a piece elsewhere, more for each unit that
    /// lies behind with nothing to prove it before the end.
    cost: u64,
}

impl Links {
    /// Serves the streams of which every lost link can be told, those that take the least
    /// on trust first: each that is served leaves less for the others to be mistaken in.
    pub(super) fn serve_claims(
        &mut self,
        open: &mut Vec<usize>,
        may_guess: &impl Fn(usize) -> bool,
    ) {
        loop {
            let ids = open.iter().copied().filter(|&id| may_guess(id));
            let mut claims: Vec<Claim> = ids.filter_map(|id| self.claim(id)).collect();
            let mut best: HashMap<u32, (u64, u32)> = HashMap::new();
            for claim in &claims {
                let (cost, count) = best.entry(claim.end).or_insert((claim.cost, 0));
                match claim.cost.cmp(cost) {
                    std::cmp::Ordering::Less => (*cost, *count) = (claim.cost, 1),
                    std::cmp::Ordering::Equal => *count += 1,
                    std::cmp::Ordering::Greater => {}
                }
            }
            claims.retain(|claim| best.get(&claim.end) == Some(&(claim.cost, 1)));
            // What is told best stands for the others to be measured by.
            let least = claims.iter().map(|claim| claim.cost).min();
            claims.retain(|claim| Some(claim.cost) == least);
            let before = open.len();
            for claim in claims {
                let id = claim.id;
                if self.take_claim(claim) {
                    open.retain(|&other| other != id);
                }
            }
            if open.len() == before {
                return;
            }
        }
    }

    /// Gives a stream what it claims, unless some of it is taken by now.
    fn take_claim(&mut self, claim: Claim) -> bool {
        let mut taken = Found::default();
        for &(start, count) in &claim.found.runs {
            for unit in start..start + u32::try_from(count).expect("units of the table") {
                if self.owner[unit as usize] != NOBODY {
                    self.unclaim(&taken);
                    return false;
                }
                self.owner[unit as usize] = stamp(claim.id);
                taken.push(unit);
            }
        }
        self.found[claim.id] = claim.found;
        true
    }

    /// What a stream may claim, if its length tells every lost link.
    fn claim(&mut self, id: usize) -> Option<Claim> {
        let want = self.wants[id];
        let mut found = Found { state: State::Settled, ..Found::default() };
        let mut at = Some(want.start).filter(|&start| self.is_free(start))?;
        let (mut count, mut cost, mut guessed_from) = (1, 0, None);
        // Whether the way behind comes to an end where it should.
        let mut fits_behind = None;
        found.push(at);
        while count < want.units {
            self.wasted_left = self.wasted_left.checked_sub(1)?;
            let rest = want.units - count;
            let next = if let Some(next) = self.next_unit(at) {
                next
            } else {
                guessed_from = guessed_from.or(Some(count));
                let (next, more) = self.claim_next(at, rest, &mut fits_behind)?;
                cost += more;
                next
            };
            at = next;
            found.push(at);
            count += 1;
        }
        // Without an end nothing says that the way is right, but just the room for it.
        let ends = self.cells[at as usize] == END_OF_CHAIN;
        let fits = self.survey.blocked.get(at as usize) == Some(&(at + 1));
        if !ends && fits {
            cost = 1;
        }
        if let Some(from) = guessed_from {
            ranges::add(&mut found.guessed, from..count);
        }
        (ends || fits).then_some(Claim { id, found, end: at, cost })
    }

    /// What comes behind a lost link, and what of it has to be taken on trust.
    fn claim_next(
        &mut self,
        at: u32,
        rest: u64,
        fits_behind: &mut Option<bool>,
    ) -> Option<(u32, u64)> {
        let cell = self.cells[at as usize];
        // Zeros are what overwriting leaves, more often than a second link to the first unit.
        let is_link = cell != 0 && self.cell(cell).is_some() && !self.is_start(cell);
        if cell == END_OF_CHAIN {
            return None;
        }
        if is_link && self.ends_after(cell, rest) {
            return self.lone_link(at).map(|next| (next, 1));
        }
        let behind = self.unit_behind(at, rest);
        if let Some(behind) = behind
            && self.survey.pieces.get(&behind) == Some(&rest)
        {
            return Some((behind, 0));
        }
        if let Some(next) = self.lone_link(at) {
            return Some((next, u64::from(self.is_at_edge(at))));
        }
        if is_link && !self.looks_damaged(at) {
            return None;
        }
        let behind = behind.filter(|behind| !self.survey.pieces.contains_key(behind));
        let piece = self.piece_of(rest, None);
        let is_marked_free = behind.is_none_or(|unit| self.cells[unit as usize] == FREE_SECTOR);
        if let Some(piece) = piece
            && (rest >= LONG_UNITS || is_marked_free)
        {
            return Some((piece, 1));
        }
        let fits = behind.is_some_and(|behind| match *fits_behind {
            Some(fits) => fits,
            None => *fits_behind.insert(self.reaches_end(behind, rest)),
        });
        // With a piece of the missing length elsewhere, either may be right.
        behind.filter(|_| piece.is_none()).map(|behind| (behind, if fits { 0 } else { 2 }))
    }

    /// The unit behind one, metadata left out, if a stream with `rest` units to go may go on there.
    pub(super) fn unit_behind(&self, at: u32, rest: u64) -> Option<u32> {
        let mut behind = at + 1;
        while self.owner.get(behind as usize) == Some(&METADATA) {
            behind += 1;
        }
        let can_be_next = behind < self.present
            && self.is_free(behind)
            && self.survey.starts[behind as usize] == 0
            && (self.survey.into[behind as usize] == 0 || self.cells[at as usize] == behind)
            && (self.cells[behind as usize] != END_OF_CHAIN || rest == 1);
        can_be_next.then_some(behind)
    }

    /// Where the link of a unit leads that is beside what was overwritten, or leads to a
    /// unit that has none, if nothing else leads there.
    pub(super) fn lone_link(&self, unit: u32) -> Option<u32> {
        let next = self.cell(unit).filter(|&next| next != 0)?;
        let alone = self.is_free(next)
            && self.survey.into[next as usize] == 1
            && self.survey.starts[next as usize] == 0;
        alone.then_some(next)
    }

    /// Whether going on behind lost links, and along those that are left, comes to the
    /// end of a chain after just so many units.
    pub(super) fn reaches_end(&mut self, from: u32, units: u64) -> bool {
        let mut at = from;
        for left in (1..units).rev() {
            let Some(wasted_left) = self.wasted_left.checked_sub(1) else { return false };
            self.wasted_left = wasted_left;
            let is_lost = matches!(self.cells[at as usize], FREE_SECTOR | UNKNOWN | 0);
            let next = self
                .next_unit(at)
                .or_else(|| self.lone_link(at))
                .or_else(|| self.unit_behind(at, left).filter(|_| is_lost));
            let Some(next) = next else { return false };
            at = next;
        }
        self.cells[at as usize] == END_OF_CHAIN
    }
}
