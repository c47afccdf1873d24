//! Files made to cost much: the result stays in proportion to the file.

use cfb_format::{MemStorage, RepairOptions, repair};

use crate::common::files::ends;
use crate::common::raw::{Build, entry, pattern};
use crate::judge::repaired;

/// Repairs, and gives the length of the result.
fn repaired_len(bytes: &[u8]) -> usize {
    let target = MemStorage::new();
    repair(bytes, target.clone(), &RepairOptions::new()).unwrap();
    target.to_vec().len()
}

#[test]
fn streams_that_all_claim_one_chain_do_not_multiply_it() {
    ends("the repair", || {
        let mut build = Build::new(3).stream("large", &pattern(1, 3_000_000));
        for nth in 0..3000 {
            build = build.stream(&format!("s{nth}"), &[]);
        }
        let mut image = build.image();
        let start = image.start("large");
        for nth in 0..3000 {
            let path = format!("s{nth}");
            image.put_start(&path, start + nth % 7);
            image.put_size(&path, 3_000_000 - u64::from(nth));
        }
        let len = repaired_len(&image.bytes);
        assert!(len < 4 * image.bytes.len(), "{len} bytes of {}", image.bytes.len());
    });
}

#[test]
fn forged_lengths_do_not_fill_the_disk() {
    for version in [3, 4] {
        let mut build = Build::new(version);
        for nth in 0..50 {
            build = build.stream(&format!("s{nth}"), &pattern(nth, 5000));
        }
        let mut image = build.image();
        for nth in 0..50_u64 {
            image.put_size(&format!("s{nth}"), 0x7FFF_0000 << (version * 5 - 15) | nth);
        }
        let len = repaired_len(&image.bytes);
        assert!(len < 8 * image.bytes.len(), "{len} bytes of {}", image.bytes.len());
        let repaired = repaired(&image.bytes).unwrap().unwrap();
        for (nth, (_, content)) in repaired.streams.iter().enumerate() {
            assert!(content.len() >= 5000, "stream {nth} has {} bytes", content.len());
        }
    }
}

#[test]
fn deep_trees_and_many_equal_names_end() {
    ends("the repair", || {
        let mut build = Build::new(4);
        let mut path = "d".to_owned();
        for _ in 0..400 {
            build = build.storage(&path);
            path.push_str("/d");
        }
        for nth in 0..2000 {
            build = build.stream(&format!("s{nth}"), &[]);
        }
        let mut image = build.image();
        for nth in 0..2000 {
            image.put_name(&format!("s{nth}"), &[u16::from(b'x')], 4);
        }
        let repaired = repaired(&image.bytes).unwrap().unwrap();
        assert_eq!(repaired.report.storages_count(), 400);
        assert_eq!(repaired.report.streams().len(), 2000);
        assert_eq!(repaired.report.renamed_count(), 1999);
    });
}

#[test]
fn loops_everywhere_end() {
    ends("the repair", || {
        let mut build = Build::new(3).storage("a").storage("a/b");
        for nth in 0..40 {
            build = build.stream(&format!("a/s{nth}"), &pattern(nth, 300 * nth as usize));
        }
        let mut image = build.image();
        for sector in 0..image.cells() {
            if !image.fat.contains(&sector) {
                image.put_cell(sector, (sector * 7 + 3) % image.sectors());
            }
        }
        image.put_u32(image.at("a/b", entry::CHILD), image.slot("a") as u32);
        image.put_u32(image.at("a", entry::LEFT), image.slot("a/b") as u32);
        repaired(&image.bytes).unwrap();
    });
}
