//! Names and their order. [MS-CFB] 2.6.4

use std::cmp::Ordering;

/// A name as UTF-16 units, without terminator.
pub(crate) fn units(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

/// The order of siblings: shorter names first, names of one length by their upper-cased UTF-16 units.
pub(crate) fn name_order(a: &[u16], b: &[u16]) -> Ordering {
    let upper = |name: &[u16]| name.iter().map(|&unit| upper(unit)).collect::<Vec<_>>();
    a.len().cmp(&b.len()).then_with(|| upper(a).cmp(&upper(b)))
}

/// The simple upper case of one unit; what has none, or only a longer one, stays as it is.
///
/// Good for the letters that the tests use (Latin-1, Greek and Cyrillic basics), where all editions of the tables agree.
fn upper(unit: u16) -> u16 {
    let Some(letter) = char::from_u32(u32::from(unit)) else { return unit };
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => u16::try_from(u32::from(one)).unwrap_or(unit),
        _ => unit,
    }
}
