//! Departures in the directory's chain and in the trees of siblings. [MS-CFB] 2.6.4

use crate::cases::{all_but, bends, breaks, damages, forged, forged_in, judge, sample};
use crate::common::files::{ends, open};
use crate::common::raw::{Build, FREE, Image, NOTHING, colour, entry, kind, n32, pattern, units};

const ALL: &[&str] =
    &["one", "two", "none", "Store/three", "Store/four", "Store/Deep/five", "big", "large", "last"];
const BELOW_STORE: &[&str] = &["Store/three", "Store/four", "Store/Deep/five"];

/// An entry without children of its own in the tree of the root.
fn leaf(image: &Image) -> &'static str {
    let leaf = ["one", "two", "none", "big", "large", "last"].into_iter().find(|path| {
        [entry::LEFT, entry::RIGHT].iter().all(|&field| image.u32(image.at(path, field)) == NOTHING)
    });
    leaf.expect("some entry is a leaf")
}

#[test]
fn tree_that_is_all_black_breaks_no_rule() {
    forged(&bends(&["dir.black-height"]), |image| {
        for (path, _) in image.slots.clone() {
            image.put(image.at(&path, entry::COLOUR), &[colour::BLACK]);
        }
    });
}

#[test]
fn two_red_entries_in_a_row_are_found() {
    forged(&breaks(&["dir.two-reds"]), |image| {
        for (path, _) in image.slots.clone() {
            image.put(image.at(&path, entry::COLOUR), &[colour::RED]);
        }
    });
}

#[test]
fn red_top_of_a_tree_is_noted() {
    forged(&bends(&["dir.red-root"]), |image| {
        image.put(image.at("Store/Deep/five", entry::COLOUR), &[colour::RED]);
    });
}

#[test]
fn colour_that_is_none_is_found() {
    for colour in [2, 7, 0xFF] {
        forged(&breaks(&["entry.color"]), |image| {
            image.put(image.at(leaf(image), entry::COLOUR), &[colour]);
        });
    }
}

#[test]
fn sibling_that_does_not_exist_costs_nothing() {
    for sibling in [1000, 0x7FFF_FFFF, 0xFFFF_FFFA, 0xFFFF_FFFE] {
        for field in [entry::LEFT, entry::RIGHT] {
            forged(&damages(&["dir.link"], &[]), |image| {
                image.put_u32(image.at(leaf(image), field), sibling);
            });
        }
    }
}

#[test]
fn sibling_that_is_an_unused_slot_costs_nothing() {
    forged(&damages(&["dir.unused-reached", "dir.link"], &[]), |image| {
        image.put_u32(image.at(leaf(image), entry::LEFT), n32(image.unused_slot()));
    });
}

#[test]
fn sibling_that_was_met_before_costs_nothing() {
    // The entry itself, the top of its tree, the root, an entry of another storage.
    forged(&damages(&["dir.loop"], &[]), |image| {
        let leaf = leaf(image);
        image.put_u32(image.at(leaf, entry::LEFT), n32(image.slot(leaf)));
    });
    forged(&damages(&["dir.loop"], &[]), |image| {
        let top = image.u32(image.at("", entry::CHILD));
        image.put_u32(image.at(leaf(image), entry::RIGHT), top);
    });
    forged(&damages(&["dir.loop", "dir.link"], &[]), |image| {
        image.put_u32(image.at(leaf(image), entry::LEFT), 0);
    });
    forged(&damages(&["dir.loop"], BELOW_STORE), |image| {
        let other = n32(image.slot("Store/four"));
        image.put_u32(image.at(leaf(image), entry::LEFT), other);
    });
}

#[test]
fn child_that_does_not_exist_costs_what_is_below() {
    for child in [1000, 0xFFFF_FFFA] {
        forged(&damages(&["dir.link"], BELOW_STORE), |image| {
            image.put_u32(image.at("Store", entry::CHILD), child);
        });
    }
}

