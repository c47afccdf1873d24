//! Departures in FAT, DIFAT, `MiniFAT` and mini stream. [MS-CFB] 2.3 to 2.5

use crate::cases::{Expect, bends, breaks, damages, forged, forged_in, judge, sample};
use crate::common::abuse::{withstands_adding, withstands_use};
use crate::common::files::{ends, open, open_strict};
use crate::common::raw::{Build, DIFAT, END, FAT, FREE, Image, header, pattern};

/// The small streams of the sample.
const SMALL: &[&str] = &["one", "two", "Store/three", "Store/four", "Store/Deep/five", "last"];

fn past_end(value: u32) -> impl Fn(&mut Image) {
    move |image| {
        for cell in image.sectors()..image.cells() {
            image.put_cell(cell, value);
        }
    }
}

#[test]
fn fat_cells_past_the_end_of_the_file_may_hold_anything() {
    // ENDOFCHAIN is what js-cfb writes, 0 what Altium writes; the rest are what is left of truncated files.
    for value in [END, 0, 1, 5, FAT, DIFAT, 0x0012_3456, 0xFFFF_FFFA] {
        forged(&breaks(&["fat.cell-past-end"]), past_end(value));
    }
}

#[test]
fn one_fat_cell_past_the_end_in_use_is_found() {
    forged(&breaks(&["fat.cell-past-end"]), |image| image.put_cell(image.cells() - 1, END));
    forged(&breaks(&["fat.cell-past-end"]), |image| {
        image.put_cell(image.sectors(), image.sectors() + 1);
    });
}

#[test]
fn fat_sector_that_is_not_marked_is_not_given_away() {
    for mark in [FREE, END, DIFAT, 0, 3] {
        forged(&breaks(&["fat.not-marked"]), |image| image.put_cell(image.fat[0], mark));
    }
}

#[test]
fn sector_that_is_marked_as_a_table_and_is_none_is_found() {
    for mark in [FAT, DIFAT] {
        forged(&breaks(&["fat.marked-wrongly"]), |image| image.put_cell(image.free_cell(), mark));
    }
}

#[test]
fn sector_that_belongs_to_nothing_is_found() {
    forged(&breaks(&["sector.orphan"]), |image| image.put_cell(image.free_cell(), END));
}

#[test]
fn free_cell_with_a_reserved_value_is_found() {
    forged(&breaks(&["fat.bad-cell", "sector.orphan"]), |image| {
        image.put_cell(image.free_cell(), 0xFFFF_FFFB);
    });
    forged(&breaks(&["fat.bad-cell", "sector.orphan"]), |image| {
        image.put_cell(image.free_cell(), 0x7000_0000);
    });
}

#[test]
fn trailing_sectors_that_the_fat_does_not_cover_are_found() {
    forged(&bends(&["file.trailing-data"]), |image| {
        let more = image.cells() - image.sectors() + 20;
        image.bytes.resize(image.bytes.len() + more as usize * image.sector_bytes, 0x4D);
    });
}

#[test]
fn part_of_a_sector_at_the_end_is_noted() {
    forged(&bends(&["file.partial-sector"]), |image| image.bytes.extend(b"a few more bytes"));
    // The free sector and the unused rest of the last stream's last sector are cut off.
    forged(&bends(&["file.partial-sector"]), |image| {
        let used = 30_000 % image.sector_bytes;
        image.cut(image.sectors() - 2, used + 5);
    });
}

#[test]
fn unused_difat_fields_may_hold_anything() {
    for value in [END, 0, DIFAT, FAT, 0xFFFF, 0x7FFF_FFFF] {
        forged(&breaks(&["difat.padding", "difat.entry", "difat.repeated"]), |image| {
            for nth in image.fat.len()..109 {
                image.put_u32(Image::difat_at(nth), value);
            }
        });
        forged(&breaks(&["difat.padding", "difat.entry", "difat.repeated"]), |image| {
            image.put_u32(Image::difat_at(108), value);
        });
    }
}

#[test]
fn difat_field_that_names_no_sector_is_found() {
    for value in [5000, 0x00FF_0000, 0xFFFF_FFFA] {
        forged(&breaks(&["difat.entry"]), |image| {
            image.put_u32(header::FAT_COUNT, 2);
            image.put_u32(Image::difat_at(1), value);
        });
    }
}

#[test]
fn difat_that_names_one_sector_twice_is_found() {
    forged(&breaks(&["difat.repeated"]), |image| {
        image.put_u32(header::FAT_COUNT, 2);
        image.put_u32(Image::difat_at(1), image.fat[0]);
    });
}

