//! What one fault tells, and how often.

use cfb_format::{CompoundFile, FindingCode, MemStorage};

use crate::common::raw::{Build, END, Image, NOTHING, colour, entry, pattern};

fn codes(image: &Image) -> Vec<&'static str> {
    let file = CompoundFile::from_storage(MemStorage::from(image.bytes.clone())).expect("opens");
    let findings = file.check().expect("can be checked");
    findings.iter().map(|finding| finding.code().as_str()).collect()
}

#[test]
fn a_tree_with_several_faults_of_colour_tells_each_kind_once() {
    let mut build = Build::new(3);
    for nth in 0..7 {
        build = build.stream(&format!("s{nth}"), b"content");
    }
    let mut image = build.image();
    assert_eq!(codes(&image), [""; 0]);
    for (_, slot) in image.slots.clone().iter().skip(1) {
        image.put(image.slot_at(*slot) + entry::COLOUR, &[colour::RED]);
    }
    // Every path is as long as the others, and all of it red.
    assert_eq!(codes(&image), ["dir.two-reds", "dir.red-root"]);
    let top = image.u32(image.at("", entry::CHILD)) as usize;
    let left = image.u32(image.slot_at(top) + entry::LEFT) as usize;
    image.put(image.slot_at(left) + entry::COLOUR, &[colour::BLACK]);
    assert_eq!(codes(&image), ["dir.two-reds", "dir.red-root", "dir.black-height"]);
    // Out of order besides: what is below is not judged, the rest is.
    let right = image.u32(image.slot_at(top) + entry::RIGHT) as usize;
    image.put_u16(image.slot_at(right), u16::from(b'a'));
    assert!(codes(&image).contains(&"dir.order"));
}

#[test]
fn a_name_that_breaks_one_rule_many_times_tells_it_once() {
    let mut image = Build::new(3).stream("abc", b"content").image();
    // The length takes in twenty nulls behind the name.
    image.put_u16(image.at("abc", entry::NAME_LEN), 48);
    assert_eq!(codes(&image), ["entry.name-length"]);
}

#[test]
fn a_table_in_the_cut_last_sector_is_an_error_and_a_stream_that_ends_before_is_none() {
    let mut image = Build::new(3).stream("large", &pattern(1, 5000)).image();
    // The directory moves to the end of the file.
    let (old, new) = (image.dir[0], image.add_sector());
    let (from, to) = (image.sector_at(old), image.sector_at(new));
    image.bytes.copy_within(from..from + 512, to);
    image.put_u32(0x30, new);
    image.put_cell(new, END);
    image.put_cell(old, NOTHING);
    assert_eq!(codes(&image), [""; 0]);
    image.cut(new, 300);
    assert_eq!(codes(&image), ["file.cut-metadata", "file.partial-sector"]);

    let mut image = Build::new(3).stream("large", &pattern(1, 5000)).image();
    image.cut(image.sectors() - 1, 400);
    assert_eq!(codes(&image), [FindingCode::FilePartialSector.as_str()]);
}
