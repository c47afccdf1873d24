//! Entry names: what may be created, how names compare, and a hash to go with it.
//! [MS-CFB] 2.6.1, 2.6.4
//!
//! A name is a row of UTF-16 code units. Files hold lone surrogates, empty names
//! and names with a slash, so [`Name`] keeps any units there are; only
//! [`Name::new`] insists on the rules.

mod encode;

pub(crate) use encode::encode;

use std::cmp::Ordering;
use std::fmt;
use std::hash::Hasher;

use crate::upcase::{is_caseless, upcase};

/// Units in the name field of an entry, the null included.
const FIELD_UNITS: usize = 32;

/// Most units that a name may have. The 32nd is for the null. [MS-CFB] 2.6.1
pub(crate) const MAX_UNITS: usize = FIELD_UNITS - 1;

/// Why a text cannot be the name of an entry. [MS-CFB] 2.6.1
///
/// # Examples
///
/// ```
/// use cfb_format::NameRule;
///
/// let rule = NameRule::Forbidden { character: ':' };
/// assert_eq!(rule.to_string(), "a name must not contain ':'");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameRule {
    /// There is nothing in it.
    #[error("a name must not be empty")]
    Empty,
    /// It is longer than 31 UTF-16 code units.
    #[error("a name must not be longer than 31 UTF-16 code units, and this has {units}")]
    TooLong {
        /// Length in UTF-16 code units.
        units: usize,
    },
    /// It has one of `/`, `\`, `:`, `!`, or a null.
    #[error("a name must not contain {character:?}")]
    Forbidden {
        /// The first such character.
        character: char,
    },
}

/// Names of up to so many units are kept without an allocation: as many as
/// leave an entry with its name in one cache line.
const INLINE_UNITS: usize = 14;

/// The name of an entry, as units. Equal means equal unit for unit, case and all.
#[derive(Clone)]
pub(crate) struct Name(Units);

/// Where a name's units are.
#[derive(Clone)]
enum Units {
    Inline { len: u8, units: [u16; INLINE_UNITS] },
    Heap(Box<[u16]>),
}

impl Name {
    /// Checks `text` as the name of an entry to be created.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub(crate) fn new(text: &str) -> Result<Self, NameRule> {
        if text.is_empty() {
            return Err(NameRule::Empty);
        }
        // Filled with a unit that any name may have.
        let mut field = [u16::from(b'a'); FIELD_UNITS];
        let units = encode(text, &mut field);
        if units.is_none_or(has_forbidden) {
            let is_forbidden = |c: &char| matches!(c, '/' | '\\' | ':' | '!' | '\0');
            if let Some(character) = text.chars().find(is_forbidden) {
                return Err(NameRule::Forbidden { character });
            }
        }
        units
            .filter(|units| units.len() <= MAX_UNITS)
            .map(Self::from_wild)
            .ok_or_else(|| NameRule::TooLong { units: text.encode_utf16().count() })
    }

    /// A name read from a file, whatever it is.
    ///
    /// # Panics
    ///
    /// If there are more than 32 units; no entry has room for them.
    pub(crate) fn from_wild(wild: &[u16]) -> Self {
        assert!(wild.len() <= FIELD_UNITS, "{} units in a name", wild.len());
        if wild.len() > INLINE_UNITS {
            return Self(Units::Heap(wild.into()));
        }
        let mut units = [0; INLINE_UNITS];
        units[..wild.len()].copy_from_slice(wild);
        Self(Units::Inline { len: u8::try_from(wild.len()).expect("at most 14"), units })
    }

    /// The units, without a null at the end.
    #[inline]
    pub(crate) fn units(&self) -> &[u16] {
        match &self.0 {
            Units::Inline { len, units } => &units[..usize::from(*len)],
            Units::Heap(units) => units,
        }
    }

    /// The name as text, with U+FFFD for each lone surrogate.
    pub(crate) fn to_string_lossy(&self) -> String {
        let mut text = String::with_capacity(self.units().len());
        self.append_to(&mut text);
        text
    }

    /// Appends the name as text, with U+FFFD for each lone surrogate.
    pub(crate) fn append_to(&self, text: &mut String) {
        let units = self.units();
        let mut ascii = [0; FIELD_UNITS];
        let ascii = &mut ascii[..units.len()];
        for (byte, &unit) in ascii.iter_mut().zip(units) {
            // A unit that is no ASCII becomes a byte that is none.
            *byte = u8::try_from(unit).unwrap_or(u8::MAX);
        }
        if ascii.is_ascii()
            && let Ok(ascii) = std::str::from_utf8(ascii)
        {
            text.push_str(ascii);
            return;
        }
        for unit in char::decode_utf16(units.iter().copied()) {
            text.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }
}

