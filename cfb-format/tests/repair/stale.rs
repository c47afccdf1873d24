//! Copies of tables and directories from an earlier state, left in free sectors: they are never mixed with the present
//! state unmarked.

use cfb_format::{CreateOptions, MemStorage, Recovery};

use crate::common::raw::{Build, END, FAT, FREE, Image, Owner, inspect, pattern};
use crate::judge::repaired;

/// A file whose last sector is free and holds its FAT as it was when it lay there: `moved` had other sectors then.
fn with_old_fat() -> Image {
    let mut build =
        Build::new(3).stream("kept", &pattern(1, 9000)).stream("moved", &pattern(2, 9000));
    for nth in 0..6 {
        build = build.stream(&format!("s{nth}"), &pattern(10 + nth, 700));
    }
    let mut image = build.image();
    let old_place = image.add_sector();
    assert_eq!(image.fat.len(), 1, "one part");
    let mut old = image.clone();
    old.put_cell(old_place, FAT);
    old.put_cell(image.fat[0], FREE);
    let chain = image.chain(image.start("moved"));
    // The same start, the same length, another way.
    let mut way = chain.clone();
    way[1..].reverse();
    old.link(&way);
    assert_eq!(old.cell(way[way.len() - 1]), END);
    let (from, to) = (image.sector_at(image.fat[0]), image.sector_at(old_place));
    let fat = old.bytes[from..from + 512].to_vec();
    image.put(to, &fat);
    image
}

#[test]
fn an_old_fat_in_a_free_sector_is_left_alone_while_the_header_says_which_is_which() {
    let image = with_old_fat();
    let repaired = repaired(&image.bytes).unwrap().unwrap();
    assert!(repaired.report.is_whole(), "{}", repaired.report);
    assert_eq!(repaired.file.read_stream("moved").unwrap(), pattern(2, 9000));
}

#[test]
fn where_two_fats_contradict_each_other_streams_are_doubtful_and_others_are_not() {
    let mut image = with_old_fat();
    image.bytes[..512].fill(0);
    let repaired = repaired(&image.bytes).unwrap().unwrap();
    let stream = |path: &str| {
        let mut streams = repaired.report.streams().iter();
        streams.find(|stream| stream.path() == path).expect("it is there")
    };
    assert_eq!(stream("/moved").recovery(), Recovery::Guessed);
    assert_eq!(stream("/moved").doubtful().iter().map(|r| r.end - r.start).sum::<u64>(), 9000);
    assert_eq!(stream("/kept").recovery(), Recovery::Whole);
    assert_eq!(repaired.file.read_stream("kept").unwrap(), pattern(1, 9000));
}

/// Streams in pieces, saved atomically twice: the state before the last save is still there, in free sectors.
fn saved_twice() -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let memory = MemStorage::new();
    let options = CreateOptions::new().in_place(false);
    let file = options.create_storage(memory.clone()).unwrap();
    let streams: Vec<(String, Vec<u8>)> = (0..6)
        .map(|nth| (format!("stream {nth}"), pattern(nth + 1, 5000 * (nth as usize + 1))))
        .collect();
    for round in 0..4 {
        for (path, bytes) in &streams {
            let piece = bytes.len().div_ceil(4);
            let stream = match round {
                0 => file.create_stream(path).unwrap(),
                _ => file.open_stream(path.as_str()).unwrap(),
            };
            let (from, to) = (round * piece, ((round + 1) * piece).min(bytes.len()));
            stream.write_at(&bytes[from..to], from as u64).unwrap();
        }
        file.flush().unwrap();
    }
    // Touches no stream of those.
    file.write_stream("tiny", b"a few bytes").unwrap();
    file.flush().unwrap();
    drop(file);
    (memory.to_vec(), streams)
}

#[test]
fn an_earlier_fat_in_a_free_sector_stands_in_for_an_overwritten_one_and_is_told_as_doubtful() {
    let (mut bytes, streams) = saved_twice();
    let account = inspect(&bytes).expect_sound();
    assert!(streams.iter().any(|(path, _)| account.pieces(path) > 2), "streams in pieces");
    for (sector, _) in account.owners.iter().enumerate().filter(|(_, of)| **of == Owner::Fat) {
        bytes[(sector + 1) * 512..(sector + 2) * 512].fill(0);
    }
    let repaired = repaired(&bytes).unwrap().unwrap();
    for (path, content) in &streams {
        let row = repaired.streams.iter().find(|(row, _)| row.path() == format!("/{path}"));
        let (row, found) = row.expect("it is there");
        assert!(found == content, "{row}");
        assert_eq!(row.recovery(), Recovery::Guessed);
        assert_eq!(row.doubtful().iter().map(|r| r.end - r.start).sum::<u64>(), row.len());
    }
}
