//! Bytes forged one by one and at random: calls end, in a result or a typed error, and memory stays in proportion.

use crate::cases::sample;
use crate::common::abuse::bears_anything;
use crate::common::files::{ends, open};
use crate::common::raw::{Build, Image, n32, pattern};

/// A small file in which every byte can be forged in turn.
fn small(version: u16) -> Image {
    Build::new(version)
        .storage("S")
        .stream("S/a", &pattern(1, 300))
        .stream("b", &pattern(2, 100))
        .stream("c", &pattern(3, 5000))
        .stream("d", &[])
        .image()
}

fn forge_bytes(version: u16, range: impl Fn(&Image) -> std::ops::Range<usize>) {
    let image = small(version);
    let range = range(&image);
    ends("using files with one forged byte", move || {
        let mut failed = Vec::new();
        for at in range {
            for value in [0, 0xFF, image.bytes[at] ^ 1, image.bytes[at].wrapping_add(3)] {
                if value != image.bytes[at] {
                    let mut bytes = image.bytes.clone();
                    bytes[at] = value;
                    if let Err(panic) = std::panic::catch_unwind(|| bears_anything(&bytes)) {
                        failed.push(format!("byte {at:#x} = {value:#x}: {}", text(&*panic)));
                    }
                }
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    });
}

/// What a panic said.
fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

#[test]
fn every_byte_of_the_header_can_be_wrong() {
    forge_bytes(3, |_| 0..0x60);
    forge_bytes(4, |_| 0..0x60);
}

#[test]
fn every_byte_of_the_directory_can_be_wrong() {
    forge_bytes(3, |image| image.slot_at(0)..image.slot_at(6));
    forge_bytes(4, |image| image.slot_at(0)..image.slot_at(6));
}

#[test]
fn every_byte_of_the_tables_can_be_wrong() {
    for version in [3, 4] {
        forge_bytes(version, |image| {
            image.sector_at(image.fat[0])
                ..image.sector_at(image.fat[0]) + 4 * (image.sectors() as usize + 2)
        });
        forge_bytes(version, |image| {
            image.sector_at(image.mini_fat[0])..image.sector_at(image.mini_fat[0]) + 4 * 10
        });
    }
}

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// A file with many small streams, in two storages.
fn many(version: u16) -> Image {
    let build = Build::new(version).storage("A").storage("B");
    let build = (0..30).fold(build, |build, nth| {
        let above = if nth % 2 == 0 { "A" } else { "B" };
        build.stream(&format!("{above}/{nth}"), &pattern(nth, 150 * nth as usize))
    });
    build.image()
}

/// Puts one to six interesting values over fields of header, tables and directory.
fn mutate(image: &mut Image, random: &mut Random) {
    for _ in 0..=random.below(6) {
        let sector = |number: u32, image: &Image| {
            image.sector_at(number)..image.sector_at(number) + image.sector_bytes
        };
        let part = match random.below(8) {
            0 | 1 => 0..0x60,
            2 | 3 => sector(image.fat[0], image),
            4 => sector(image.mini_fat[0], image),
            _ => sector(image.dir[random.below(image.dir.len())], image),
        };
        let interesting = [
            0,
            1,
            2,
            3,
            5,
            8,
            20,
            63,
            64,
            127,
            128,
            0xFFFF,
            0x7FFF_FFFF,
            0x8000_0000,
            0xFFFF_FFFA,
            0xFFFF_FFFC,
            0xFFFF_FFFD,
            0xFFFF_FFFE,
            u32::MAX,
        ];
        let value = match random.below(3) {
            // Somewhere in the file or just behind it.
            0 => n32(random.below(image.sectors() as usize + 20)),
            _ => interesting[random.below(interesting.len())],
        };
        let at = part.start + random.below(part.len().min(1024) / 4) * 4;
        match random.below(4) {
            0 => image.put_u16(at, u16::try_from(value & 0xFFFF).unwrap()),
            1 => image.bytes[at + random.below(4)] ^= 1 << random.below(8),
            _ => image.put_u32(at, value),
        }
    }
    if random.below(20) == 0 {
        let len = random.below(image.bytes.len());
        image.bytes.truncate(len);
    }
}

/// Random forgeries of each version are tried in batches of this many.
const BATCH: usize = 500;

/// How many batches: for `CFB_FORGERIES` forgeries, or enough for every day.
fn batches() -> u64 {
    let wanted = std::env::var("CFB_FORGERIES").ok().and_then(|count| count.parse().ok());
    wanted.unwrap_or(BATCH).div_ceil(BATCH) as u64
}

#[test]
fn random_forgeries_bear_any_use() {
    for (version, batch) in
        [3, 4].into_iter().flat_map(|version| (0..batches()).map(move |batch| (version, batch)))
    {
        ends("using randomly forged files", move || {
            let mut random = Random(u64::from(version) + 1000 * batch);
            let mut failed = Vec::new();
            for turn in 0..BATCH {
                let mut image = match turn % 3 {
                    0 => small(version),
                    1 => sample(version),
                    _ => many(version),
                };
                mutate(&mut image, &mut random);
                if let Err(panic) = std::panic::catch_unwind(|| bears_anything(&image.bytes)) {
                    failed.push(format!(
                        "version {version}, batch {batch}, turn {turn}: {}",
                        text(&*panic)
                    ));
                }
            }
            assert!(failed.is_empty(), "{}", failed.join("\n"));
        });
    }
}

#[test]
fn most_random_forgeries_open() {
    let mut random = Random(99);
    let mut opened = 0;
    for _ in 0..1000 {
        let mut image = sample(3);
        mutate(&mut image, &mut random);
        opened += usize::from(open(&image.bytes).is_ok());
    }
    // The most lenient other reader opens 82 of 100 such files.
    assert!(opened >= 820, "{opened} of 1000");
}

/// Bytes of address space that the process has ever had, where the system tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
fn sizes_that_the_file_only_claims_take_no_memory() {
    use crate::common::raw::{entry, header};
    let forgeries: [fn(&mut Image); 7] = [
        |image| image.put_u32(header::FAT_COUNT, u32::MAX),
        |image| image.put_u32(header::DIFAT_COUNT, u32::MAX),
        |image| image.put_u32(header::MINI_FAT_COUNT, u32::MAX),
        |image| image.put_u32(header::DIR_COUNT, u32::MAX),
        |image| image.put_size("", 0xFFFF_FFC0),
        |image| image.put_size("big", 0xFFFF_FFFF),
        |image| image.put_u32(image.at("one", entry::LEFT), 0x7FFF_FFFF),
    ];
    for version in [3, 4] {
        for forge in forgeries {
            let mut image = sample(version);
            forge(&mut image);
            bears_anything(&image.bytes);
            if let Some(peak) = peak_bytes() {
                assert!(peak < 1 << 30, "{peak} bytes of memory");
            }
        }
    }
}