/// A version 3 file of 7.6 MB, which needs a DIFAT sector, with its end forged.
fn forged_difat(codes: &'static [&'static str], forge: impl Fn(&mut Image)) {
    let mut image = Build::new(3)
        .stream("small", &pattern(1, 100))
        .stream("big", &pattern(2, 7_600_000))
        .image();
    assert_eq!(image.difat.len(), 1);
    forge(&mut image);
    ends("using a forged file", move || {
        let file = open(&image.bytes).unwrap();
        assert!(file.read_stream("big").unwrap() == pattern(2, 7_600_000));
        assert_eq!(file.read_stream("small").unwrap(), pattern(1, 100));
        let found: Vec<_> = file
            .check()
            .unwrap()
            .iter()
            .chain(&file.findings())
            .map(|f| f.code().as_str())
            .collect();
        assert!(found.iter().any(|code| codes.contains(code)), "{found:?}");
        assert!(open_strict(&image.bytes).is_err());
        withstands_adding(
            &image.bytes,
            &[("small".to_string(), pattern(1, 100)), ("big".to_string(), pattern(2, 7_600_000))],
        );
    });
}

fn difat_end(image: &Image) -> usize {
    image.sector_at(image.difat[0]) + image.sector_bytes - 4
}

#[test]
fn difat_chain_may_end_in_anything() {
    // FREESECT from Excel, 0 from Premiere, garbage from Avid, and a sector that is the DIFAT sector itself.
    forged_difat(&["difat.chain"], |image| image.put_u32(difat_end(image), FREE));
    forged_difat(&["difat.chain", "difat.entry", "difat.repeated"], |image| {
        image.put_u32(difat_end(image), 0);
    });
    forged_difat(&["difat.chain"], |image| image.put_u32(difat_end(image), 0x0001_B3EF));
    forged_difat(&["difat.chain"], |image| image.put_u32(difat_end(image), image.difat[0]));
}

#[test]
fn unused_fields_of_a_difat_sector_may_hold_anything() {
    for value in [0, END, 0x7FFF_FFFF] {
        forged_difat(&["difat.padding", "difat.entry", "difat.repeated"], |image| {
            let first = image.sector_at(image.difat[0]) + 4 * (image.fat.len() - 109);
            for at in (first..difat_end(image)).step_by(4) {
                image.put_u32(at, value);
            }
        });
    }
}

#[test]
fn difat_sector_that_is_not_marked_is_not_given_away() {
    for mark in [FREE, END, FAT] {
        forged_difat(&["difat.not-marked"], |image| image.put_cell(image.difat[0], mark));
    }
}

#[test]
fn count_of_difat_sectors_is_not_needed() {
    for count in [0, 2, u32::MAX] {
        forged_difat(&["header.difat-sectors"], |image| image.put_u32(header::DIFAT_COUNT, count));
    }
}

#[test]
fn mini_fat_cells_past_the_mini_stream_may_hold_anything() {
    for value in [END, 0, 1, 0x7FFF_FFFF] {
        forged(&breaks(&["minifat.past-end"]), |image| {
            let minis = image.u64(image.at("", crate::common::raw::entry::SIZE)) / 64;
            for cell in u32::try_from(minis).unwrap()..image.cells().min(128) {
                image.put_mini_cell(cell, value);
            }
        });
    }
}

#[test]
fn mini_sector_that_belongs_to_nothing_is_found() {
    // One more mini sector in the mini stream, in use by nobody.
    forged(&breaks(&["mini-sector.orphan"]), |image| {
        let at = image.at("", crate::common::raw::entry::SIZE);
        let size = image.u64(at);
        assert!(size % image.sector_bytes as u64 != 0, "there is room in the last sector");
        image.put_mini_cell(u32::try_from(size / 64).unwrap(), END);
        image.put_u64(at, size + 64);
    });
}

#[test]
fn mini_stream_size_that_is_no_multiple_of_64_costs_nothing() {
    // The last mini sector is that of `last`, of 120 bytes: 56 of its 64 bytes are in use.
    forged(&breaks(&["root.size"]), |image| {
        let at = image.at("", crate::common::raw::entry::SIZE);
        let size = image.u64(at);
        image.put_u64(at, size - 8);
    });
}

#[test]
fn broken_mini_fat_chain_costs_the_small_streams() {
    for start in [FREE, END, 5000, 0xFFFF_FFFC] {
        forged(&damages(&["minifat.chain", "minifat.short"], SMALL), |image| {
            image.put_u32(header::FIRST_MINI_FAT, start);
        });
    }
}

#[test]
fn mini_stream_without_its_chain_costs_the_small_streams() {
    for start in [FREE, END, 5000, 0xFFFF_FFFC] {
        forged(&damages(&["ministream.short"], SMALL), |image| image.put_start("", start));
    }
}

#[test]
fn mini_stream_that_is_shorter_than_its_size_costs_the_streams_behind_its_end() {
    forged_in(3, &damages(&["ministream.short"], SMALL), |image| {
        image.put_cell(image.mini_stream[0], END);
    });
}

#[test]
fn mini_stream_size_that_is_too_small_costs_at_most_the_streams_behind_it() {
    forged(&damages(&["minifat.past-end", "stream.broken"], SMALL), |image| {
        image.put_size("", 128);
    });
}

