//! Real files: whatever a tolerant open reads, repair keeps, at the same path; nothing panics, and every result is strict.
//!
//! `CFB_CORPUS` names the folder of files; without it the test says that it was skipped.

use std::collections::HashMap;
use std::path::Path;

use cfb_format::{CompoundFile, Entry, EntryId};

use crate::judge::{Repaired, repaired};

/// Damaged files that, but for one, none of twelve readers reads whole, and of which a tolerant open reads one stream otherwise: by a link
/// that stands among overwritten ones, or leads to a sector that no chain goes on from. Repair takes such a link as lost,
/// and marks what it guesses instead. Of the one that three readers read whole, the MiniFAT has zeros there, and they lead
/// all streams to the first mini sector, which another one starts with.
const OTHERWISE: [&str; 5] = [
    "0587cbef02884b5a.cfb",
    "07b48fcd8a3b85a8.cfb",
    "56a323fbcf78dfc3.cfb",
    "574a4550e7e63a8e.cfb",
    "60a122ad09b2286e.cfb",
];

/// The name as repair writes it: `_` for what the format forbids.
fn legal(units: &[u16]) -> String {
    let characters = char::decode_utf16(units.iter().copied()).map(|character| match character {
        Ok('\0' | '/' | '\\' | ':' | '!') | Err(_) => '_',
        Ok(character) => character,
    });
    let name: String = characters.collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Complaints about one file.
fn compare(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).expect("a file of the corpus");
    let repaired = match repaired(&bytes) {
        Ok(repaired) => repaired,
        Err(complaint) => return vec![complaint],
    };
    let Ok(file) = CompoundFile::open(path) else { return vec![] };
    let Some(repaired) = repaired else { return vec!["opens and is not repaired".to_owned()] };
    let mut complaints = Vec::new();
    let mut paths: HashMap<EntryId, String> = HashMap::new();
    let mut storages = 0;
    for entry in file.walk() {
        let path = match entry.parent() {
            None => String::new(),
            Some(parent) => format!("{}/{}", paths[&parent], legal(entry.name_utf16())),
        };
        if entry.is_stream() {
            complaints.extend(compare_stream(&file, &entry, &path, &repaired));
        } else {
            storages += u64::from(entry.parent().is_some());
            if entry.parent().is_some() {
                complaints.extend(compare_storage(&entry, &path, &repaired));
            }
        }
        paths.insert(entry.id(), path);
    }
    if repaired.report.storages_count() < storages {
        complaints.push(format!("{} of {storages} storages", repaired.report.storages_count()));
    }
    if repaired.file.root().clsid() != file.root().clsid() {
        complaints.push("the root has another class".to_owned());
    }
    if !complaints.is_empty() {
        complaints.push(repaired.report.to_string());
    }
    complaints
}

fn compare_stream(
    file: &CompoundFile,
    entry: &Entry,
    path: &str,
    repaired: &Repaired,
) -> Option<String> {
    // A stream that does not read is judged by what was built to break it.
    let content = file.read_stream(entry).ok()?;
    let there = repaired.streams.iter().filter(|(stream, _)| stream.path() == path);
    let mut same = there.clone().filter(|(_, found)| *found == content);
    if same.next().is_some() {
        return None;
    }
    // Where two entries have one name, the second gets another.
    let twin = format!("{path}~");
    let twins = repaired.streams.iter().filter(|(stream, _)| stream.path().starts_with(&twin));
    if twins.clone().any(|(_, found)| *found == content) {
        return None;
    }
    let found = there.map(|(stream, _)| stream.to_string()).next();
    Some(format!("{path:?} of {} bytes is {found:?}", content.len()))
}

fn compare_storage(entry: &Entry, path: &str, repaired: &Repaired) -> Option<String> {
    let facts = |entry: &Entry| {
        (entry.clsid(), entry.state_bits(), entry.created().raw(), entry.modified().raw())
    };
    let Ok(found) = repaired.file.entry(path) else {
        return Some(format!("no storage {path:?}"));
    };
    let twins = (2..9).filter_map(|nth| repaired.file.entry(format!("{path}~{nth}").as_str()).ok());
    let same =
        std::iter::once(found.clone()).chain(twins).any(|found| facts(&found) == facts(entry));
    (!same).then(|| format!("{path:?} is {found:?}"))
}

