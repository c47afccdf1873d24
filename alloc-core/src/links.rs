//! Tables of next-pointers (FAT style): chains from a table and back.
//!
//! Cell `i` of a table says what comes after sector `i`: another sector, the
//! end of the chain, "free", or something else the format has a mark for.

use alloc::vec::Vec;

use crate::{Chain, LinkError, Run, SectorCount, SectorId, SectorSet};

/// What the cells of a table mean.
///
/// # Example
///
/// ```
/// use alloc_core::LinkRules;
///
/// // [MS-CFB]
/// let rules = LinkRules { end_of_chain: 0xFFFF_FFFE, free: 0xFFFF_FFFF, first_special: 0xFFFF_FFFA };
/// assert!(rules.is_link(7) && !rules.is_link(rules.free));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRules {
    /// The cell of a chain's last sector.
    pub end_of_chain: u32,
    /// The cell of a free sector.
    pub free: u32,
    /// Cells from this value on are no links.
    pub first_special: u32,
}

impl LinkRules {
    /// Whether the cell leads to another sector, be it in the table or not.
    pub const fn is_link(&self, cell: u32) -> bool {
        cell < self.first_special && cell != self.end_of_chain && cell != self.free
    }
}

/// How many cells the search for the end of a run looks at together.
const BLOCK: usize = 16;

/// The sectors of the chain that begins at `start`, in chain order; none when
/// `start` is the end mark itself.
///
/// One pass, a step a sector, with sixteen cells at a time where sectors
/// follow each other. Memory is that of the chain. A chain of more than `max`
/// sectors is an error, so `max` bounds the walk; [`SectorCount::MAX`] is no
/// bound, and a cycle is still found, after at most three times the steps.
///
/// # Errors
///
/// [`LinkError`] with the sector, and the part of the chain before it.
///
/// # Example
///
/// ```
/// use alloc_core::{LinkError, LinkRules, Run, SectorCount, SectorId, chain_from};
///
/// let rules = LinkRules { end_of_chain: 90, free: 91, first_special: 90 };
/// let cells = [1, 2, 4, 0, 90, 77];
/// let chain = chain_from(&cells, SectorId::new(3), SectorCount::MAX, rules).unwrap();
/// assert_eq!(format!("{chain:?}"), "[3..4, 0..3, 4..5]");
/// let (intact, error) = chain_from(&cells, SectorId::new(5), SectorCount::MAX, rules).unwrap_err();
/// assert_eq!(error, LinkError::OutOfRange { at: SectorId::new(5), to: SectorId::new(77) });
/// assert_eq!(intact.first(), Some(SectorId::new(5)));
/// ```
pub fn chain_from(
    cells: &[u32],
    start: SectorId,
    max: SectorCount,
    rules: LinkRules,
) -> Result<Chain, (Chain, LinkError)> {
    let mut chain = Chain::new();
    if start.get() == rules.end_of_chain {
        return Ok(chain);
    }
    // no link leads to a sector whose index is a mark, nor beyond it
    let marks = [rules.first_special, rules.end_of_chain, rules.free];
    let limit = marks.into_iter().filter(|&mark| mark > 0).min().unwrap_or(u32::MAX);
    let cells = &cells[..cells.len().min(limit as usize)];
    let (mut from, mut at) = (start, start);
    // Brent's method over the jumps: a later jump that leads where the marked
    // one led closes a cycle; the mark moves on after 1, 2, 4, .. jumps.
    let (mut mark, mut jumps, mut next_mark) = (at, 0_u32, 1_u32);
    loop {
        let first = at.get() as usize;
        if first >= cells.len() {
            return Err((chain, LinkError::OutOfRange { at: from, to: at }));
        }
        let last = last_of_run(cells, first);
        let (last_id, next) = (SectorId::new(narrow(last)), cells[last]);
        let in_chain = next == rules.end_of_chain || rules.is_link(next);
        let end = if in_chain { narrow(last) + 1 } else { narrow(last) };
        if let Some(run) = Run::between(at, SectorId::new(end)) {
            let room = max.saturating_sub(chain.sector_count());
            if run.count() > room {
                let (fits, more) = run.split_at(room);
                chain.extend(fits);
                let at = more.map_or(at, Run::start);
                return Err(until_repeat(chain, at, cells.len(), LinkError::TooLong { at, max }));
            }
            chain.push(run);
        }
        if !in_chain {
            return Err((chain, LinkError::NotInAChain { at: last_id, found: next }));
        }
        if next == rules.end_of_chain {
            return Ok(chain);
        }
        (from, at) = (last_id, SectorId::new(next));
        if at == mark {
            return Err(until_repeat(chain, at, cells.len(), LinkError::Cycle { at }));
        }
        jumps += 1;
        if jumps == next_mark {
            (mark, jumps, next_mark) = (at, 0, next_mark.saturating_mul(2));
        }
    }
}

