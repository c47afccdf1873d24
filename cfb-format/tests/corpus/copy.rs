//! A copy made by the library is sound in every way and holds the same.

use cfb_format::{CompoundFile, CreateOptions, Entry, Error, FileTime, MemStorage, OpenOptions};
use cfb_format::{Strictness, Version};

use super::contents::{Content, Item, contents};
use super::golden::Name;

/// Copies `source` into a new file, opens that strictly and compares.
pub(crate) fn copied(
    source: &CompoundFile,
    items: &[Item],
    version: Version,
) -> Result<(), String> {
    let storage = MemStorage::new();
    let text = |error: Error| format!("{version:?}: {error}");
    let copy =
        CreateOptions::new().version(version).create_storage(storage.clone()).map_err(text)?;
    let damaged = source.copy_into("/", &copy, "/").map_err(text)?;
    let told = |path: &str| damaged.iter().find(|damaged| damaged.path == path);
    for Item { entry, content, .. } in items {
        let lost = content.as_ref().filter(|content| content.error.is_some());
        match (lost, told(entry.path())) {
            (None, None) => {}
            (Some(content), Some(damaged)) if content.len == damaged.copied_bytes => {}
            (lost, told) => {
                return Err(format!("{version:?}: damage {lost:?} is told as {told:?}"));
            }
        }
    }
    copy.flush().map_err(text)?;
    drop(copy);

    let again =
        OpenOptions::new().strictness(Strictness::Strict).open_storage(storage).map_err(text)?;
    let findings: Vec<_> = again.check().map_err(text)?.iter().map(ToString::to_string).collect();
    if !findings.is_empty() {
        return Err(format!("{version:?} has findings: {findings:?}"));
    }
    if again.root().clsid() != source.root().clsid() {
        return Err(format!("{version:?}: the root has CLSID {}", again.root().clsid()));
    }
    let mut real = contents(&again);
    if real.len() != items.len() {
        return Err(format!("{version:?}: {} entries, were {}", real.len(), items.len()));
    }
    for from in items {
        let content = from.content.clone().map(|content| Content { error: None, ..content });
        let same = |item: &Item| {
            item.content == content
                && is_name_of_copy(&item.path, &from.path)
                && (content.is_some() || meta(&item.entry) == meta(&from.entry))
        };
        let Some(at) = real.iter().position(same) else {
            let there = real.iter().find(|item| item.path == from.path);
            let there = there.map(|item| (&item.content, meta(&item.entry)));
            let path = &from.path;
            return Err(format!(
                "{version:?}: {path:?} {content:?} {:?} is {there:?}",
                meta(&from.entry)
            ));
        };
        real.swap_remove(at);
    }
    Ok(())
}

fn meta(entry: &Entry) -> (uuid::Uuid, u32, FileTime, FileTime) {
    (entry.clsid(), entry.state_bits(), entry.created(), entry.modified())
}

/// The same path, but for names that [MS-CFB] 2.6.1 forbids: a copy has `_` for each forbidden character, and
/// `~` and a number where that would make two names one.
fn is_name_of_copy(copy: &[Name], path: &[Name]) -> bool {
    copy.len() == path.len()
        && copy.iter().zip(path).all(|(Name(copy), Name(name))| {
            let legal = legal(name);
            let stem = copy.iter().rposition(|&unit| unit == u16::from(b'~'));
            *copy == legal
                || stem.is_some_and(|end| *copy != *name && legal.starts_with(&copy[..end]))
        })
}

fn legal(name: &[u16]) -> Vec<u16> {
    let forbidden = [0, b'/', b'\\', b':', b'!'].map(u16::from);
    let underscore = u16::from(b'_');
    let whole = char::decode_utf16(name.iter().copied()).flat_map(|char| match char {
        Ok(char) => char.encode_utf16(&mut [0; 2]).to_vec(),
        Err(_) => vec![underscore],
    });
    let unit = |unit: u16| if forbidden.contains(&unit) { underscore } else { unit };
    let legal: Vec<u16> = whole.take(31).map(unit).collect();
    if legal.is_empty() { vec![underscore] } else { legal }
}