#[test]
fn root_without_a_child_has_nothing_below_it() {
    forged(&damages(&["dir.orphan"], ALL), |image| {
        image.put_u32(image.at("", entry::CHILD), NOTHING);
    });
    forged(&damages(&["dir.link"], ALL), |image| image.put_u32(image.at("", entry::CHILD), 1000));
    forged(&damages(&["dir.loop", "dir.link"], ALL), |image| {
        image.put_u32(image.at("", entry::CHILD), 0);
    });
}

#[test]
fn storage_that_holds_itself_or_one_above_ends() {
    forged(&damages(&["dir.loop"], BELOW_STORE), |image| {
        image.put_u32(image.at("Store", entry::CHILD), n32(image.slot("Store")));
    });
    forged(&damages(&["dir.loop"], &["Store/Deep/five"]), |image| {
        image.put_u32(image.at("Store/Deep", entry::CHILD), n32(image.slot("Store")));
    });
    forged(&damages(&["dir.loop", "dir.link"], &["Store/Deep/five"]), |image| {
        image.put_u32(image.at("Store/Deep", entry::CHILD), 0);
    });
}

#[test]
fn two_storages_with_one_child_show_it_once() {
    forged(&damages(&["dir.loop"], &[]), |image| {
        // `Bare` comes to hold what `Store/Deep` holds; whichever is read first keeps it.
        image.put_u32(image.at("Bare", entry::CHILD), NOTHING);
        image.put_u32(image.at(leaf(image), entry::LEFT), image.u32(image.at("", entry::CHILD)));
    });
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_u32(
            image.at("Bare", entry::CHILD),
            image.u32(image.at("Store/Deep", entry::CHILD)),
        );
        judge(&image.bytes, &damages(&["dir.loop"], &["Store/Deep/five"]));
        let five =
            open(&image.bytes).unwrap().walk().filter(|entry| entry.name() == "five").count();
        assert_eq!(five, 1);
    }
}

#[test]
fn entries_out_of_order_are_found_by_name_all_the_same() {
    forged(&breaks(&["dir.order"]), |image| {
        // The names stay where they are; the tree is mirrored.
        for (path, _) in image.slots.clone() {
            let (left, right) = (image.at(&path, entry::LEFT), image.at(&path, entry::RIGHT));
            let (from_left, from_right) = (image.u32(left), image.u32(right));
            image.put_u32(left, from_right);
            image.put_u32(right, from_left);
        }
    });
}

#[test]
fn two_entries_of_one_name_cost_at_most_the_way_to_one_of_them() {
    forged(&damages(&["dir.duplicate-name"], &["one", "two"]), |image| {
        image.put_name("one", &units("TWO"), 8);
    });
}

#[test]
fn stream_with_a_child_is_found_and_the_child_is_no_entry_of_the_tree() {
    forged(&breaks(&["entry.stream-child"]), |image| {
        image.put_u32(image.at("one", entry::CHILD), 0);
    });
    forged(&breaks(&["entry.stream-child"]), |image| {
        let unused = n32(image.unused_slot());
        image.put_u32(image.at("one", entry::CHILD), unused);
    });
}

#[test]
fn entry_that_nothing_links_is_found() {
    forged(&breaks(&["dir.orphan"]), |image| {
        let from = image.slot_at(image.slot("one"));
        let to = image.slot_at(image.unused_slot());
        let copy = image.bytes[from..from + entry::START].to_vec();
        image.put(to, &copy);
        image.put_u32(to + entry::START, crate::common::raw::END);
        for field in [entry::LEFT, entry::RIGHT] {
            image.put_u32(to + field, NOTHING);
        }
    });
}