/// The last sector of the run that begins at `first`: those before it link to
/// their neighbour, and it does not, or is the table's last.
#[inline]
fn last_of_run(cells: &[u32], first: usize) -> usize {
    let links_on = |at: usize| cells[at] == narrow(at) + 1;
    let mut at = first;
    while let Some(block) = cells.get(at..at + BLOCK) {
        let next = narrow(at) + 1;
        let cells = (0..).zip(block);
        if cells.fold(0, |wrong, (i, &cell)| wrong | (cell ^ next.wrapping_add(i))) != 0 {
            break;
        }
        at += BLOCK;
    }
    while at + 1 < cells.len() && links_on(at) {
        at += 1;
    }
    at.min(cells.len() - 1)
}

/// Cuts a walk before the first sector that it meets twice, `next` being the
/// one after its end, and says [`LinkError::Cycle`]; `other` if there is none.
#[cold]
fn until_repeat(
    mut chain: Chain,
    next: SectorId,
    cells: usize,
    other: LinkError,
) -> (Chain, LinkError) {
    let mut seen = SectorSet::new(SectorCount::new(narrow(cells)));
    if let Err(at) = claim_chain(&mut seen, &mut chain) {
        return (chain, LinkError::Cycle { at });
    }
    let error = if seen.contains(next) { LinkError::Cycle { at: next } } else { other };
    (chain, error)
}

/// Marks the sectors of `run` as belonging to a chain. O(sectors / 64).
///
/// # Errors
///
/// The first sector that belongs to one already. Nothing is marked then.
///
/// # Panics
///
/// When the run reaches past the set's device.
pub fn claim(seen: &mut SectorSet, run: Run) -> Result<(), SectorId> {
    if let Some(shared) = seen.first_common(run) {
        return Err(shared);
    }
    seen.insert_run(run);
    Ok(())
}

/// Claims a chain's sectors, up to the first that is claimed already; there
/// the chain is cut.
fn claim_chain(seen: &mut SectorSet, chain: &mut Chain) -> Result<(), SectorId> {
    let mut claimed = SectorCount::ZERO;
    let mut shared = None;
    for run in chain.runs() {
        let Err(at) = claim(seen, run) else {
            claimed += run.count();
            continue;
        };
        if let Some(intact) = Run::between(run.start(), at) {
            seen.insert_run(intact);
            claimed += intact.count();
        }
        shared = Some(at);
        break;
    }
    match shared {
        Some(at) => {
            let _repeated = chain.truncate(claimed);
            Err(at)
        }
        None => Ok(()),
    }
}

/// As [`chain_from`], for one of many chains of a table: claims the chain's
/// sectors in `seen`, so that a sector of two chains is found. In all, a bit a
/// sector.
///
/// # Errors
///
/// As [`chain_from`], and [`LinkError::CrossLink`]. The intact part is claimed
/// in any case.
///
/// # Panics
///
/// When `seen` is for fewer sectors than the table has.
///
/// # Example
///
/// ```
/// use alloc_core::{LinkError, LinkRules, SectorCount, SectorId, SectorSet, claim_chain_from};
///
/// let rules = LinkRules { end_of_chain: 90, free: 91, first_special: 90 };
/// let cells = [1, 2, 90, 1];
/// let mut seen = SectorSet::new(SectorCount::new(4));
/// let mut chain = |start| claim_chain_from(&cells, SectorId::new(start), SectorCount::MAX, rules, &mut seen);
/// assert!(chain(0).is_ok());
/// let (intact, error) = chain(3).unwrap_err();
/// assert_eq!(error, LinkError::CrossLink { at: SectorId::new(1) });
/// assert_eq!(format!("{intact:?}"), "[3..4]");
/// ```
pub fn claim_chain_from(
    cells: &[u32],
    start: SectorId,
    max: SectorCount,
    rules: LinkRules,
    seen: &mut SectorSet,
) -> Result<Chain, (Chain, LinkError)> {
    let (mut chain, error) = match chain_from(cells, start, max, rules) {
        Ok(chain) => (chain, None),
        Err((chain, error)) => (chain, Some(error)),
    };
    match (claim_chain(seen, &mut chain), error) {
        // it comes before whatever the walk has met later
        (Err(at), _) => Err((chain, LinkError::CrossLink { at })),
        (Ok(()), Some(error)) => Err((chain, error)),
        (Ok(()), None) => Ok(chain),
    }
}

