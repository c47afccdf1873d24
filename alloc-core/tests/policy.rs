//! What the documentation promises about maps and the policy, fact by fact.

use alloc_core::{
    Allocator, Chain, FreeMap, MapError, NoSpace, Run, SectorCount, SectorId, Window,
};

fn count(count: u32) -> SectorCount {
    SectorCount::new(count)
}

fn id(at: u32) -> SectorId {
    SectorId::new(at)
}

fn run(start: u32, len: u32) -> Run {
    Run::new(id(start), count(len))
}

/// A device on which just these runs are free.
fn free(total: u32, runs: &[Run]) -> Allocator {
    let mut map = FreeMap::full(count(total));
    for &run in runs {
        map.release(run);
    }
    Allocator::new(map)
}

fn chain(runs: &[Run]) -> Chain {
    Chain::from_runs(runs.iter().copied())
}

#[test]
fn the_shortest_run_that_fits_is_chosen_wherever_it_lies() {
    let mut alloc = free(1000, &[run(0, 60), run(100, 30), run(200, 31), run(300, 29)]);
    assert_eq!(alloc.allocate(count(30), None).unwrap(), chain(&[run(100, 30)]));
    assert_eq!(alloc.allocate(count(30), None).unwrap(), chain(&[run(200, 30)]));
    assert_eq!(alloc.allocate(count(30), None).unwrap(), chain(&[run(0, 30)]));
}

#[test]
fn a_goal_is_taken_if_it_is_free_and_else_has_no_influence() {
    let mut alloc = free(1000, &[run(0, 60), run(100, 30)]);
    assert_eq!(alloc.allocate(count(5), Some(id(20))).unwrap(), chain(&[run(20, 5)]));
    assert_eq!(alloc.allocate(count(5), Some(id(22))).unwrap(), chain(&[run(0, 5)]));
    assert_eq!(alloc.allocate(count(1), Some(id(5000))).unwrap(), chain(&[run(5, 1)]));
}

#[test]
fn pieces_are_the_longest_ones_and_the_last_fits_best() {
    let mut alloc = free(1000, &[run(0, 10), run(100, 20), run(200, 3), run(300, 30)]);
    let gathered = alloc.allocate(count(53), None).unwrap();
    assert_eq!(gathered, chain(&[run(300, 30), run(100, 20), run(200, 3)]));
}

#[test]
fn small_pieces_are_left_when_a_least_size_is_given() {
    let mut alloc = free(1000, &[run(0, 10), run(100, 20), run(200, 3), run(300, 30)]);
    let gathered = alloc.allocate_pieces(count(100), count(10));
    assert_eq!(gathered, chain(&[run(300, 30), run(100, 20), run(0, 10)]));
    assert_eq!(alloc.allocate_pieces(count(100), count(4)), Chain::new());
    assert_eq!(alloc.allocate_pieces(count(2), count(3)), chain(&[run(200, 2)]));
}

#[test]
fn a_chain_grows_in_place_before_anywhere_else() {
    let mut alloc = free(1000, &[run(10, 90), run(200, 5)]);
    let mut grown = chain(&[run(5, 5)]);
    alloc.extend(&mut grown, &mut Window::none(), count(5)).unwrap();
    assert_eq!(grown, chain(&[run(5, 10)]));
    alloc.extend(&mut grown, &mut Window::none(), count(88)).unwrap();
    assert_eq!(grown, chain(&[run(5, 95), run(200, 3)]));
}

#[test]
fn a_window_is_no_larger_than_what_is_left() {
    let mut alloc = free(100, &[run(0, 12)]);
    let (mut grown, mut window) = (Chain::new(), Window::doubling());
    alloc.extend(&mut grown, &mut window, count(3)).unwrap();
    assert_eq!(window.run(), Some(run(3, 8)));
    let refused = alloc.extend(&mut grown, &mut window, count(10)).unwrap_err();
    assert_eq!(refused, NoSpace { wanted: count(10), free: count(9) });
    assert_eq!((&grown, window.run()), (&chain(&[run(0, 3)]), Some(run(3, 8))));
    alloc.extend(&mut grown, &mut window, count(9)).unwrap();
    assert_eq!((&grown, window.run()), (&chain(&[run(0, 12)]), None));
}

#[test]
fn a_window_that_is_not_behind_its_chain_is_given_back() {
    let mut alloc = free(100, &[run(0, 50), run(60, 30)]);
    let (mut first, mut window) = (Chain::new(), Window::doubling());
    alloc.extend(&mut first, &mut window, count(1)).unwrap();
    let mut other = chain(&[run(55, 5)]);
    alloc.extend(&mut other, &mut window, count(1)).unwrap();
    assert_eq!(other.end(), window.run().map(Run::start));
    alloc.trim(&mut window);
    // what the two chains have is all that is gone
    assert_eq!(alloc.map().free_count(), count(78));
}

