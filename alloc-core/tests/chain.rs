//! A chain answers every question as the plain list of its sectors does, and
//! tables of links give back the chains they were written from.

use alloc_core::{
    Chain, LinkRules, Run, SectorCount, SectorId, SectorSet, chain_from, claim_chain_from,
    free_words, write_chain,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What is done to a chain; numbers are taken modulo what is there.
#[derive(Clone, Debug)]
enum Op {
    Push { gap: u32, count: u32 },
    Truncate { len: usize },
    SplitAndSwap { at: usize },
    Replace { at: usize, count: usize },
    Slice { from: usize, count: usize },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let n = 0..100_000_usize;
    let op = prop_oneof![
        6 => (0..3_u32, 1..40_u32).prop_map(|(gap, count)| Op::Push { gap, count }),
        1 => n.clone().prop_map(|len| Op::Truncate { len }),
        1 => n.clone().prop_map(|at| Op::SplitAndSwap { at }),
        2 => (n.clone(), n.clone()).prop_map(|(at, count)| Op::Replace { at, count }),
        1 => (n.clone(), n).prop_map(|(from, count)| Op::Slice { from, count }),
    ];
    vec(op, 1..40)
}

fn count(count: usize) -> SectorCount {
    SectorCount::new(u32::try_from(count).unwrap())
}

fn run(start: u32, len: usize) -> Run {
    Run::new(SectorId::new(start), count(len))
}

/// A run a sector: pushing merges them.
fn chain_of(sectors: &[u32]) -> Chain {
    sectors.iter().map(|&at| run(at, 1)).collect()
}

fn sectors_of(chain: &Chain) -> Vec<u32> {
    chain.runs().flat_map(|run| run.start().get()..run.end().get()).collect()
}

/// Runs a list of sectors makes, counted the slow way.
fn runs_in(sectors: &[u32]) -> usize {
    let breaks = sectors.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
    breaks + usize::from(!sectors.is_empty())
}

/// Everything that can be asked, both ways.
fn compare(chain: &Chain, slow: &[u32]) {
    assert_eq!(sectors_of(chain), slow);
    assert_eq!(chain.sector_count(), count(slow.len()));
    assert_eq!(chain.run_count(), runs_in(slow));
    assert_eq!(chain.is_empty(), slow.is_empty());
    assert_eq!(chain.first().map(SectorId::get), slow.first().copied());
    assert_eq!(chain.last().map(SectorId::get), slow.last().copied());
    assert_eq!(chain.end().map(SectorId::get), slow.last().map(|at| at + 1));
    assert_eq!(chain.last_run(), chain.runs().fold(None, |_, run| Some(run)));
    let mut backwards: Vec<Run> = chain.runs().rev().collect();
    backwards.reverse();
    assert!(chain.runs().eq(backwards) && chain.runs().len() == chain.run_count());
    assert_eq!(chain, &chain_of(slow));
    chain.verify().unwrap();
    for at in 0..=slow.len() {
        let rest = chain.locate(count(at));
        let len = slow.get(at..).filter(|rest| !rest.is_empty()).map_or(0, |rest| {
            rest.iter().zip(&rest[1..]).take_while(|(a, b)| *a + 1 == **b).count()
        });
        let expected = slow.get(at).map(|&start| run(start, len + 1));
        assert_eq!(rest, expected, "sector {at}");
    }
}

/// The bytes a range of a stream has, as (sector, byte in sector), one by one.
fn compare_segments(chain: &Chain, slow: &[u32], from: usize, len: usize, sector_bytes: u32) {
    let total = slow.len() as u64 * u64::from(sector_bytes);
    let start = from as u64 % (total + 1);
    let end = start + len as u64 % (total - start + 1);
    let size = u64::from(sector_bytes);
    let bytes: Vec<u64> = (start..end)
        .map(|at| u64::from(slow[usize::try_from(at / size).unwrap()]) * size + at % size)
        .collect();
    let segments: Vec<_> = chain.segments(start..end, sector_bytes).collect();
    let real: Vec<u64> =
        segments.iter().flat_map(|s| s.offset.get()..s.offset.get() + s.len_bytes).collect();
    assert_eq!(real, bytes);
    let joined =
        segments.windows(2).any(|p| p[0].offset.get() + p[0].len_bytes == p[1].offset.get());
    assert!(!joined, "segments are maximal: {segments:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_chain_agrees_with_the_list_of_its_sectors(ops in ops(), n in any::<(u16, u16)>()) {
        let (mut chain, mut slow) = (Chain::new(), Vec::new());
        let mut free = 0; // sectors from here on are new
        for op in ops {
            match op {
                Op::Push { gap, count: len } => {
                    let start = free + gap;
                    free = start + len;
                    chain.push(run(start, len as usize));
                    slow.extend(start..free);
                }
                Op::Truncate { len } => {
                    let len = len % (slow.len() + 9);
                    let cut = chain.truncate(count(len));
                    let slow_cut = slow.split_off(len.min(slow.len()));
                    compare(&cut, &slow_cut);
                }
                Op::SplitAndSwap { at } => {
                    let at = at % (slow.len() + 1);
                    let mut tail = chain.split_off(count(at));
                    tail.append(chain);
                    chain = tail;
                    slow.rotate_left(at);
                }
                Op::Replace { at, count: len } => {
                    let at = at % (slow.len() + 1);
                    let len = len % (slow.len() - at + 1);
                    let new: Vec<u32> = (free..).take(len).collect();
                    free += count(len).get() + 1;
                    let old = chain.replace(count(at), chain_of(&new));
                    let slow_old: Vec<u32> = slow.splice(at..at + len, new).collect();
                    compare(&old, &slow_old);
                }
                Op::Slice { from, count: len } => {
                    let from = from % (slow.len() + 1);
                    let len = len % (slow.len() - from + 1);
                    compare(&chain.slice(count(from), count(len)), &slow[from..from + len]);
                }
            }
            compare(&chain, &slow);
            compare_segments(&chain, &slow, n.0.into(), n.1.into(), 7);
        }
    }

    #[test]
    fn a_table_gives_back_the_chains_it_was_written_from(
        order in Just((0..400_u32).collect::<Vec<_>>()).prop_shuffle(),
        blocks in vec((1..9_usize, 0..4_usize), 1..60),
    ) {
        const END: u32 = 0xFFFF_FFFE;
        let rules = LinkRules { end_of_chain: END, free: u32::MAX, first_special: 0xFFFF_FFFA };
        // blocks of sectors, in an order that is partly shuffled
        let mut chains = vec![Chain::new(); 4];
        let mut starts = order.iter().map(|at| at * 10);
        for ((len, which), start) in blocks.into_iter().zip(&mut starts) {
            chains[which].push(run(start, len));
        }
        let mut cells = vec![rules.free; 4000];
        for chain in &chains {
            write_chain(&mut cells, chain, END);
        }
        let mut seen = SectorSet::new(count(4000));
        for chain in &chains {
            let start = chain.first().unwrap_or(SectorId::new(END));
            let walked = chain_from(&cells, start, SectorCount::MAX, rules);
            prop_assert_eq!(walked.as_ref(), Ok(chain));
            let claimed = claim_chain_from(&cells, start, SectorCount::MAX, rules, &mut seen);
            prop_assert_eq!(claimed.as_ref(), Ok(chain));
        }
        // what no chain has is free
        let words = free_words(&cells, rules.free);
        for at in 0..4000_u32 {
            let free = words[at as usize / 64] >> (at % 64) & 1 == 1;
            prop_assert_eq!(free, !seen.contains(SectorId::new(at)), "sector {}", at);
        }
    }
}
