//! From UTF-8 to the units of a name, which every look-up by path does.

use super::{FIELD_UNITS, repeat};

/// What a text guarantees.
const WHOLE: &str = "a text is whole letters in UTF-8";

/// The units of a text, in the room of a name field; `None` if it is longer
/// than any name can be. No other rule applies: files hold forbidden names.
pub(crate) fn encode<'a>(text: &str, field: &'a mut [u16; FIELD_UNITS]) -> Option<&'a [u16]> {
    let len = if text.is_ascii() {
        let bytes = text.as_bytes();
        for (unit, &byte) in field.get_mut(..bytes.len())?.iter_mut().zip(bytes) {
            *unit = u16::from(byte);
        }
        bytes.len()
    } else {
        encode_wide(text.as_bytes(), field)?
    };
    Some(&field[..len])
}

/// What a byte that is not the first of its letter stands for.
const fn low(byte: u8) -> u16 {
    (byte & 0x3F) as u16
}

/// The unit of three bytes.
const fn three(a: u8, b: u8, c: u8) -> u16 {
    (a as u16) << 12 | low(b) << 6 | low(c)
}

/// The units of a text in UTF-8, four at a time where equally many bytes stand for
/// each. How many they are; `None` if the field is too short for them.
fn encode_wide(mut bytes: &[u8], field: &mut [u16; FIELD_UNITS]) -> Option<usize> {
    let mut len = 0;
    while !bytes.is_empty() {
        if let Some((&pairs, rest)) = bytes.split_first_chunk::<8>()
            && let Some(four) = four_of_pairs(pairs)
        {
            *field.get_mut(len..)?.first_chunk_mut()? = four;
            (bytes, len) = (rest, len + 4);
            continue;
        }
        if let Some((&[a, b, c, d, e, f, g, h, i, j, k, l], rest)) = bytes.split_first_chunk::<12>()
            && [a, d, g, j].iter().all(|&first| first & 0xF0 == 0xE0)
        {
            let four = [three(a, b, c), three(d, e, f), three(g, h, i), three(j, k, l)];
            *field.get_mut(len..)?.first_chunk_mut()? = four;
            (bytes, len) = (rest, len + 4);
            continue;
        }
        let unit = field.get_mut(len)?;
        (bytes, *unit) = match *bytes {
            [a, ref rest @ ..] if a < 0x80 => (rest, u16::from(a)),
            [a, b, ref rest @ ..] if a < 0xE0 => (rest, u16::from(a & 0x1F) << 6 | low(b)),
            [a, b, c, ref rest @ ..] if a < 0xF0 => (rest, three(a, b, c)),
            [a, b, c, d, ref rest @ ..] => {
                let code = u32::from(a & 0x07) << 18 | u32::from(low(b)) << 12;
                let code = code | u32::from(low(c)) << 6 | u32::from(low(d));
                let pair = field.get_mut(len..len + 2)?;
                char::from_u32(code).expect(WHOLE).encode_utf16(pair);
                (bytes, len) = (rest, len + 2);
                continue;
            }
            _ => unreachable!("{WHOLE}"),
        };
        len += 1;
    }
    Some(len)
}

/// Four units of two bytes each in UTF-8.
fn four_of_pairs(pairs: [u8; 8]) -> Option<[u16; 4]> {
    // In the lanes of this number the first byte of a pair is the low one.
    let pairs = u64::from_le_bytes(pairs);
    let are_pairs = pairs & repeat(0xC0E0) == repeat(0x80C0);
    let four = (pairs & repeat(0x001F)) << 6 | pairs >> 8 & repeat(0x003F);
    let lane = |at: u32| u16::try_from(four >> (16 * at) & 0xFFFF).expect("16 bits");
    are_pairs.then(|| [lane(0), lane(1), lane(2), lane(3)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn check(text: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let expected = (units.len() <= FIELD_UNITS).then_some(&*units);
        assert_eq!(encode(text, &mut [7; FIELD_UNITS]), expected, "{text:?}");
    }

    #[test]
    fn every_letter_is_encoded_alone_and_among_others_of_its_length() {
        for letter in (0_u32..0x11_0000).filter_map(char::from_u32) {
            let mut text = letter.to_string();
            check(&text);
            for beside in ["", "x", "б", "文", "𝄞"] {
                text.clear();
                text.push_str(beside);
                text.extend([letter; 5]);
                check(&text);
            }
        }
    }

    proptest! {
        #[test]
        fn texts_have_the_units_that_they_have_elsewhere(
            letters in vec(prop_oneof!["[a-z]", "[а-я]", "[一-十]", "[ß-ÿ]", any::<char>().prop_map(String::from)], 0..40),
        ) {
            check(&letters.concat());
        }
    }
}
