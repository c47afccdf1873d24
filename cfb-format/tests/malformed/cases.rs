//! The sample that is forged, and what is asked of each forgery.

use std::collections::BTreeSet;

use cfb_format::{Error, Severity};

use crate::common::abuse::withstands_use;
use crate::common::files::{ends, open, open_strict};
use crate::common::raw::{Build, Image, pattern};

/// Path and length of the sample's streams; the content of the nth is `pattern(nth, len)`.
pub(crate) const STREAMS: [(&str, usize); 9] = [
    ("one", 100),
    ("two", 200),
    ("none", 0),
    ("Store/three", 3000),
    ("Store/four", 64),
    ("Store/Deep/five", 1064),
    ("big", 20_000),
    ("large", 30_000),
    ("last", 120),
];

/// A sound file with storages, small, large and empty streams, a free sector, and an unused directory slot.
pub(crate) fn sample(version: u16) -> Image {
    let build =
        Build::new(version).spare_slots(1).storage("Store").storage("Store/Deep").storage("Bare");
    let streams = STREAMS.iter().zip(0..);
    let mut image = streams
        .fold(build, |build, ((path, len), seed)| build.stream(path, &pattern(seed, *len)))
        .image();
    image.add_sector();
    image
}

/// The content of the streams that are not damaged.
pub(crate) fn all_but(damaged: &[&str]) -> Vec<(String, Vec<u8>)> {
    let whole = STREAMS.iter().zip(0..).filter(|((path, _), _)| !damaged.contains(path));
    whole.map(|((path, len), seed)| ((*path).to_string(), pattern(seed, *len))).collect()
}

/// What a forgery must lead to.
pub(crate) struct Expect {
    /// Findings of which at least one must be there.
    pub(crate) codes: &'static [&'static str],
    /// Whether a strict open must refuse the file.
    pub(crate) strict_refuses: bool,
    /// Streams whose content the forgery makes unreadable or doubtful.
    pub(crate) damaged: &'static [&'static str],
}

/// A departure that costs nothing but breaks a MUST.
pub(crate) const fn breaks(codes: &'static [&'static str]) -> Expect {
    Expect { codes, strict_refuses: true, damaged: &[] }
}

/// A departure that costs nothing and breaks no MUST.
pub(crate) const fn bends(codes: &'static [&'static str]) -> Expect {
    Expect { codes, strict_refuses: false, damaged: &[] }
}

/// A departure that costs streams.
pub(crate) const fn damages(
    codes: &'static [&'static str],
    damaged: &'static [&'static str],
) -> Expect {
    Expect { codes, strict_refuses: true, damaged }
}

/// Forges the sample of both versions and asks everything of it.
#[track_caller]
pub(crate) fn forged(expect: &Expect, forge: impl Fn(&mut Image)) {
    for version in [3, 4] {
        forged_in(version, expect, &forge);
    }
}

/// Forges the sample of one version and asks everything of it.
#[track_caller]
pub(crate) fn forged_in(version: u16, expect: &Expect, forge: impl Fn(&mut Image)) {
    let mut image = sample(version);
    forge(&mut image);
    judge(&image.bytes, expect);
}

/// Opens leniently and strictly, reads, checks, then changes everything.
#[track_caller]
pub(crate) fn judge(bytes: &[u8], expect: &Expect) {
    let (bytes, codes, damaged, refuses) =
        (bytes.to_vec(), expect.codes, expect.damaged, expect.strict_refuses);
    ends("using a forged file", move || {
        let intact = all_but(damaged);
        let file = open(&bytes).unwrap();
        for (path, content) in &intact {
            assert!(file.read_stream(path.as_str()).unwrap() == *content, "{path}");
        }
        for path in damaged {
            read_damaged(&file, path);
        }
        let checked = file.check().unwrap();
        let found: BTreeSet<_> =
            checked.iter().chain(&file.findings()).map(cfb_format::Finding::code).collect();
        assert!(
            found.iter().any(|code| codes.contains(&code.as_str()))
                || (codes.is_empty() && found.is_empty()),
            "{codes:?} are not in {found:?}"
        );
        let severe = found.iter().any(|code| code.severity() > Severity::Note);
        assert_eq!(severe, refuses, "{found:?}");
        match open_strict(&bytes) {
            Ok(_) => assert!(!refuses, "a strict open accepts {found:?}"),
            Err(Error::NotStrict { first, .. }) => {
                assert!(refuses, "a strict open refuses {first}");
                assert!(found.contains(&first.code()), "strict and lenient agree: {first}");
            }
            Err(other) => assert!(refuses, "{other}"),
        }
        drop(file);
        withstands_use(&bytes, &intact);
    });
}

/// A damaged stream, if its entry is there at all, gives bytes or a typed error, and no more bytes than its entry promises.
fn read_damaged(file: &crate::common::files::File, path: &str) {
    let Ok(entry) = file.entry(path) else { return };
    match file.read_stream(path) {
        Ok(content) => {
            assert_eq!(content.len() as u64, entry.len(), "a whole read has the entry's length");
        }
        Err(Error::Corrupt(_)) => {
            let mut part = Vec::new();
            let mut stream = file.open_stream(path).unwrap();
            assert!(std::io::Read::read_to_end(&mut stream, &mut part).is_err());
            assert!((part.len() as u64) < entry.len());
        }
        Err(Error::NotAStream { .. }) => assert!(!entry.is_stream()),
        Err(other) => panic!("{path}: {other:?}"),
    }
}

#[test]
fn sample_is_sound() {
    for version in [3, 4] {
        let image = sample(version);
        crate::common::raw::inspect(&image.bytes).expect_sound();
        assert_eq!(open_strict(&image.bytes).unwrap().check().unwrap(), []);
        withstands_use(&image.bytes, &all_but(&[]));
    }
}
