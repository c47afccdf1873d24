//! Names for terminals and file systems, and back.
//!
//! A name in a compound file is up to 31 UTF-16 units of almost anything:
//! control characters, halves of surrogate pairs, a slash if the writer was
//! careless. One escape serves everywhere:
//!
//! * `%uXXXX` is the unit with that hexadecimal number;
//! * `%u` at the end of a name stands for nothing. An empty name is `%u`, and
//!   two names that one file system would take for the same differ by it;
//! * `%` before `u` is itself written `%u0025`, so escaping is reversible for
//!   every name.
//!
//! [`shown`] escapes what a terminal or a path argument cannot carry,
//! [`FileNames::claim`] what some file system cannot. [`units_of`] undoes both.

use std::collections::HashSet;
use std::fmt::Write as _;

/// A name as it is printed, and as it may be given in a path argument.
pub(crate) fn shown(name: &[u16]) -> String {
    if name.is_empty() {
        return "%u".to_owned();
    }
    escaped(name, |at| !prints(at.char) || at.char == '/')
}

/// Any text with its unprintable characters escaped and nothing else: not reversible.
pub(crate) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if prints(c) {
            safe.push(c);
        } else {
            push_escaped(&mut safe, c.encode_utf16(&mut [0; 2]));
        }
    }
    safe
}

/// The units that `text` stands for.
pub(crate) fn units_of(text: &str) -> Vec<u16> {
    let mut rest = text;
    while let Some(shorter) = rest.strip_suffix("%u") {
        rest = shorter;
    }
    let mut units = Vec::with_capacity(rest.len());
    while let Some(percent) = rest.find("%u") {
        units.extend(rest[..percent].encode_utf16());
        let digits = rest.get(percent + 2..percent + 6);
        if let Some(digits) = digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())) {
            units.push(u16::from_str_radix(digits, 16).expect("four hexadecimal digits"));
            rest = &rest[percent + 6..];
        } else {
            units.extend("%u".encode_utf16());
            rest = &rest[percent + 2..];
        }
    }
    units.extend(rest.encode_utf16());
    units
}

/// The file names given out in one folder.
#[derive(Default)]
pub(crate) struct FileNames {
    /// Folded for case, because some file systems do.
    taken: HashSet<String>,
}

impl FileNames {
    /// A file name for `name` that no file system of today refuses or takes for another in this folder.
    pub(crate) fn claim(&mut self, name: &[u16]) -> String {
        let mut file_name = file_name(name);
        while !self.taken.insert(folded(&file_name)) {
            file_name.push_str("%u");
        }
        file_name
    }
}

fn folded(name: &str) -> String {
    name.to_uppercase().to_lowercase()
}

/// `name` without what Windows, macOS or a Unix refuses in a file name.
fn file_name(name: &[u16]) -> String {
    if name.is_empty() {
        return "%u".to_owned();
    }
    let reserved = is_device(name);
    escaped(name, |at| {
        !prints(at.char)
            || matches!(at.char, '/' | '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*')
            || (at.is_last && matches!(at.char, '.' | ' '))
            || (at.is_first && reserved)
    })
}

