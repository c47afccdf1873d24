//! Names of streams: 14 UTF-16 units each, so that scripts can be compared.

use super::contestant::Key;
use crate::rng::Rng;

/// The letters of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Digits behind a word.
    Ascii,
    /// Two bytes a letter in UTF-8, upper and lower case.
    Cyrillic,
    /// Three bytes a letter in UTF-8, no case.
    Cjk,
    /// Letters without a capital, or with one far away. The crates agree on them,
    /// which they do not on `ſ`.
    Special,
}

impl Script {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ascii, Self::Cyrillic, Self::Cjk, Self::Special];

    /// In front of the number, and ten letters for its digits that stay
    /// different in upper case.
    const fn letters(self) -> (&'static str, [char; 10]) {
        match self {
            Self::Ascii => ("document", ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']),
            Self::Cyrillic => ("Документ", ['а', 'б', 'в', 'Г', 'д', 'е', 'ж', 'З', 'и', 'я']),
            Self::Cjk => {
                ("文書資料文書資料", ['一', '二', '三', '四', '五', '六', '七', '八', '九', '十'])
            }
            Self::Special => ("Straßeÿé", ['ß', 'ÿ', 'ä', 'Ö', 'ü', 'é', 'ñ', 'ǆ', 'ѝ', 'ő']),
        }
    }

    /// As tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ascii => "ASCII",
            Self::Cyrillic => "Cyrillic",
            Self::Cjk => "CJK",
            Self::Special => "ß and friends",
        }
    }
}

/// Paths of streams in the root storage. They share two allocations, so that
/// making and dropping them leaves the heap as it was.
#[derive(Clone, Debug)]
pub struct Names {
    text: String,
    /// Where in `text` each path ends.
    ends: Vec<usize>,
}

impl Names {
    /// `count` of them, numbered, in the order of numbers.
    ///
    /// ```
    /// use bench_suite::cfb::names::{Names, Script};
    /// assert_eq!(Names::sorted(Script::Ascii, 43).key(42).path, "/document000042");
    /// ```
    pub fn sorted(script: Script, count: usize) -> Self {
        Self::numbered(script, 0..count)
    }

    /// The same in random order.
    pub fn shuffled(script: Script, count: usize) -> Self {
        let mut numbers: Vec<usize> = (0..count).collect();
        Rng::new(3).shuffle(&mut numbers);
        Self::numbered(script, numbers)
    }

    fn numbered(script: Script, numbers: impl IntoIterator<Item = usize>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for number in numbers {
            push_path(&mut text, script, number);
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// How many.
    pub const fn count(&self) -> usize {
        self.ends.len()
    }

    /// One of them.
    pub fn key(&self, index: usize) -> Key<'_> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Key { index, path: &self.text[start..self.ends[index]] }
    }

    /// Each of them.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        (0..self.count()).map(|index| self.key(index))
    }
}

/// Adds a slash and the name with this number.
fn push_path(text: &mut String, script: Script, number: usize) {
    let (word, digits) = script.letters();
    text.push('/');
    text.push_str(word);
    for place in (0..6).rev() {
        text.push(digits[number / 10_usize.pow(place) % 10]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_scripts_are_equally_long() {
        for script in Script::ALL {
            let names = Names::shuffled(script, 1_000);
            assert!(names.keys().all(|key| key.path.encode_utf16().count() == 15), "{script:?}");
        }
    }

    #[test]
    fn names_of_all_scripts_differ_in_a_compound_file() {
        for script in Script::ALL {
            let file = cfb_format::CompoundFile::create_in(cfb_format::MemStorage::new()).unwrap();
            for key in Names::sorted(script, 1_111).keys() {
                file.create_new_stream(key.path).unwrap();
            }
            assert_eq!(file.walk().count(), 1_112, "{script:?}");
        }
    }
}
