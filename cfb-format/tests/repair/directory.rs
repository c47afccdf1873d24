//! The directory overwritten, its entries swapped or cut out: the streams of the other entries come back, if need be in the
//! storage for orphans, and the streams of lost entries as chains without a name.

use std::ops::Range;

use crate::common::raw::Owner;
use crate::judge::{expect_none, judge, overwritten};
use crate::samples::{plain, small};

#[test]
fn an_overwritten_directory_costs_names_and_no_content() {
    let (mut cases, mut complaints) = (0, Vec::new());
    for sample in small() {
        for sector in sample.sectors_of(Owner::Directory) {
            for len in [16, 64, 128, 512] {
                for at in (0..sample.sector_bytes()).step_by(len) {
                    let range = sector + at..sector + at + len;
                    for (how, damaged) in overwritten(&sample.bytes, &range) {
                        cases += 1;
                        let what = format!("{how} over bytes {range:?} of the directory");
                        let expected = |path: &str| {
                            !hits(&range, sample.slot_at(sample.account.item(path).slot))
                        };
                        complaints.extend(judge(
                            &sample,
                            &damaged,
                            std::slice::from_ref(&range),
                            &what,
                            expected,
                        ));
                    }
                }
            }
        }
    }
    expect_none(&complaints, cases);
}

fn hits(range: &Range<usize>, slot: usize) -> bool {
    range.start < slot + 128 && slot < range.end
}

#[test]
fn the_chain_of_an_entry_that_is_gone_is_kept_without_its_name() {
    for sample in [plain(3), plain(4)] {
        for (path, _) in &sample.streams {
            let slot = sample.slot_at(sample.account.item(path).slot);
            let mut damaged = sample.bytes.clone();
            damaged[slot..slot + 128].fill(0);
            let what = format!("the entry of {path:?} gone");
            expect_none(&judge(&sample, &damaged, &[], &what, |_| true), 1);
        }
    }
}

#[test]
fn swapped_entries_lose_no_stream() {
    let (mut cases, mut complaints) = (0, Vec::new());
    for sample in small() {
        let slots: Vec<u32> = sample.account.items.iter().map(|item| item.slot).collect();
        for (nth, &one) in slots.iter().enumerate().skip(1) {
            for &other in &slots[nth + 1..] {
                let (one, other) = (sample.slot_at(one), sample.slot_at(other));
                let mut damaged = sample.bytes.clone();
                for at in 0..128 {
                    damaged.swap(one + at, other + at);
                }
                cases += 1;
                let what = format!("entries at {one} and {other} swapped");
                complaints.extend(judge(&sample, &damaged, &[], &what, |_| true));
            }
        }
    }
    expect_none(&complaints, cases);
}

#[test]
fn a_directory_that_nothing_points_to_is_found() {
    for sample in small() {
        for first in [0_u32, 1, 7, 0xFFFF_FFFF, 0xFFFF_FFFE, 1_000_000] {
            let mut damaged = sample.bytes.clone();
            damaged[0x30..0x34].copy_from_slice(&first.to_le_bytes());
            let what = format!("the directory said to start at {first}");
            expect_none(&judge(&sample, &damaged, &[], &what, |_| true), 1);
        }
    }
}
