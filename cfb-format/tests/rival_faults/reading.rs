//! Reading a damaged stream gives the part that is there, then says what is wrong and where.

use std::io::{Read, Seek, SeekFrom};

use cfb_format::{Corruption, Error};

use crate::common::files::{ends, open};
use crate::common::raw::{Build, END, FREE, Image, pattern};

fn sample(version: u16) -> Image {
    Build::new(version)
        .stream("big", &pattern(1, 60_000))
        .stream("small", &pattern(2, 4000))
        .stream("other", &pattern(3, 100))
        .image()
}

/// Reads `path` in every way; each gives the first `intact` bytes of `whole`, then an error that names a broken rule.
fn expect_part(image: &Image, path: &str, whole: &[u8], intact: usize) -> Corruption {
    let file = open(&image.bytes).unwrap();
    let mut stream = file.open_stream(path).unwrap();
    assert_eq!(
        file.entry(path).unwrap().len(),
        whole.len() as u64,
        "the length is what the entry says"
    );

    let mut read = Vec::new();
    let error = stream.read_to_end(&mut read).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert_eq!(read.len(), intact);
    assert!(read == whole[..intact]);

    // The first read that asks for more than there is gives what there is.
    stream.seek(SeekFrom::Start(10)).unwrap();
    let mut buf = vec![0; whole.len()];
    let mut done = 10;
    while done < intact {
        let count = stream.read(&mut buf).unwrap();
        assert!(count > 0, "{done} of {intact}");
        assert!(buf[..count] == whole[done..done + count]);
        done += count;
    }
    assert_eq!(done, intact);
    assert!(stream.read(&mut buf).is_err());

    let count = stream.read_at(&mut buf, 0).unwrap();
    assert_eq!(count, intact);
    assert!(buf[..intact] == whole[..intact]);
    let Err(Error::Corrupt(corruption)) = stream.read_at(&mut buf, intact as u64) else {
        panic!("no error")
    };
    assert!(matches!(file.read_stream(path), Err(Error::Corrupt(_))));
    assert!(file.read_stream("other").unwrap() == pattern(3, 100));
    corruption
}

#[test]
fn b48_chain_that_ends_early_gives_its_part() {
    for version in [3, 4] {
        let mut image = sample(version);
        let kept = 5 * image.sector_bytes;
        image.put_cell(image.start("big") + 4, END);
        let corruption = expect_part(&image, "big", &pattern(1, 60_000), kept);
        assert_eq!(
            corruption,
            Corruption::ShortChain { chain_bytes: kept as u64, len_bytes: 60_000 }
        );
    }
}

#[test]
fn b48_chain_that_leaves_the_file_gives_its_part() {
    for version in [3, 4] {
        let mut image = sample(version);
        let at = image.start("big") + 4;
        image.put_cell(at, 0x00AB_CDEF);
        let corruption = expect_part(&image, "big", &pattern(1, 60_000), 5 * image.sector_bytes);
        let expected = Corruption::OutOfRange {
            from: Some(at),
            to: 0x00AB_CDEF,
            sectors_count: image.sectors(),
        };
        assert_eq!(corruption, expected);
    }
}

#[test]
fn b48_chain_that_enters_a_free_sector_gives_its_part() {
    for version in [3, 4] {
        let mut image = sample(version);
        let at = image.start("big") + 4;
        image.put_cell(at, FREE);
        expect_part(&image, "big", &pattern(1, 60_000), 5 * image.sector_bytes);
    }
}

#[test]
fn b48_chain_that_comes_back_to_itself_gives_its_part() {
    for version in [3, 4] {
        let mut image = sample(version);
        let at = image.start("big") + 4;
        image.put_cell(at, at - 2);
        let corruption = expect_part(&image, "big", &pattern(1, 60_000), 5 * image.sector_bytes);
        assert_eq!(corruption, Corruption::Cycle { sector: at - 2 });
    }
}

#[test]
fn b48_mini_chain_that_ends_early_gives_its_part() {
    for version in [3, 4] {
        for cell in [END, FREE, 0x00AB_CDEF] {
            let mut image = sample(version);
            image.put_mini_cell(image.start("small") + 9, cell);
            expect_part(&image, "small", &pattern(2, 4000), 640);
        }
        let mut image = sample(version);
        let at = image.start("small") + 9;
        image.put_mini_cell(at, at);
        let corruption = expect_part(&image, "small", &pattern(2, 4000), 640);
        assert_eq!(corruption, Corruption::Cycle { sector: at });
    }
}

#[test]
fn b48_truncated_file_gives_what_is_left_of_its_last_stream() {
    for version in [3, 4] {
        let build = Build::new(version)
            .stream("other", &pattern(3, 100))
            .stream("big", &pattern(1, 60_000));
        for more in [0, 100] {
            let mut image = build.image();
            image.cut(image.start("big") + 7, more);
            let intact = 7 * image.sector_bytes + more;
            expect_part(&image, "big", &pattern(1, 60_000), intact);
        }
    }
}

#[test]
fn b48_size_that_no_chain_can_hold_gives_what_is_there_and_reserves_no_more() {
    for (version, size) in
        [(3, 0x7FFF_FFFF_u64), (3, 0xFFFF_FFFF), (4, 1 << 40), (4, 1 << 62), (4, u64::MAX)]
    {
        ends("reading a stream of impossible size", move || {
            let mut image = sample(version);
            image.put_size("big", size);
            let file = open(&image.bytes).unwrap();
            let mut read = Vec::new();
            assert!(file.open_stream("big").unwrap().read_to_end(&mut read).is_err());
            assert!(read[..60_000] == pattern(1, 60_000));
            assert!(read.len() < 60_000 + image.sector_bytes);
            assert!(file.read_stream("big").is_err());
            assert!(file.read_stream("other").unwrap() == pattern(3, 100));
        });
    }
}
