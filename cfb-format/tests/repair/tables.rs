//! FAT, DIFAT and `MiniFAT` overwritten: streams in one piece come back whole, others as far as their links are left, and
//! what was guessed is marked.

use std::ops::Range;

use crate::common::raw::Owner;
use crate::judge::{expect_none, judge, overwritten};
use crate::samples::{Sample, plain, small, with_difat, worn};

fn overwrite(
    sample: &Sample,
    owner: Owner,
    lengths: &[usize],
    expected: impl Fn(&Range<usize>, &str) -> bool,
) -> (usize, Vec<String>) {
    let (mut cases, mut complaints) = (0, Vec::new());
    for sector in sample.sectors_of(owner) {
        for len in lengths.iter().map(|&len| len.min(sample.sector_bytes())) {
            for at in (0..sample.sector_bytes()).step_by(len) {
                let range = sector + at..sector + (at + len).min(sample.sector_bytes());
                for (how, damaged) in overwritten(&sample.bytes, &range) {
                    cases += 1;
                    let what = format!("{how} over bytes {range:?} of {owner:?}");
                    let expected = |path: &str| expected(&range, path);
                    complaints.extend(judge(
                        sample,
                        &damaged,
                        std::slice::from_ref(&range),
                        &what,
                        expected,
                    ));
                }
            }
        }
    }
    (cases, complaints)
}

#[test]
fn streams_in_one_piece_survive_an_overwritten_fat() {
    for sample in [plain(3), plain(4)] {
        let (cases, complaints) = overwrite(&sample, Owner::Fat, &[4, 20, 64, 4096], |_, _| true);
        expect_none(&complaints, cases);
    }
}

#[test]
fn streams_in_one_piece_survive_an_overwritten_mini_fat() {
    for sample in [plain(3), plain(4)] {
        let (cases, complaints) =
            overwrite(&sample, Owner::MiniFat, &[4, 20, 64, 4096], |_, _| true);
        expect_none(&complaints, cases);
    }
}

#[test]
fn streams_in_pieces_survive_where_their_links_do_and_guesses_are_marked() {
    for sample in [worn(cfb_format::Version::V3), worn(cfb_format::Version::V4)] {
        let fat = sample.sectors_of(Owner::Fat);
        let cells = sample.sector_bytes() / 4;
        // The cells of the stream's own chain, and of the mini stream for small ones.
        let linked = |range: &Range<usize>, path: &str| {
            let item = sample.account.item(path);
            let chain = if item.len < 4096 { &sample.account.mini_stream } else { &item.chain };
            // In this file part n of the FAT need not be its nth sector: any hit counts.
            !chain.iter().any(|&unit| {
                fat.iter().any(|&sector| {
                    let at = sector + unit as usize % cells * 4;
                    at < range.end && range.start < at + 4
                })
            })
        };
        let (cases, complaints) = overwrite(&sample, Owner::Fat, &[4, 20, 128, 4096], linked);
        expect_none(&complaints, cases);
        let (cases, complaints) = overwrite(&sample, Owner::MiniFat, &[4, 64, 4096], |_, path| {
            sample.account.item(path).len >= 4096
        });
        expect_none(&complaints, cases);
    }
}

#[test]
fn an_overwritten_difat_costs_nothing() {
    let (cases, complaints) = overwrite(&with_difat(), Owner::Difat, &[60, 512], |_, _| true);
    expect_none(&complaints, cases);
}

#[test]
fn header_and_difat_and_fat_gone_together_leave_what_is_in_one_piece() {
    for sample in small().into_iter().filter(|sample| sample.name.starts_with("plain")) {
        let mut damaged = sample.bytes.clone();
        damaged[..512].fill(0);
        for sector in sample.sectors_of(Owner::Fat) {
            damaged[sector..sector + sample.sector_bytes()].fill(0);
        }
        let complaints = judge(&sample, &damaged, &[], "no header and no FAT", |_| true);
        expect_none(&complaints, 1);
    }
}

#[test]
fn two_streams_that_claim_one_sector_are_told() {
    let content = |seed| crate::common::raw::pattern(seed, 20 * 512);
    let build =
        crate::common::raw::Build::new(3).stream("one", &content(1)).stream("two", &content(2));
    // Into the middle of the other, as deep as here: either may be the one that is wrong.
    let mut image = build.image();
    let (one, two) = (image.start("one"), image.start("two"));
    image.put_cell(one + 4, two + 5);
    let repaired = crate::judge::repaired(&image.bytes).unwrap().unwrap();
    for (stream, _) in &repaired.streams {
        let doubtful: Vec<_> = stream.doubtful().iter().collect();
        assert_eq!(doubtful, [&(5 * 512..20 * 512)], "{stream}");
    }
    // To where the chain is too long: the other is right, and this one goes on where it did.
    let mut image = build.image();
    image.put_cell(one + 4, two + 1);
    let repaired = crate::judge::repaired(&image.bytes).unwrap().unwrap();
    let row = |path: &str| repaired.streams.iter().find(|(s, _)| s.path() == path).unwrap();
    assert_eq!(row("/two").0.recovery(), cfb_format::Recovery::Whole);
    assert!(row("/one").1 == content(1), "the rest lies behind, and has the missing length");
    assert_eq!(row("/one").0.guessed().iter().collect::<Vec<_>>(), [&(5 * 512..20 * 512)]);
}
