//! Keys for terminals, arguments and file systems, and back.
//!
//! A key is any bytes. One escape serves everywhere:
//!
//! * `%XX` is the byte with that hexadecimal number;
//! * `%_` stands for nothing. An empty name between slashes is `%_`, and a file
//!   that has the name of a folder beside it differs by it;
//! * `%` where it could be taken for either is itself written `%25`, so escaping
//!   is reversible for every key.
//!
//! [`shown`] escapes what a terminal or an argument cannot carry, [`file_name`]
//! what a file system cannot. [`bytes_of`] undoes both.

use std::ffi::OsStr;
use std::fmt::Write as _;

/// A key as it is printed, and as it may be given in an argument.
pub(crate) fn shown(key: &[u8]) -> String {
    if key.is_empty() {
        return "%_".to_owned();
    }
    escaped(key, |c| !prints(c))
}

/// A value of metadata, in the form of a key.
pub(crate) fn shown_value(value: &[u8]) -> String {
    escaped(value, |c| !prints(c))
}

/// Any text with its unprintable characters escaped and nothing else: not reversible.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if prints(c) {
            safe.push(c);
        } else {
            push_escaped(&mut safe, c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    safe
}

/// The bytes that an argument or the name of a file stands for.
pub(crate) fn bytes_of(text: &OsStr) -> Vec<u8> {
    undone(text.as_encoded_bytes())
}

/// The bytes that an escaped text stands for.
pub(crate) fn undone(text: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        match escape_at(rest) {
            Some(Escape::Nothing) => rest = &rest[2..],
            Some(Escape::Byte(byte)) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// What stands for one part of a key, between two slashes, as the name of a file
/// or folder: never empty, no slash, and not `.` or `..`.
pub(crate) fn file_name(part: &[u8]) -> String {
    match part {
        b"" => return "%_".to_owned(),
        b"." => return "%2E".to_owned(),
        b".." => return "%2E.".to_owned(),
        _ => {}
    }
    let name =
        escaped(part, |c| !prints(c) || c == '/' || (cfg!(windows) && r#"\:<>"|?*"#.contains(c)));
    if cfg!(windows) { for_windows(name) } else { name }
}

/// Windows drops dots and spaces at the end, and keeps some names for devices.
fn for_windows(mut name: String) -> String {
    if name.ends_with(['.', ' ']) {
        name.push_str("%_");
    }
    let stem = name.split('.').next().unwrap_or_default().to_uppercase();
    let is_port = |port: &str| {
        stem.strip_prefix(port).is_some_and(|number| number.len() == 1 && number != "0")
    };
    if matches!(&stem[..], "CON" | "PRN" | "AUX" | "NUL") || is_port("COM") || is_port("LPT") {
        name.insert_str(0, "%_");
    }
    name
}

enum Escape {
    Nothing,
    Byte(u8),
}

/// The escape that `bytes` begin with.
fn escape_at(bytes: &[u8]) -> Option<Escape> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match *bytes {
        [b'%', b'_', ..] => Some(Escape::Nothing),
        [b'%', high, low, ..] => Some(Escape::Byte(digit(high)? << 4 | digit(low)?)),
        _ => None,
    }
}

/// Whether a character leaves a terminal alone and can be seen.
fn prints(c: char) -> bool {
    let hidden = matches!(c,
        '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' | '\u{E0000}'..='\u{E007F}');
    !c.is_control() && !hidden
}

fn escaped(bytes: &[u8], must: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut at = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let end = at + c.len_utf8();
            if must(c) || escape_at(&bytes[at..]).is_some() {
                push_escaped(&mut text, &bytes[at..end]);
            } else {
                text.push(c);
            }
            at = end;
        }
        push_escaped(&mut text, chunk.invalid());
        at += chunk.invalid().len();
    }
    text
}

fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "%{byte:02X}").expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn readable_keys_stay_as_they_are() {
        for key in ["photos/1", "Привет", "a b", "100%", "%%", "50%/x", "%g0", "𝄞", "-", "/a:b"]
        {
            assert_eq!(shown(key.as_bytes()), key);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(shown(b"a\x1B[2J"), "a%1B[2J");
        assert_eq!(shown("exe\u{202E}cod.".as_bytes()), "exe%E2%80%AEcod.");
        assert_eq!(shown(b"\xFFa\xC3"), "%FFa%C3");
        assert_eq!(shown(b"%41 %_"), "%2541 %25_");
        assert_eq!(shown(b""), "%_");
    }

    #[test]
    fn no_part_of_a_key_leads_out_of_a_folder() {
        let cases: [(&[u8], &str); 5] =
            [(b"", "%_"), (b".", "%2E"), (b"..", "%2E."), (b"...", "..."), (b"a\0", "a%00")];
        for (part, name) in cases {
            assert_eq!(file_name(part), name);
        }
    }

    proptest! {
        #[test]
        fn escapes_are_undone(key in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"%_4aF./"[..])], 0..12)) {
            let text = shown(&key);
            prop_assert!(text.chars().all(prints));
            prop_assert_eq!(bytes_of(OsStr::new(&text)), &key[..]);
            let names: Vec<String> = key.split(|byte| *byte == b'/').map(file_name).collect();
            for name in &names {
                prop_assert!(!name.is_empty() && name != "." && name != ".." && !name.contains('/'));
                prop_assert_eq!(bytes_of(OsStr::new(&format!("{name}%_"))), bytes_of(OsStr::new(name)));
            }
            let parts: Vec<Vec<u8>> = names.iter().map(|name| bytes_of(OsStr::new(name))).collect();
            prop_assert_eq!(parts.join(&b'/'), key);
        }

        #[test]
        fn names_for_windows_are_undone(part in "[a-z. ]{1,6}|(con|NUL|Com1|lpt0)(\\.x)?") {
            let name = for_windows(part.clone());
            prop_assert!(!name.ends_with(['.', ' ']));
            prop_assert_eq!(bytes_of(OsStr::new(&name)), part.as_bytes());
        }
    }
}