/// Writes a chain into a table: each cell gets the next sector, the last one
/// `end_of_chain`. At the speed of memory for long runs.
///
/// # Panics
///
/// When the table does not have one of the sectors.
///
/// # Example
///
/// ```
/// use alloc_core::{Chain, Run, SectorCount, SectorId, write_chain};
///
/// let run = |start, count| Run::new(SectorId::new(start), SectorCount::new(count));
/// let mut cells = [0; 6];
/// write_chain(&mut cells, &Chain::from_runs([run(3, 1), run(0, 3)]), 99);
/// assert_eq!(cells, [1, 2, 99, 0, 0, 0]);
/// ```
pub fn write_chain(cells: &mut [u32], chain: &Chain, end_of_chain: u32) {
    let mut last = None;
    for run in chain.runs() {
        let (start, end) = (run.start().get(), run.end().get());
        if let Some(last) = last {
            cells[last] = start;
        }
        for (cell, at) in cells[start as usize..end as usize].iter_mut().zip(start..end) {
            *cell = at + 1;
        }
        last = Some(run.last().get() as usize);
    }
    if let Some(last) = last {
        cells[last] = end_of_chain;
    }
}

/// The free map's words of a table: bit `i % 64` of word `i / 64` is set when
/// cell `i` is `free`. For [`FreeMap::from_free_words`].
///
/// Reads the table once, eight cells at a time.
///
/// # Example
///
/// ```
/// use alloc_core::free_words;
///
/// assert_eq!(free_words(&[9, 1, 9, 9], 9), [0b1101]);
/// ```
///
/// [`FreeMap::from_free_words`]: crate::FreeMap::from_free_words
pub fn free_words(cells: &[u32], free: u32) -> Vec<u64> {
    let (groups, rest) = cells.as_chunks::<64>();
    let mut words = Vec::with_capacity(cells.len().div_ceil(64));
    words.extend(groups.iter().map(|group| free_word(group, free)));
    if !rest.is_empty() {
        let bits = rest.iter().rev();
        words.push(bits.fold(0, |word, &cell| word << 1 | u64::from(cell == free)));
    }
    words
}

/// The word of 64 cells.
#[inline]
fn free_word(cells: &[u32; 64], free: u32) -> u64 {
    // A byte a cell, which compilers do many at a time; then eight bytes of 0
    // or 1 become eight bits: the multiplier moves byte i to bit 56 + i.
    let flags = cells.map(|cell| u8::from(cell == free));
    let (eights, _) = flags.as_chunks::<8>();
    let bits =
        |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    (0..).zip(eights).fold(0, |word, (i, eight)| word | bits(eight) << (8 * i))
}