/// Whether any unit is one that no name may have. [MS-CFB] 2.6.1
fn has_forbidden(units: &[u16]) -> bool {
    let (fours, rest) = units.as_chunks::<4>();
    let mut last = [u16::from(b'a'); 4];
    last[..rest.len()].copy_from_slice(rest);
    let faults = fours.iter().fold(0, |faults, &four| faults | forbidden(join(four)));
    faults | forbidden(join(last)) != 0
}

/// Not zero if one of four units is a null or another that no name may have.
pub(crate) fn forbidden(four: u64) -> u64 {
    let has_null = |four: u64| four.wrapping_sub(repeat(1)) & !four & repeat(0x8000);
    [0, b'/', b'\\', b':', b'!']
        .iter()
        .fold(0, |faults, &unit| faults | has_null(four ^ repeat(unit.into())))
}

/// Four units as one number, in the order that they have in memory.
fn join(units: [u16; 4]) -> u64 {
    zerocopy::transmute!(units)
}

/// One unit four times.
pub(crate) const fn repeat(unit: u16) -> u64 {
    unit as u64 * 0x0001_0001_0001_0001
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.units() == other.units()
    }
}

impl Eq for Name {}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string_lossy(), f)
    }
}

/// The order of siblings: shorter names first, names of one length by their
/// upper-cased units. [MS-CFB] 2.6.4
pub(crate) fn compare(a: &[u16], b: &[u16]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| {
        // Siblings that are compared tend to begin alike.
        let fours = a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0);
        let same = 4 * fours.take_while(|(x, y)| x == y).count();
        let mut pairs = a[same..].iter().zip(&b[same..]).filter(|(x, y)| x != y);
        pairs
            .find_map(|(&x, &y)| Some(upcase(x).cmp(&upcase(y))).filter(|order| order.is_ne()))
            .unwrap_or(Ordering::Equal)
    })
}

/// How many units two names have in common from the first one on, but for case.
pub(crate) fn common_len(a: &[u16], b: &[u16]) -> usize {
    a.iter().zip(b).take_while(|&(&x, &y)| x == y || upcase(x) == upcase(y)).count()
}

/// Units that a [`sort_key`] has room for.
const KEY_UNITS: usize = 7;

/// A number that orders names which begin with the same `skip` units as
/// [`compare`] does: by length, then by seven more units. Where it is equal, the
/// names have to be compared.
pub(crate) fn sort_key(units: &[u16], skip: usize) -> u128 {
    let behind = &units[skip.min(units.len())..];
    let mut key_units = [0; KEY_UNITS];
    for (unit, &behind) in key_units.iter_mut().zip(behind) {
        *unit = upcase(behind);
    }
    key_units.iter().fold(units.len() as u128, |key, &unit| key << 16 | u128::from(unit))
}

/// True if the two are one name, that is, if [`compare`] calls them equal.
pub(crate) fn eq_folded(a: &[u16], b: &[u16]) -> bool {
    // Most names that are looked for are spelled as they are.
    a == b
        || (a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| x == y || upcase(x) == upcase(y)))
}

