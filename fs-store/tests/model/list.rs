//! The slow, obvious list: all keys, one after another.

use fs_store::{Item, ListOptions};

use super::ops::{Raw, State};

/// What is asked of a list.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    prefix: Vec<u8>,
    start_after: Option<Vec<u8>>,
    delimiter: Option<u8>,
    limit: Option<usize>,
    reverse: bool,
    keys_only: bool,
}

impl Asked {
    /// Any question, by number.
    pub(crate) fn pick(Raw([_, which, other, size, flags, extra]): Raw) -> Self {
        let prefixes: [&[u8]; 10] =
            [b"", b"a", b"a/", b"a/b/", b"dir", b"\xFF", b"\xFF\xFF", b"n", b"\0", b"kkk"];
        let after = super::ops::key(if other % 2 == 0 { other } else { which });
        let start_after = match flags % 4 {
            0 => Some(after),
            // The common beginning of some keys.
            1 => Some([&b"a/"[..], b"dir1/", b"a/b/", b"/"][usize::from(which) % 4].to_vec()),
            _ => None,
        };
        Self {
            prefix: prefixes[usize::from(which) % prefixes.len()].to_vec(),
            start_after,
            delimiter: [None, Some(b'/'), Some(b'/'), Some(b'b'), Some(0xFF)]
                [usize::from(size) % 5],
            limit: (extra % 3 == 0).then_some(usize::from(extra) / 16),
            reverse: flags & 4 != 0,
            keys_only: flags & 8 != 0,
        }
    }

    /// The same question for the store.
    pub(crate) fn options(&self) -> ListOptions {
        let mut options = ListOptions::new().prefix(self.prefix.clone());
        if let Some(after) = &self.start_after {
            options = options.start_after(after.clone());
        }
        if let Some(delimiter) = self.delimiter {
            options = options.delimiter(delimiter);
        }
        if let Some(limit) = self.limit {
            options = options.limit(limit);
        }
        if self.reverse {
            options = options.reverse();
        }
        if self.keys_only { options.keys_only() } else { options }
    }

    /// The answer: keys, and whether each is that of an object.
    pub(crate) fn answer(&self, state: &State) -> Vec<(Vec<u8>, bool)> {
        let is_behind = |key: &[u8]| match &self.start_after {
            None => true,
            Some(after) if self.reverse => key < &after[..],
            Some(after) => key > &after[..],
        };
        let mut answer: Vec<(Vec<u8>, bool)> = Vec::new();
        let mut keys: Vec<&Vec<u8>> = state.keys().collect();
        if self.reverse {
            keys.reverse();
        }
        for key in keys {
            let Some(rest) = key.strip_prefix(&self.prefix[..]) else { continue };
            if !is_behind(key) {
                continue;
            }
            let at = self.delimiter.and_then(|delimiter| rest.iter().position(|b| *b == delimiter));
            let item = match at {
                Some(at) => (key[..=self.prefix.len() + at].to_vec(), false),
                None => (key.clone(), true),
            };
            // To go on behind a common beginning is to go on behind all it stands for.
            let is_told =
                !item.1 && (answer.contains(&item) || self.start_after.as_ref() == Some(&item.0));
            if !is_told {
                answer.push(item);
            }
        }
        answer.truncate(self.limit.unwrap_or(usize::MAX));
        answer
    }

    /// Whether an item has a stat.
    pub(crate) fn has_stat(&self, is_object: bool) -> bool {
        is_object && !self.keys_only
    }
}

/// Compares what came with what should have come.
pub(crate) fn compare(asked: &Asked, state: &State, items: &[Item], what: &str) {
    let found: Vec<_> = items.iter().map(|item| item.key.to_vec()).collect();
    let answer = asked.answer(state);
    let wanted: Vec<_> = answer.iter().map(|(key, _)| key.clone()).collect();
    let shown = |keys: &[Vec<u8>]| {
        let short = |key: &Vec<u8>| key[..key.len().min(12)].escape_ascii().to_string();
        keys.iter().map(short).collect::<Vec<_>>().join(" ")
    };
    assert!(found == wanted, "{what}: {asked:?} gives {}, not {}", shown(&found), shown(&wanted));
    for (item, (key, is_object)) in items.iter().zip(&answer) {
        assert_eq!(item.stat.is_some(), asked.has_stat(*is_object), "{what}: {asked:?}");
        if let Some(stat) = &item.stat {
            state[key].expect_stat(stat, what);
        }
    }
}
