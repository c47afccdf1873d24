//! Departures in the header. [MS-CFB] 2.2

use crate::cases::{all_but, bends, breaks, forged, forged_in, sample};
use crate::common::abuse::withstands_use;
use crate::common::files::open_strict;
use crate::common::raw::{FREE, header};

#[test]
fn minor_version_of_another_writer_is_noted() {
    for minor in [0x3B, 0x21, 0] {
        forged(&bends(&["header.minor-version"]), |image| image.put_u16(header::MINOR, minor));
    }
}

#[test]
fn class_id_in_the_header_is_found() {
    forged(&breaks(&["header.clsid"]), |image| image.put(header::CLSID, &[0x41; 16]));
}

#[test]
fn any_transaction_signature_is_as_good_as_another() {
    for signature in [1, 2, u32::MAX] {
        forged(&bends(&[]), |image| {
            image.put_u32(header::TRANSACTION, signature);
        });
    }
}

#[test]
fn wrong_byte_order_mark_is_found() {
    for mark in [0xFEFF, 0, 0xFFFF] {
        forged(&breaks(&["header.byte-order"]), |image| image.put_u16(header::BYTE_ORDER, mark));
    }
}

#[test]
fn reserved_bytes_in_use_are_found() {
    for byte in 0..6 {
        forged(&breaks(&["header.reserved"]), |image| image.put(header::RESERVED + byte, &[7]));
    }
}

#[test]
fn wrong_cutoff_is_found() {
    for cutoff in [0, 4095, 8192, u32::MAX] {
        forged(&breaks(&["header.mini-stream-cutoff"]), |image| {
            image.put_u32(header::CUTOFF, cutoff);
        });
    }
}

#[test]
fn impossible_mini_sector_size_is_found() {
    for shift in [0, 1, 31, 64, 0xFFFF] {
        forged(&breaks(&["header.mini-sector-shift"]), |image| {
            image.put_u16(header::MINI_SHIFT, shift);
        });
    }
}

#[test]
fn wrong_count_of_directory_sectors_is_found() {
    for count in [7, 8192, u32::MAX] {
        forged(&breaks(&["header.dir-sectors"]), |image| image.put_u32(header::DIR_COUNT, count));
    }
    forged_in(4, &breaks(&["header.dir-sectors"]), |image| image.put_u32(header::DIR_COUNT, 0));
}

#[test]
fn wrong_count_of_fat_sectors_is_found() {
    for count in [0, 2, 3, 110, 1 << 20, u32::MAX] {
        forged(&breaks(&["header.fat-sectors"]), |image| image.put_u32(header::FAT_COUNT, count));
    }
}

#[test]
fn wrong_count_of_mini_fat_sectors_is_found() {
    for count in [0, 2, 1 << 20, u32::MAX] {
        forged(&breaks(&["header.minifat-sectors"]), |image| {
            image.put_u32(header::MINI_FAT_COUNT, count);
        });
    }
}

#[test]
fn wrong_count_of_difat_sectors_is_found() {
    for count in [1, 1 << 20, u32::MAX] {
        forged(&breaks(&["header.difat-sectors"]), |image| {
            image.put_u32(header::DIFAT_COUNT, count);
        });
    }
}

#[test]
fn first_difat_sector_may_be_free_where_there_is_none() {
    for version in [3, 4] {
        let mut image = sample(version);
        image.put_u32(header::FIRST_DIFAT, FREE);
        assert!(open_strict(&image.bytes).is_ok());
        withstands_use(&image.bytes, &all_but(&[]));
    }
}

#[test]
fn first_difat_sector_past_the_end_is_found() {
    for sector in [5000, 0x0100_0000, 0xFFFF_FFFA, 0xFFFF_FFFC] {
        forged(&breaks(&["difat.chain"]), |image| image.put_u32(header::FIRST_DIFAT, sector));
    }
}

#[test]
fn sector_size_of_the_other_version_is_found() {
    forged_in(4, &breaks(&["header.sector-shift"]), |image| image.put_u16(header::MAJOR, 3));
    forged_in(3, &breaks(&["header.sector-shift"]), |image| image.put_u16(header::MAJOR, 4));
}

#[test]
fn unknown_major_version_goes_by_the_sector_size() {
    for major in [0, 2, 5, 0xFFFF] {
        forged(&breaks(&["header.major-version"]), |image| image.put_u16(header::MAJOR, major));
    }
}

#[test]
fn bytes_after_the_header_of_version_4_are_found() {
    forged_in(4, &breaks(&["header.padding"]), |image| image.put(512, b"something"));
    forged_in(4, &breaks(&["header.padding"]), |image| image.put(4095, b"x"));
}