#[test]
fn mini_stream_chain_that_is_too_long_is_noted() {
    forged(&bends(&["ministream.long"]), |image| {
        let free = image.free_cell();
        let mut chain = image.mini_stream.clone();
        chain.push(free);
        image.link(&chain);
    });
}

#[test]
fn file_without_small_streams_may_say_anything_about_the_mini_stream() {
    for version in [3, 4] {
        for start in [0, FREE, 3] {
            let mut image = Build::new(version).stream("big", &pattern(1, 9000)).image();
            image.put_start("", start);
            ends("using a file without mini stream", move || {
                let file = open(&image.bytes).unwrap();
                assert!(file.read_stream("big").unwrap() == pattern(1, 9000));
                let found: Vec<_> =
                    file.check().unwrap().iter().map(|finding| finding.code().as_str()).collect();
                // "Free" says as well as "end of chain" that there is none.
                assert_eq!(found, if start == FREE { vec![] } else { vec!["root.start"] });
                withstands_use(&image.bytes, &[("big".to_string(), pattern(1, 9000))]);
            });
        }
    }
}

#[test]
fn cross_linked_chains_cost_at_most_their_two_streams() {
    forged(&damages(&["sector.shared", "stream.broken"], &["big", "large"]), |image| {
        let into = image.start("large") + 3;
        image.put_cell(image.start("big") + 2, into);
    });
    forged(&damages(&["mini-sector.shared", "stream.broken"], &["one", "Store/three"]), |image| {
        let into = image.start("Store/three") + 3;
        image.put_mini_cell(image.start("one"), into);
    });
}

#[test]
fn broken_chain_costs_its_stream() {
    for cell in [FREE, END, 5000, 0xFFFF_FFFA, FAT] {
        forged(&damages(&["stream.broken"], &["big"]), |image| {
            image.put_cell(image.start("big") + 2, cell);
        });
        forged(&damages(&["stream.broken"], &["Store/three"]), |image| {
            image.put_mini_cell(image.start("Store/three") + 2, cell);
        });
    }
}

#[test]
fn chain_that_has_all_its_sectors_and_no_end_mark_costs_nothing() {
    for cell in [FREE, 5000, 0xFFFF_FFFA, 0xFFFF_FFFB] {
        forged(&breaks(&["stream.chain-end"]), |image| {
            let last = *image.chain(image.start("big")).last().unwrap();
            image.put_cell(last, cell);
        });
        forged(&breaks(&["stream.chain-end"]), |image| {
            let last = image.start("last") + 1;
            assert_eq!(image.mini_cell(last), END);
            image.put_mini_cell(last, cell);
        });
    }
    // A sector that does not exist yet, and will once the file has grown.
    for ahead in 0..4 {
        forged(&breaks(&["stream.chain-end"]), |image| {
            let last = *image.chain(image.start("large")).last().unwrap();
            image.put_cell(last, image.sectors() + ahead);
        });
    }
}

#[test]
fn chain_that_comes_back_to_itself_costs_its_stream() {
    forged(&damages(&["stream.broken"], &["big"]), |image| {
        image.put_cell(image.start("big") + 2, image.start("big"));
    });
    forged(&damages(&["stream.broken"], &["Store/three"]), |image| {
        let start = image.start("Store/three");
        image.put_mini_cell(start + 2, start + 2);
    });
}

#[test]
fn chain_that_is_longer_than_its_stream_is_noted() {
    let expect = Expect { codes: &["stream.chain-long"], strict_refuses: false, damaged: &[] };
    forged(&expect, |image| {
        let mut chain = image.chain(image.start("big"));
        chain.push(image.free_cell());
        image.link(&chain);
    });
}

#[test]
fn sectors_in_any_order_are_read_in_the_chain_s_order() {
    for version in [3, 4] {
        let mut image = sample(version);
        // Every second sector of `big` changes places with its opposite.
        let chain = image.chain(image.start("big"));
        let mut order = chain.clone();
        order.reverse();
        let bytes = image.bytes.clone();
        for (&from, &to) in chain.iter().zip(&order) {
            let (from, to) = (image.sector_at(from), image.sector_at(to));
            image.put(to, &bytes[from..from + image.sector_bytes]);
        }
        image.link(&order);
        image.put_start("big", order[0]);
        assert_eq!(open_strict(&image.bytes).unwrap().check().unwrap(), []);
        crate::common::raw::inspect(&image.bytes).expect_sound();
        withstands_use(&image.bytes, &crate::cases::all_but(&[]));
    }
}

#[test]
fn half_of_the_sample_s_fat_gone_costs_streams_but_not_the_file() {
    let mut image = sample(3);
    for cell in image.start("big")..image.cells() {
        image.put_cell(cell, FREE);
    }
    judge(&image.bytes, &damages(&["stream.broken"], &["big", "large"]));
}
