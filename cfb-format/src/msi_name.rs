//! The stream names of Windows Installer packages.
//!
//! An installer database packs the 64 characters `0-9 A-Z a-z . _` of its
//! stream names into units that look Chinese: U+3800 to U+47FF hold two
//! characters, U+4800 to U+483F one. U+4840 in front marks a table. So a name
//! of 31 units holds up to 62 characters.

/// First unit that holds two characters, the first in its lower six bits.
const PAIR: u16 = 0x3800;
/// First unit that holds one character.
const SINGLE: u16 = 0x4800;
/// The unit in front of a table's name.
const TABLE: u16 = 0x4840;

const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._";

fn character(code: u16) -> char {
    char::from(ALPHABET[usize::from(code % 64)])
}

fn code(character: char) -> Option<u16> {
    let code = match character {
        '0'..='9' => u32::from(character) - u32::from('0'),
        'A'..='Z' => u32::from(character) - u32::from('A') + 10,
        'a'..='z' => u32::from(character) - u32::from('a') + 36,
        '.' => 62,
        '_' => 63,
        _ => return None,
    };
    u16::try_from(code).ok()
}

/// The readable form of a stream name of a Windows Installer package.
///
/// `!` in front stands for the mark of a table; no name in a file has that
/// character. Gives `None` for a name that is not packed at all, such as
/// `\u{5}SummaryInformation`, and for one that is no UTF-16. Takes O(length).
///
/// # Examples
///
/// ```
/// use cfb_format::decode_msi_name;
///
/// let units: Vec<u16> = "䡀㼿䕷䑬㭪䗤䠤".encode_utf16().collect();
/// assert_eq!(decode_msi_name(&units).as_deref(), Some("!_StringData"));
/// assert_eq!(decode_msi_name(&[0x41]), None);
/// ```
pub fn decode_msi_name(units: &[u16]) -> Option<String> {
    let (table, rest) = match units {
        [TABLE, rest @ ..] => (true, rest),
        _ => (false, units),
    };
    let packed = rest.iter().any(|unit| (PAIR..TABLE).contains(unit));
    if !(table || packed) || rest.first() == Some(&u16::from(b'!')) {
        return None;
    }
    let mut text = String::with_capacity(2 * units.len());
    if table {
        text.push('!');
    }
    for character_or_err in char::decode_utf16(rest.iter().copied()) {
        let plain = character_or_err.ok()?;
        match u16::try_from(u32::from(plain)) {
            Ok(unit @ PAIR..SINGLE) => {
                text.push(character(unit - PAIR));
                text.push(character((unit - PAIR) / 64));
            }
            Ok(unit @ SINGLE..TABLE) => text.push(character(unit - SINGLE)),
            _ => text.push(plain),
        }
    }
    Some(text)
}

/// Packs a name as Windows Installer does, the inverse of [`decode_msi_name`].
///
/// `!` in front becomes the mark of a table. Characters outside of `0-9 A-Z a-z
/// . _` stay as they are. Whether the result is short enough for a name shows
/// when a stream of that name is created. Takes O(length).
///
/// # Examples
///
/// ```
/// use cfb_format::{decode_msi_name, encode_msi_name};
///
/// let packed = encode_msi_name("!_StringData");
/// assert_eq!(packed, "䡀㼿䕷䑬㭪䗤䠤");
/// let units: Vec<u16> = packed.encode_utf16().collect();
/// assert_eq!(decode_msi_name(&units).as_deref(), Some("!_StringData"));
/// ```
pub fn encode_msi_name(name: &str) -> String {
    let unit = |unit: u16| char::from_u32(u32::from(unit)).expect("no surrogate lies there");
    let (table, rest) = name.strip_prefix('!').map_or((false, name), |rest| (true, rest));
    let mut packed = String::with_capacity(3 * name.len());
    if table {
        packed.push(unit(TABLE));
    }
    let mut rest = rest.chars().peekable();
    while let Some(plain) = rest.next() {
        let Some(first) = code(plain) else {
            packed.push(plain);
            continue;
        };
        match rest.peek().copied().and_then(code) {
            Some(second) => {
                rest.next();
                packed.push(unit(PAIR + first + 64 * second));
            }
            None => packed.push(unit(SINGLE + first)),
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Stream names of installer packages in the wild.
    const REAL: &[(&str, &str)] = &[
        ("\u{4840}\u{4559}\u{44F2}\u{4568}\u{4737}", "!Property"),
        ("\u{4840}\u{3F3F}\u{4577}\u{446C}\u{3E6A}\u{44B2}\u{482F}", "!_StringPool"),
        ("\u{4840}\u{3B3F}\u{43F2}\u{4438}\u{45B1}", "!_Columns"),
        (
            "\u{0005}\u{461C}\u{4430}\u{4564}\u{3CBC}\u{4271}\u{4572}\u{4130}\u{4337}\u{4472}",
            "\u{5}SummaryInformation",
        ),
    ];

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn names_from_real_packages_decode() {
        for (packed, name) in REAL {
            assert_eq!(decode_msi_name(&units(packed)).as_deref(), Some(*name));
            assert_eq!(encode_msi_name(name), *packed);
        }
    }

    #[test]
    fn ordinary_names_are_not_packed() {
        for name in ["", "WordDocument", "\u{5}SummaryInformation", "日本語", "!x"] {
            assert_eq!(decode_msi_name(&units(name)), None, "{name:?}");
        }
    }

    #[test]
    fn lone_surrogates_do_not_decode() {
        assert_eq!(decode_msi_name(&[PAIR, 0xD800]), None);
        assert_eq!(decode_msi_name(&[TABLE, 0xDC00]), None);
    }

    #[test]
    fn every_packed_unit_decodes_to_what_encodes_to_it() {
        for unit in PAIR..TABLE {
            let text = decode_msi_name(&[unit]).expect("packed");
            assert_eq!(text.len(), if unit < SINGLE { 2 } else { 1 });
            assert_eq!(units(&encode_msi_name(&text)), [unit]);
        }
    }

    proptest! {
        #[test]
        fn packing_is_undone(name in "!?[0-9A-Za-z._ é€𝄞-]{0,40}") {
            let expected = name.starts_with('!') || name.chars().any(|c| code(c).is_some());
            let decoded = decode_msi_name(&units(&encode_msi_name(&name)));
            prop_assert_eq!(decoded, expected.then_some(name));
        }

        #[test]
        fn any_units_decode_or_not(wild in prop::collection::vec(any::<u16>(), 0..33)) {
            if let Some(text) = decode_msi_name(&wild) {
                prop_assert!(text.chars().count() <= 2 * wild.len());
            }
        }
    }
}