#[test]
fn what_is_reserved_is_not_given_to_others() {
    let mut alloc = free(100, &[run(0, 50)]);
    let mut promise = alloc.reserve(count(40)).unwrap();
    let refused = alloc.reserve(count(11)).unwrap_err();
    assert_eq!((refused.free, refused.missing()), (count(10), count(1)));
    let mut other = Chain::new();
    assert!(alloc.extend(&mut other, &mut Window::none(), count(11)).is_err());
    assert_eq!(alloc.allocate_pieces(count(50), count(1)).sector_count(), count(10));
    let redeemed = alloc.allocate_reserved(&mut promise, count(40), None);
    assert_eq!(redeemed.sector_count(), count(40));
    alloc.cancel(promise);
    alloc.verify().unwrap();
}

#[test]
fn a_device_keeps_its_reserved_sectors_when_it_shrinks() {
    let mut alloc = free(100, &[run(50, 50)]);
    let promise = alloc.reserve(count(20)).unwrap();
    let refused = MapError::Reserved { reserved: count(20), free: count(10) };
    assert_eq!(alloc.shrink(count(60)), Err(refused));
    assert_eq!(alloc.shrink_to_fit(), count(70));
    alloc.cancel(promise);
    assert_eq!(alloc.shrink_to_fit(), count(50));
    assert_eq!(alloc.shrink(count(49)), Err(MapError::InUse { last: id(49), wanted: count(49) }));
}

#[test]
fn used_runs_that_overlap_or_reach_out_make_no_map() {
    let twice = FreeMap::from_used_runs(count(100), [run(10, 20), run(25, 10)]);
    assert_eq!(twice.unwrap_err(), MapError::AlreadyUsed { at: id(25) });
    let out = FreeMap::from_used_runs(count(100), [run(90, 11)]);
    assert_eq!(out.unwrap_err(), MapError::OutOfRange { run: run(90, 11), total: count(100) });
}

#[test]
fn a_refused_take_or_release_changes_nothing() {
    let mut map = FreeMap::from_used_runs(count(100), [run(10, 20)]).unwrap();
    let before = map.clone();
    assert_eq!(map.try_take(run(5, 10)), Err(MapError::AlreadyUsed { at: id(10) }));
    assert_eq!(map.try_release(run(25, 10)), Err(MapError::AlreadyFree { at: id(30) }));
    let out = run(95, 6);
    assert_eq!(map.try_take(out), Err(MapError::OutOfRange { run: out, total: count(100) }));
    assert_eq!(map, before);
    map.verify().unwrap();
}

#[test]
#[should_panic(expected = "releasing sectors 10 to 12: sector 12 is free already")]
fn a_release_of_a_free_sector_is_a_panic_that_names_it() {
    free(100, &[run(12, 1)]).release(run(10, 3));
}

#[test]
fn words_cells_and_used_runs_make_the_same_map() {
    let from_runs = FreeMap::from_used_runs(count(130), [run(0, 3), run(64, 66)]).unwrap();
    let from_words = FreeMap::from_free_words(count(130), vec![!0b111, 0]);
    let from_cells =
        FreeMap::from_used_cells(count(130), (0..130).map(|at| !(3..64).contains(&at)));
    assert_eq!((&from_words, &from_cells), (&from_runs, &from_runs));
    // bits past the device say nothing
    let with_tail = FreeMap::from_free_words(count(130), vec![!0b111, 0, !0b11, !0]);
    assert_eq!(with_tail, from_runs);
    with_tail.verify().unwrap();
}

#[test]
fn a_device_grown_sector_by_sector_has_one_run_and_little_memory() {
    let mut map = FreeMap::new(count(0));
    for total in 1..=1_000_000 {
        map.grow(count(total));
    }
    map.verify().unwrap();
    assert_eq!(map.largest_run(), Some(run(0, 1_000_000)));
    // a map that grows has room for an eighth more
    let bits = map.heap_bytes() * 8;
    assert!(bits < 1_000_000 * 11 / 8, "{bits} bits");
}

#[test]
fn memory_stays_below_five_quarters_of_a_bit_a_sector() {
    // every pattern of words, from nearly full to nearly empty
    let total = 1 << 20;
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for mix in 0..5 {
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let words = (0..total / 64).map(|_| match mix {
            0 => next(),
            1 => next() & next() & next(),
            2 => next() & next() & next() & next() & next() & next(),
            3 => next() | next() | next() | next(),
            _ => 0xFFFF_0000_FF00_0F01,
        });
        let mut map = FreeMap::from_free_words(count(total), words.collect());
        let mut alloc = Allocator::new(map.clone());
        let mut chains = Vec::new();
        for len in (0..4000).map(|i| i * i % 67 + 1) {
            let Ok(chain) = alloc.allocate(count(len), None) else { continue };
            chains.push(chain);
            if len % 3 == 0 {
                alloc.release_chain(chains.swap_remove(len as usize % chains.len()));
            }
        }
        alloc.verify().unwrap();
        for map in [&map, alloc.map()] {
            let bits = map.heap_bytes() * 8;
            assert!(bits <= total as usize * 5 / 4, "mix {mix}: {bits} bits");
        }
        // a search that fails once has no reason to search again
        let longest = map.largest_run().unwrap().count();
        assert_eq!(map.find(longest + count(1), None), None);
        assert_eq!(map.find(longest, None).map(Run::count), Some(longest));
    }
}