/// A cell's index as a number of a sector.
#[expect(clippy::cast_possible_truncation, reason = "links are u32, so no table is longer")]
const fn narrow(index: usize) -> u32 {
    index as u32
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const RULES: LinkRules = LinkRules { end_of_chain: 1000, free: 1001, first_special: 990 };
    const END: u32 = RULES.end_of_chain;

    fn run(start: u32, count: u32) -> Run {
        Run::new(SectorId::new(start), SectorCount::new(count))
    }

    fn walk(cells: &[u32], start: u32) -> Result<Chain, (Chain, LinkError)> {
        chain_from(cells, SectorId::new(start), SectorCount::MAX, RULES)
    }

    /// The slow way: a step at a time, with all sectors seen in a list.
    fn slow_walk(cells: &[u32], start: u32, max: usize) -> (Vec<u32>, Option<LinkError>) {
        let (mut seen, mut from, mut at) = (Vec::new(), start, start);
        while at != END {
            let id = SectorId::new(at);
            let error = match cells.get(at as usize) {
                None => LinkError::OutOfRange { at: SectorId::new(from), to: id },
                Some(_) if seen.contains(&at) => LinkError::Cycle { at: id },
                Some(&cell) if cell >= 990 && cell != END => {
                    LinkError::NotInAChain { at: id, found: cell }
                }
                Some(_) if seen.len() == max => {
                    LinkError::TooLong { at: id, max: SectorCount::new(narrow(max)) }
                }
                Some(&cell) => {
                    seen.push(at);
                    (from, at) = (at, cell);
                    continue;
                }
            };
            return (seen, Some(error));
        }
        (seen, None)
    }

    #[test]
    fn random_tables_walk_as_the_slow_way_says() {
        let mut seed = 7_u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) % below
        };
        for _ in 0..3000 {
            let len = 1 + next(120);
            let cells: Vec<u32> = (0..len)
                .map(|i| match next(40) {
                    0 => END,
                    1 => 1001,
                    2 => 995,
                    3 => len + next(3),
                    4..7 => next(len),
                    _ => i + 1,
                })
                .collect();
            let max = next(2 * len) as usize;
            let start = next(len + 1);
            let (slow, slow_error) = slow_walk(&cells, start, max);
            let limit = SectorCount::new(narrow(max));
            let (fast, error) = match chain_from(&cells, SectorId::new(start), limit, RULES) {
                Ok(chain) => (chain, None),
                Err((chain, error)) => (chain, Some(error)),
            };
            let fast: Vec<u32> =
                fast.runs().flat_map(|run| run.start().get()..run.end().get()).collect();
            assert_eq!((fast, error), (slow, slow_error), "{cells:?} from {start}, at most {max}");
        }
    }

    #[test]
    fn a_tail_that_rejoins_its_middle_is_a_cycle() {
        let cells = [1, 2, 3, 4, 2, END];
        let at = SectorId::new(2);
        assert_eq!(walk(&cells, 0), Err((Chain::from_runs([run(0, 5)]), LinkError::Cycle { at })));
    }

    #[test]
    fn a_sector_that_links_to_itself_is_a_cycle() {
        let at = SectorId::new(1);
        assert_eq!(
            walk(&[END, 1], 1),
            Err((Chain::from_runs([run(1, 1)]), LinkError::Cycle { at }))
        );
    }

    #[test]
    fn the_last_cell_of_the_table_may_link_past_it() {
        let cells: Vec<u32> = (1..=64).collect();
        let error = LinkError::OutOfRange { at: SectorId::new(63), to: SectorId::new(64) };
        assert_eq!(walk(&cells, 0), Err((Chain::from_runs([run(0, 64)]), error)));
    }

    #[test]
    fn sectors_whose_index_is_a_mark_are_not_reached() {
        let cells: Vec<u32> = (1..=1200).collect();
        let (chain, error) = walk(&cells, 0).unwrap_err();
        assert_eq!(chain, Chain::from_runs([run(0, 989)]));
        assert_eq!(error, LinkError::NotInAChain { at: SectorId::new(989), found: 990 });
    }

    #[test]
    fn an_end_mark_as_start_is_an_empty_chain() {
        assert_eq!(walk(&[], END), Ok(Chain::new()));
    }

    #[test]
    fn two_chains_that_meet_are_told_where() {
        let cells = [1, 2, 3, END, 5, 2];
        let mut seen = SectorSet::new(SectorCount::new(6));
        let mut claimed = |start| {
            claim_chain_from(&cells, SectorId::new(start), SectorCount::MAX, RULES, &mut seen)
        };
        assert_eq!(claimed(0), Ok(Chain::from_runs([run(0, 4)])));
        let shared = LinkError::CrossLink { at: SectorId::new(2) };
        assert_eq!(claimed(4), Err((Chain::from_runs([run(4, 2)]), shared)));
        assert_eq!(seen.runs().collect::<Vec<_>>(), [run(0, 6)]);
    }

    #[test]
    fn a_table_written_from_chains_gives_the_chains_back() {
        let chains = [
            Chain::from_runs([run(40, 30), run(0, 3), run(80, 1)]),
            Chain::from_runs([run(3, 37)]),
            Chain::new(),
        ];
        let mut cells = vec![RULES.free; 100];
        for chain in &chains {
            write_chain(&mut cells, chain, END);
        }
        for chain in &chains {
            let start = chain.first().map_or(END, SectorId::get);
            assert_eq!(walk(&cells, start).as_ref(), Ok(chain));
        }
    }

    #[test]
    fn free_words_agree_with_one_cell_at_a_time() {
        for len in [0, 1, 63, 64, 65, 127, 128, 200] {
            let cells: Vec<u32> = (0..len).map(|i| i * i % 5).collect();
            let words = free_words(&cells, 4);
            assert_eq!(words.len(), cells.len().div_ceil(64));
            for i in 0..words.len() * 64 {
                let free = cells.get(i) == Some(&4);
                assert_eq!(words[i / 64] >> (i % 64) & 1 == 1, free, "cell {i} of {len}");
            }
        }
    }
}