#[test]
fn unused_slot_may_hold_anything() {
    // 0xFF throughout is what Aspose.Slides writes.
    forged(&breaks(&["dir.unused-slot"]), |image| {
        image.put(image.slot_at(image.unused_slot()), &[0xFF; 128]);
    });
    forged(&breaks(&["dir.unused-slot"]), |image| {
        let at = image.slot_at(image.unused_slot());
        image.put_u16(at + entry::NAME_LEN, 0xFFFF);
        image.put(at + entry::COLOUR, &[9]);
    });
    for kind in [3, 4, 6, 0xFF] {
        forged(&breaks(&["dir.unused-slot", "dir.orphan"]), |image| {
            image.put(image.slot_at(image.unused_slot()) + entry::KIND, &[kind]);
        });
    }
    forged(&breaks(&["dir.unused-slot"]), |image| {
        image.put(image.slot_at(image.unused_slot()), &[b'x', 0]);
    });
}

#[test]
fn slot_of_an_unknown_kind_in_a_tree_costs_that_entry() {
    for kind in [kind::UNUSED, 3, 4, 0xFF] {
        forged(&damages(&["dir.unused-reached"], &["one"]), |image| {
            image.put(image.at("one", entry::KIND), &[kind]);
        });
    }
}

#[test]
fn second_root_is_found() {
    forged(
        &damages(
            &[
                "dir.link",
                "root.type",
                "dir.unused-reached",
                "dir.loop",
                "entry.type",
                "dir.second-root",
            ],
            &["one"],
        ),
        |image| {
            image.put(image.at("one", entry::KIND), &[kind::ROOT]);
        },
    );
}

#[test]
fn root_with_siblings_is_found() {
    forged(&breaks(&["root.siblings"]), |image| {
        image.put_u32(image.at("", entry::LEFT), n32(image.slot("one")));
    });
}

/// A version 3 file whose directory has three sectors: four entries in each.
fn long_directory() -> Image {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
    let streams = names.iter().zip(0..);
    streams
        .fold(Build::new(3), |build, (name, seed)| build.stream(name, &pattern(seed, 5000)))
        .image()
}

/// The directory loses its later sectors: the file opens, tells, and keeps the entries of the first sector that are reached.
fn expect_some_left(image: &Image) {
    let image = image.clone();
    ends("using a file with a broken directory", move || {
        let file = open(&image.bytes).unwrap();
        let found: Vec<_> = file
            .check()
            .unwrap()
            .iter()
            .chain(&file.findings())
            .map(|f| f.code().as_str())
            .collect();
        assert!(found.contains(&"dir.chain"), "{found:?}");
        let mut intact = Vec::new();
        for entry in file.walk().filter(cfb_format::Entry::is_stream) {
            let seed = u32::from(entry.name().as_bytes()[0] - b'a');
            assert!(file.read_stream(&entry).unwrap() == pattern(seed, 5000));
            intact.push((entry.name().clone(), pattern(seed, 5000)));
        }
        crate::common::abuse::withstands_use(&image.bytes, &intact);
    });
}

#[test]
fn broken_directory_chain_costs_the_entries_behind_the_break() {
    for cell in [FREE, 5000, 0xFFFF_FFFA, 0xFFFF_FFFD] {
        let mut image = long_directory();
        image.put_cell(image.dir[0], cell);
        expect_some_left(&image);
    }
    let mut image = long_directory();
    image.put_cell(image.dir[2], image.dir[0]);
    expect_some_left(&image);
    let mut image = long_directory();
    image.put_cell(image.dir[1], image.dir[1]);
    expect_some_left(&image);
}

#[test]
fn directory_chain_that_comes_back_to_itself_costs_nothing_in_a_directory_that_was_read() {
    forged(&damages(&["dir.chain"], &[]), |image| {
        let last = *image.dir.last().unwrap();
        image.put_cell(last, image.dir[0]);
    });
}

#[test]
fn directory_and_a_stream_that_share_sectors_cost_the_stream() {
    forged_in(3, &damages(&["sector.shared", "stream.broken"], &["big"]), |image| {
        image.put_start("big", image.dir[1]);
    });
    assert_eq!(all_but(&["big"]).len(), 8);
}
