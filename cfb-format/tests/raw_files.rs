//! The files that the tests build by hand are sound, and their judge sees every fault put into them.

mod common;

use common::raw::{Build, END, FREE, Image, Owner, colour, entry, header, inspect, n32, pattern};

fn sample(version: u16) -> Image {
    let mut build = Build::new(version)
        .storage("Docs")
        .stream("Docs/big", &pattern(1, 20_000))
        .stream("Docs/small", &pattern(2, 300));
    for nth in 0..21 {
        build = build.stream(&format!("s{nth}"), &pattern(nth, 100 * nth as usize));
    }
    build.image()
}

#[test]
fn built_files_are_sound_and_hold_their_streams() {
    for version in [3, 4] {
        let image = sample(version);
        let account = inspect(&image.bytes).expect_sound();
        assert_eq!(account.items.len(), 25);
        assert_eq!(account.content(&image.bytes, "Docs/big"), pattern(1, 20_000));
        assert_eq!(account.content(&image.bytes, "Docs/small"), pattern(2, 300));
        assert_eq!(account.content(&image.bytes, "s20"), pattern(20, 2000));
        assert_eq!(account.pieces("Docs/big"), 1);
        assert_eq!(account.count(Owner::Nobody), 0);
        assert_eq!(account.deepest, 5);
    }
}

#[test]
fn built_files_of_more_than_109_fat_sectors_have_a_difat() {
    let image = Build::new(3).stream("big", &pattern(1, 8_000_000)).image();
    assert_eq!(image.difat.len(), 1);
    let account = inspect(&image.bytes).expect_sound();
    assert_eq!(account.count(Owner::Difat), 1);
    assert_eq!(account.content(&image.bytes, "big"), pattern(1, 8_000_000));
}

type Forgery = (&'static str, fn(&mut Image));

#[test]
fn judge_names_every_forgery() {
    let forgeries: [Forgery; 14] = [
        ("FAT sectors in the header", |i| i.put_u32(header::FAT_COUNT, 7)),
        ("reserved bytes", |i| i.put_u16(header::RESERVED, 1)),
        ("end of the chain of the stream Docs/big", |i| i.put_cell(i.start("Docs/big") + 3, FREE)),
        ("sectors of stream Docs/big", |i| i.put_cell(i.start("Docs/big") + 3, END)),
        ("and to Stream", |i| i.put_start("Docs/big", i.dir[0])),
        ("mini sectors of stream s9", |i| i.put_mini_cell(i.start("s9"), END)),
        ("and to stream", |i| i.put_start("s9", i.start("s10"))),
        ("black nodes", |i| {
            let at = i.at("s0", entry::COLOUR);
            i.bytes[at] = colour::BLACK - i.bytes[at];
        }),
        ("does not come before", |i| i.put_u16(i.at("s5", entry::NAME), u16::from(b'z'))),
        ("linked twice", |i| i.put_u32(i.at("s5", entry::LEFT), n32(i.slot("Docs")))),
        ("is empty", |i| i.put(i.slot_at(i.unused_slot()) + entry::KIND, &[2])),
        ("cells past the end are free", |i| i.put_cell(i.cells() - 1, END)),
        ("bytes after the last whole sector", |i| i.bytes.push(0)),
        ("nothing owns sector", |i| {
            let sector = i.add_sector();
            i.put_cell(sector, END);
        }),
    ];
    for (expected, forge) in forgeries {
        let mut image = sample(3);
        forge(&mut image);
        let complaints = inspect(&image.bytes).complaints.join("\n");
        assert!(complaints.contains(expected), "{expected}: {complaints}");
    }
}
