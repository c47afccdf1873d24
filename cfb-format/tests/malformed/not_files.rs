//! What is no compound file is refused with the rule that says so.

use cfb_format::{Corruption, Error, FindingCode};

use crate::cases::sample;
use crate::common::files::{open, open_strict};
use crate::common::raw::header;

#[test]
fn nothing_and_little_are_too_short() {
    for len in [0, 1, 7, 8, 75, 511] {
        let bytes = &sample(3).bytes[..len];
        let Err(Error::Corrupt(corruption)) = open(bytes) else { panic!("{len} bytes open") };
        assert_eq!(corruption, Corruption::TooShort { len_bytes: len as u64 });
    }
}

#[test]
fn other_first_bytes_are_no_compound_file() {
    for text in [
        *b"PK\x03\x04\0\0\0\0",
        *b"<html>\r\n",
        *b"Received",
        [0; 8],
        [0x0E, 0x11, 0xFC, 0x0D, 0xD0, 0xCF, 0x11, 0x0E],
    ] {
        let mut image = sample(3);
        image.put(header::SIGNATURE, &text);
        let Err(Error::Corrupt(corruption)) = open(&image.bytes) else { panic!("{text:?} opens") };
        assert_eq!(corruption, Corruption::Signature { found: text });
    }
}

#[test]
fn header_alone_has_no_directory() {
    for version in [3, 4] {
        let bytes = &sample(version).bytes[..512];
        assert!(matches!(open(bytes), Err(Error::Corrupt(Corruption::NoDirectory { .. }))));
        assert!(open_strict(bytes).is_err());
    }
}

#[test]
fn directory_that_starts_nowhere_is_no_directory() {
    for start in [5000, 6_553_868, 0xFFFF_FFFA, 0xFFFF_FFFE, 0xFFFF_FFFF] {
        for version in [3, 4] {
            let mut image = sample(version);
            image.put_u32(header::FIRST_DIR, start);
            let Err(Error::Corrupt(Corruption::NoDirectory { start: found, .. })) =
                open(&image.bytes)
            else {
                panic!("{start:#x}")
            };
            assert_eq!(found, start);
        }
    }
}

#[test]
fn unknown_version_with_an_unknown_sector_size_is_refused() {
    let mut image = sample(3);
    image.put_u16(header::MAJOR, 9);
    image.put_u16(header::SHIFT, 13);
    let Err(Error::Corrupt(corruption)) = open(&image.bytes) else { panic!("version 9 opens") };
    assert_eq!(corruption, Corruption::Version { found: 9, sector_shift: 13 });
}

#[test]
fn impossible_sector_size_goes_by_the_version() {
    for version in [3, 4] {
        for shift in [0, 6, 17, 31, 64, 0xFFFF] {
            let mut image = sample(version);
            image.put_u16(header::SHIFT, shift);
            crate::cases::judge(&image.bytes, &crate::cases::breaks(&["header.sector-shift"]));
        }
    }
}

#[test]
fn errors_and_findings_read_as_sentences_with_numbers() {
    let mut image = sample(3);
    image.put_u32(header::CUTOFF, 0);
    let finding = open(&image.bytes)
        .unwrap()
        .findings()
        .into_iter()
        .find(|finding| finding.code() == FindingCode::HeaderCutoff);
    let finding = finding.unwrap();
    assert_eq!(finding.offset(), Some(0x38));
    assert!(finding.to_string().contains("4096"), "{finding}");
    let error = open(&[0; 600]).map(drop).unwrap_err();
    assert!(error.to_string().contains("compound file"), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::InvalidData);
}