/// Hashes a name so that equal names by [`eq_folded`] hash alike: eight
/// upper-cased units at a time.
pub(crate) fn fold_hash<H: Hasher>(units: &[u16], state: &mut H) {
    let (eights, rest) = units.as_chunks::<8>();
    for eight in eights {
        state.write_u128(upcase_eight(eight));
    }
    let mut eight = [0; 8];
    eight[..rest.len()].copy_from_slice(rest);
    state.write_u128(upcase_eight(&eight));
    state.write_u64(units.len() as u64);
}

fn upcase_eight(units: &[u16; 8]) -> u128 {
    let (fours, _) = units.as_chunks::<4>();
    u128::from(upcase_four(fours[0])) | u128::from(upcase_four(fours[1])) << 64
}

/// Four upper-cased units, in the order that they have in memory.
fn upcase_four(units: [u16; 4]) -> u64 {
    let four = join(units);
    if four & repeat(0xFF80) != 0 {
        // Zeros fill up the last four.
        let is_itself = units.iter().all(|&unit| unit == 0 || is_caseless(unit));
        return if is_itself { four } else { join(units.map(upcase)) };
    }
    // ASCII in all lanes: a lane's top bit says whether it is at least 'a', past 'z'.
    let at_least_a = four + repeat(0x8000 - 0x61);
    let past_z = four + repeat(0x8000 - 0x7B);
    four ^ (at_least_a & !past_z & repeat(0x8000)) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn hash(units: &[u16]) -> u64 {
        let mut state = DefaultHasher::new();
        fold_hash(units, &mut state);
        state.finish()
    }

    #[test]
    fn rules_of_creation_are_checked() {
        assert_eq!(Name::new(""), Err(NameRule::Empty));
        for character in ['/', '\\', ':', '!', '\0'] {
            let rule = NameRule::Forbidden { character };
            assert_eq!(Name::new(&format!("a{character}b!")), Err(rule));
        }
        let longest = "x".repeat(31);
        assert_eq!(Name::new(&longest).expect("31 units").to_string_lossy(), longest);
        for units in [32, 33, 1_000] {
            assert_eq!(Name::new(&"x".repeat(units)), Err(NameRule::TooLong { units }));
        }
        // Two units each.
        assert_eq!(Name::new(&"𝄞".repeat(15)).expect("30 units").units().len(), 30);
        assert_eq!(Name::new(&"𝄞".repeat(16)), Err(NameRule::TooLong { units: 32 }));
        assert_eq!(Name::new(&"é".repeat(32)), Err(NameRule::TooLong { units: 32 }));
        assert!(Name::new("\u{5}SummaryInformation").is_ok(), "control characters are usual");
    }

    #[test]
    fn rules_read_as_sentences() {
        assert_eq!(NameRule::Empty.to_string(), "a name must not be empty");
        assert_eq!(
            NameRule::TooLong { units: 40 }.to_string(),
            "a name must not be longer than 31 UTF-16 code units, and this has 40"
        );
        let null = NameRule::Forbidden { character: '\0' };
        assert_eq!(null.to_string(), "a name must not contain '\\0'");
    }

    #[test]
    fn wild_names_are_kept_as_they_are() {
        let wild = [0xD800, 0x2F, 0x61];
        let name = Name::from_wild(&wild);
        assert_eq!(name.units(), wild);
        assert_eq!(name.to_string_lossy(), "\u{FFFD}/a");
        assert_eq!(format!("{name:?}"), "\"\u{FFFD}/a\"");
        assert!(Name::from_wild(&[]).units().is_empty());
        assert_eq!(Name::from_wild(&[7; 32]).units(), [7; 32]);
        assert_ne!(Name::from_wild(&[97]), Name::from_wild(&[65]));
    }

    #[test]
    fn length_comes_before_letters() {
        assert_eq!(compare(&units("z"), &units("aa")), Ordering::Less);
        assert_eq!(compare(&units("aB"), &units("Ab")), Ordering::Equal);
        assert_eq!(compare(&units("ab"), &units("AC")), Ordering::Less);
        // `_` lies between the capitals and the small letters.
        assert_eq!(compare(&units("_"), &units("a")), Ordering::Greater);
        assert_eq!(compare(&units("ж"), &units("Я")), Ordering::Less);
        // By unit, not by character: a surrogate is less than U+FF21.
        assert_eq!(compare(&units("𝄞"), &units("ＡＡ")), Ordering::Less);
        assert_eq!(compare(&[], &[]), Ordering::Equal);
    }

    #[test]
    fn case_is_folded_unit_by_unit() {
        let are_one = |a, b| eq_folded(&units(a), &units(b));
        assert!(are_one("Résumé ΔΟΣΉς", "RÉSUMÉ δοσήΣ"));
        assert_eq!(hash(&units("Été.doc")), hash(&units("éTÉ.DOC")));
        assert!(!are_one("ß", "SS"));
        assert!(!are_one("𐐨", "𐐀"), "surrogates have no case");
        assert!(are_one("ＡＢ", "ａｂ") && are_one("", ""));
        assert!(!are_one("ab", "a") && !are_one("a", "ab"));
    }

    #[test]
    fn hash_depends_on_every_unit_and_on_the_length() {
        let all = [
            hash(&[]),
            hash(&[65]),
            hash(&[65, 66]),
            hash(&[66, 65]),
            hash(&[0x141]),
            hash(&[65, 0]),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn four_units_are_upcased_as_each_alone() {
        for unit in 0..0x200 {
            let four = upcase_four([unit, 0x7A, unit, 0x5A]);
            let units: [u16; 4] = zerocopy::transmute!(four);
            assert_eq!(units, [upcase(unit), 0x5A, upcase(unit), 0x5A], "U+{unit:04X}");
        }
    }

    /// Units that often are equal, or equal but for case.
    fn unit() -> impl Strategy<Value = u16> {
        prop_oneof![
            4 => prop::sample::select(vec![0x61, 0x41, 0x5F, 0x7A, 0xE9, 0xC9, 0x430, 0x410, 0x3C2, 0x3C3, 0x3A3]),
            1 => any::<u16>(),
        ]
    }

    proptest! {
        #[test]
        fn order_equality_and_hash_agree(a in vec(unit(), 0..4), b in vec(unit(), 0..4), c in vec(unit(), 0..4)) {
            let fold = |name: &[u16]| (name.len(), name.iter().map(|&unit| upcase(unit)).collect::<Vec<_>>());
            prop_assert_eq!(compare(&a, &b), fold(&a).cmp(&fold(&b)));
            prop_assert_eq!(eq_folded(&a, &b), compare(&a, &b).is_eq());
            if eq_folded(&a, &b) {
                prop_assert_eq!(hash(&a), hash(&b));
            }
            let common = common_len(&a, &b);
            prop_assert!(common <= a.len().min(b.len()) && eq_folded(&a[..common], &b[..common]));
            for skip in 0..=common {
                let keys = sort_key(&a, skip).cmp(&sort_key(&b, skip));
                prop_assert!(keys.is_eq() || keys == compare(&a, &b));
            }
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }

        #[test]
        fn text_becomes_its_units(text in "\\PC{0,34}") {
            let units = units(&text);
            match encode(&text, &mut [0; 32]) {
                Some(encoded) => {
                    prop_assert_eq!(encoded, &units);
                    prop_assert_eq!(Name::from_wild(encoded).to_string_lossy(), text.clone());
                }
                None => prop_assert!(units.len() > 32),
            }
            let legal = (1..=31).contains(&units.len()) && !text.contains(['/', '\\', ':', '!']);
            prop_assert_eq!(Name::new(&text).is_ok(), legal);
        }
    }
}
