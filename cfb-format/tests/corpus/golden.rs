//! `golden.jsonl`: what at least six independent readers agree on, one file a line.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A name in UTF-16. JSON can spell lone surrogates, which a `String` cannot hold.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) Vec<u16>);

/// The names from below the root to an entry.
pub(crate) type Components = Vec<Name>;

/// What the readers agree on for one file.
#[derive(Deserialize)]
pub(crate) struct Golden {
    pub(crate) file: String,
    /// Path, length, and the first 16 hex digits of the content's SHA-256.
    pub(crate) streams: Vec<(Components, u64, String)>,
    pub(crate) storages: Vec<Components>,
}

/// All lines of `golden.jsonl` in the corpus folder.
pub(crate) fn read(corpus: &Path) -> Vec<Golden> {
    let text = std::fs::read_to_string(corpus.join("golden.jsonl"))
        .expect("golden.jsonl is in the corpus folder");
    text.lines().map(|line| serde_json::from_str(line).expect("a golden line")).collect()
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in char::decode_utf16(self.0.iter().copied()) {
            match char {
                Ok(char) => write!(f, "{}", char.escape_debug())?,
                Err(lone) => write!(f, "\\u{{{:x}}}", lone.unpaired_surrogate())?,
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Name, E> {
        utf16_of(bytes)
            .map(Name)
            .ok_or_else(|| E::custom("a name that is not UTF-8, lone surrogates allowed"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
        Ok(Name(text.encode_utf16().collect()))
    }
}

/// UTF-16 of UTF-8 in which surrogates may stand alone, as three bytes each: so `serde_json` reads a lone
/// `\udXXX` when asked for bytes.
fn utf16_of(bytes: &[u8]) -> Option<Vec<u16>> {
    let mut units = Vec::new();
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (more, bits) = match first {
            0x00..=0x7F => (0, u32::from(*first)),
            0xC0..=0xDF => (1, u32::from(first & 0x1F)),
            0xE0..=0xEF => (2, u32::from(first & 0x0F)),
            0xF0..=0xF7 => (3, u32::from(first & 0x07)),
            _ => return None,
        };
        let point =
            tail.get(..more)?.iter().fold(bits, |point, byte| point << 6 | u32::from(byte & 0x3F));
        match char::from_u32(point) {
            Some(char) => units.extend(char.encode_utf16(&mut [0; 2]).iter()),
            None => units.push(u16::try_from(point).ok()?),
        }
        rest = &tail[more..];
    }
    Some(units)
}

#[test]
fn a_golden_name_may_hold_a_lone_surrogate() {
    let name: Name = serde_json::from_str(r#""a\ud83d\ude00\ud800\u0001é""#).expect("JSON");
    assert_eq!(name.0, [0x61, 0xD83D, 0xDE00, 0xD800, 1, 0xE9]);
}