/// Whether Windows keeps the name for a device, whatever its extension or case.
fn is_device(name: &[u16]) -> bool {
    let text = String::from_utf16_lossy(name).to_uppercase();
    let stem = text.split('.').next().unwrap_or_default().trim_end_matches(' ');
    if matches!(stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let mut number = number.unwrap_or_default().chars();
    // The superscript digits count too.
    let is_digit = |c: char| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³');
    number.next().is_some_and(is_digit) && number.next().is_none()
}

/// Whether a character leaves a terminal alone and can be seen.
fn prints(c: char) -> bool {
    let hidden = matches!(c,
        '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' | '\u{E0000}'..='\u{E007F}');
    !c.is_control() && !hidden
}

/// A character and its place in the name.
struct At {
    char: char,
    is_first: bool,
    is_last: bool,
}

fn escaped(name: &[u16], must: impl Fn(&At) -> bool) -> String {
    let mut text = String::with_capacity(name.len());
    let mut next = 0;
    for decoded in char::decode_utf16(name.iter().copied()) {
        let from = next;
        next += decoded.as_ref().map_or(1, |c| c.len_utf16());
        match decoded {
            Ok('%') if name.get(next) != Some(&u16::from(b'u')) => text.push('%'),
            Ok(char)
                if char != '%'
                    && !must(&At { char, is_first: from == 0, is_last: next == name.len() }) =>
            {
                text.push(char);
            }
            _ => push_escaped(&mut text, &name[from..next]),
        }
    }
    text
}

fn push_escaped(text: &mut String, units: &[u16]) {
    for unit in units {
        write!(text, "%u{unit:04X}").expect("a string takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn readable_names_stay_as_they_are() {
        for name in ["WordDocument", "Привет", "a b", "100%", "%%", "x%v", "𝄞", ".hidden", "-"]
        {
            assert_eq!(shown(&utf16(name)), name);
            assert_eq!(file_name(&utf16(name)), name);
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(shown(&utf16("\u{5}SummaryInformation")), "%u0005SummaryInformation");
        assert_eq!(shown(&utf16("a\u{1b}[2J")), "a%u001B[2J");
        assert_eq!(shown(&utf16("exe\u{202E}cod.")), "exe%u202Ecod.");
        assert_eq!(shown(&[0xD800, 0x61]), "%uD800a");
        assert_eq!(shown(&utf16("a/b")), "a%u002Fb");
    }

    #[test]
    fn what_a_file_system_refuses_is_escaped() {
        let cases = [
            ("", "%u"),
            (".", "%u002E"),
            ("..", ".%u002E"),
            ("a.", "a%u002E"),
            ("a ", "a%u0020"),
            ("con", "%u0063on"),
            ("Nul.txt", "%u004Eul.txt"),
            ("COM1", "%u0043OM1"),
            ("COM¹", "%u0043OM¹"),
            ("COM10", "COM10"),
            ("console", "console"),
            ("a\\b:c*", "a%u005Cb%u003Ac%u002A"),
            ("../../etc/passwd", "..%u002F..%u002Fetc%u002Fpasswd"),
        ];
        for (name, expected) in cases {
            assert_eq!(file_name(&utf16(name)), expected);
        }
    }

    #[test]
    fn names_that_differ_by_case_alone_get_files_of_their_own() {
        let mut names = FileNames::default();
        assert_eq!(names.claim(&utf16("Data")), "Data");
        assert_eq!(names.claim(&utf16("DATA")), "DATA%u");
        assert_eq!(names.claim(&utf16("data")), "data%u%u");
        assert_eq!(units_of("data%u%u"), utf16("data"));
        assert_eq!(names.claim(&[]), "%u");
        assert_eq!(names.claim(&[]), "%u%u");
    }

    #[test]
    fn text_that_is_no_escape_is_taken_as_it_is() {
        assert_eq!(units_of("100%union"), utf16("100%union"));
        assert_eq!(units_of("%u00"), utf16("%u00"));
        assert_eq!(units_of("%u00é1"), utf16("%u00é1"));
        assert_eq!(units_of("%u+123"), utf16("%u+123"));
    }

    #[test]
    fn every_name_of_hostile_units_comes_back() {
        // Every triple over units that matter to the escape, and a few more.
        let alphabet = utf16("%u0Aaé./ C\u{5}");
        let mut alphabet: Vec<u16> = alphabet;
        alphabet.extend([0, 0xD800, 0xDC00, 0xFFFF, 0x202E]);
        let mut names: Vec<Vec<u16>> = vec![vec![]];
        for _ in 0..3 {
            for name in names.clone() {
                names.extend(alphabet.iter().map(|&unit| [&name[..], &[unit]].concat()));
            }
        }
        for name in ["%u", "%u0041", "%u%u", "%u004", "%u00410041", "a%u", "%%u0041"] {
            names.push(utf16(name));
        }
        for name in names {
            assert_eq!(units_of(&shown(&name)), name);
            let file_name = file_name(&name);
            assert_eq!(units_of(&file_name), name, "{file_name}");
            assert!(!file_name.is_empty() && !file_name.contains(['/', '\\', '\0']));
            assert!(!file_name.ends_with(['.', ' ']));
        }
    }
}
