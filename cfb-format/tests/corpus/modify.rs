//! Random modifications in place leave a file no worse than it was, and holding what they say.

use std::collections::BTreeSet;

use cfb_format::{CompoundFile, MemStorage};

use super::contents::{Content, Item, contents, read_up_to};
use super::golden::{Components, Name};

/// Codes of the findings of a whole-file check.
fn codes(file: &CompoundFile<MemStorage>) -> Result<BTreeSet<&'static str>, String> {
    let found = file.check().map_err(|error| format!("check fails: {error}"))?;
    Ok(found.iter().chain(&file.findings()).map(|finding| finding.code().as_str()).collect())
}

/// Adds, overwrites, removes and renames at random, then reopens and compares.
pub(crate) fn modified(
    file: CompoundFile<MemStorage>,
    storage: MemStorage,
    mut random: Random,
) -> Result<(), String> {
    let before = codes(&file)?;
    let mut items = contents(&file);
    // What streams should hold afterwards: their content, or nothing known for the damaged.
    let mut expected: Vec<(Components, Option<Content>)> = Vec::new();
    let mut done = Vec::new();
    for turn in 0..8 {
        let magnitude = random.below(17);
        let bytes: Vec<u8> =
            (0..random.below(1 << magnitude)).map(|i| (i * 7 + turn) as u8).collect();
        let name = format!("added {turn} {}", random.below(100));
        let at = random.below(items.len().max(1));
        let stream = items.get(at).filter(|item| item.content.is_some());
        let outcome = match (random.below(4), stream) {
            (0, Some(item)) => {
                done.push(format!("overwrite {:?} with {} bytes", item.path, bytes.len()));
                let outcome = file.open_stream(&item.entry).and_then(|stream| {
                    stream.set_len(0)?;
                    stream.write_at(&bytes, 0)
                });
                items[at].content = Some(Content::of(&bytes));
                outcome
            }
            (1, Some(item)) => {
                done.push(format!("remove {:?}", item.path));
                let item = items.swap_remove(at);
                file.remove_stream(&item.entry)
            }
            (2, Some(item)) => {
                done.push(format!("rename {:?} to {name}", item.path));
                let outcome = file.rename(&item.entry, &name);
                *items[at].path.last_mut().expect("not the root") =
                    Name(name.encode_utf16().collect());
                outcome
            }
            _ => {
                done.push(format!("add {name} of {} bytes", bytes.len()));
                expected
                    .push((vec![Name(name.encode_utf16().collect())], Some(Content::of(&bytes))));
                file.write_stream(name.as_str(), &bytes)
            }
        };
        outcome.map_err(|error| format!("{}: {error}", done.join(", ")))?;
    }
    file.flush().map_err(|error| format!("{}, flush: {error}", done.join(", ")))?;
    drop(file);

    let told = |what: String| format!("{}: {what}", done.join(", "));
    let again = CompoundFile::from_storage(storage)
        .map_err(|error| told(format!("does not reopen: {error}")))?;
    let new: Vec<_> = codes(&again)?.difference(&before).copied().collect();
    if !new.is_empty() {
        return Err(told(format!("new findings {new:?}, had {before:?}")));
    }
    let mut real = contents(&again);
    expected.extend(items.into_iter().map(|item| (item.path, item.content)));
    if real.len() != expected.len() {
        return Err(told(format!("{} entries, should be {}", real.len(), expected.len())));
    }
    for (path, content) in expected {
        let same = |item: &Item| item.path == path && is_same(&again, item, content.as_ref());
        let Some(at) = real.iter().position(same) else {
            let there = real.iter().find(|item| item.path == path).map(|item| &item.content);
            return Err(told(format!("{path:?} should be {content:?}, is {there:?}")));
        };
        real.swap_remove(at);
    }
    Ok(())
}

/// A sound stream holds the same; a damaged one still has what could be read of it, and is still damaged. (It
/// may have more: when the file grows, a last sector that was cut short becomes whole.)
fn is_same(file: &CompoundFile<MemStorage>, item: &Item, expected: Option<&Content>) -> bool {
    match (&item.content, expected) {
        (Some(real), Some(expected)) if expected.error.is_some() => {
            let intact = read_up_to(file, &item.entry, expected.len);
            real.error.is_some()
                && (intact.len, intact.hash) == (expected.len, expected.hash.clone())
        }
        (real, expected) => real.as_ref() == expected,
    }
}

/// Xorshift: the same file is always modified in the same way.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}