#[test]
fn real_files_keep_what_a_tolerant_open_reads() {
    let Some(corpus) = std::env::var_os("CFB_CORPUS").filter(|folder| !folder.is_empty()) else {
        return eprintln!("skipped: CFB_CORPUS names no folder of compound files");
    };
    let mut complaints = Vec::new();
    let mut count = 0;
    for folder in ["files", "interop"] {
        let files = std::fs::read_dir(Path::new(&corpus).join(folder)).expect("a folder");
        let mut files: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
        files.sort();
        files.retain(|path| !OTHERWISE.iter().any(|file| path.ends_with(file)));
        for path in files {
            count += 1;
            let found = std::panic::catch_unwind(|| compare(&path))
                .unwrap_or_else(|_| vec!["panics".to_owned()]);
            if !found.is_empty() {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                complaints.push(format!("{name}: {}", found.join("\n")));
            }
        }
    }
    assert!(
        complaints.is_empty(),
        "{} complaints in {count} files:\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
}

/// What a real file loses by a damage, and whether the report vouches for something that is wrong.
fn damage(path: &Path, totals: &mut [(u64, u64); 3]) -> Vec<String> {
    let bytes = std::fs::read(path).expect("a file of the corpus");
    let Ok(file) = CompoundFile::open(path) else { return vec![] };
    let is_sound = |finding: &cfb_format::Finding| finding.severity() < cfb_format::Severity::Error;
    let sound = file.check().is_ok_and(|findings| findings.iter().all(is_sound));
    if !sound || bytes.len() < 2048 {
        return vec![];
    }
    let sector = file.version().sector_bytes() as usize;
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let fat = (word(0x4C) + 1) * sector;
    let ranges = [(0, 512), (fat, sector), (0x2C, 8)];
    let mut complaints = Vec::new();
    for (nth, (at, len)) in ranges.into_iter().enumerate() {
        let mut damaged = bytes.clone();
        let Some(range) = damaged.get_mut(at..at + len) else { continue };
        range.fill(0);
        let repaired = match repaired(&damaged) {
            Ok(Some(repaired)) => repaired,
            Ok(None) => {
                complaints.push(format!("nothing is found without bytes {at}.."));
                continue;
            }
            Err(complaint) => {
                complaints.push(complaint);
                continue;
            }
        };
        for entry in file.walk().filter(Entry::is_stream) {
            let Ok(content) = file.read_stream(&entry) else { continue };
            let path = entry.path().replace(['\\', ':', '!', '\0', '\u{FFFD}'], "_");
            let found = repaired.streams.iter().find(|(stream, _)| stream.path() == path);
            totals[nth].1 += content.len() as u64;
            let Some((stream, found)) = found else { continue };
            if *found == content {
                totals[nth].0 += content.len() as u64;
            } else if stream.recovery() == cfb_format::Recovery::Whole {
                complaints.push(format!("without bytes {at}..{}: wrong: {stream}", at + len));
            }
        }
    }
    complaints
}

#[test]
fn damaged_real_files_are_not_vouched_for_where_they_are_wrong() {
    let Some(corpus) = std::env::var_os("CFB_CORPUS").filter(|folder| !folder.is_empty()) else {
        return eprintln!("skipped: CFB_CORPUS names no folder of compound files");
    };
    let files = std::fs::read_dir(Path::new(&corpus).join("files")).expect("a folder");
    let mut files: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    files.sort();
    let mut totals = [(0, 0); 3];
    let mut complaints = Vec::new();
    for path in &files {
        for complaint in damage(path, &mut totals) {
            complaints.push(format!("{}: {complaint}", path.display()));
        }
    }
    let shares = totals.map(|(got, all)| got * 1000 / all.max(1));
    println!("of 1000 bytes without header, first FAT sector, FAT count and directory: {shares:?}");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
