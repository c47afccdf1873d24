//! Real files: whatever opens has the same streams afterwards, both ways.

use std::path::PathBuf;

use cfb_format::{CompactOptions, CompoundFile, MemStorage, OpenOptions, Storage};

/// Every entry: path, state bits, and of streams what can be read and whether that is all.
type Entries = Vec<Item>;
type Item = (String, u32, Vec<u8>, bool);

fn entries<S: Storage>(file: &CompoundFile<S>) -> Entries {
    let mut entries: Entries = file
        .walk()
        .map(|entry| {
            let (mut bytes, mut is_whole) = (Vec::new(), true);
            if entry.is_stream() {
                let mut stream = file.open_stream(&entry).unwrap();
                is_whole = std::io::Read::read_to_end(&mut stream, &mut bytes).is_ok();
            }
            let bits = if entry.is_stream() { 0 } else { entry.state_bits() };
            (entry.path().to_owned(), bits, bytes, is_whole)
        })
        .collect();
    entries.sort();
    entries
}

fn corpus() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("CFB_CORPUS").filter(|folder| !folder.is_empty()) else {
        eprintln!("skipped: CFB_CORPUS names no folder of compound files");
        return Vec::new();
    };
    let mut folders = vec![PathBuf::from(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn is_new_path(new: &str, old: &str) -> bool {
    // Of two equal names one gets a number.
    new == old || new.contains('~')
}

fn compacted(bytes: &[u8]) -> Result<(u64, u64), String> {
    let storage = MemStorage::from(bytes.to_vec());
    let Ok(file) = OpenOptions::new().write(true).in_place(false).open_storage(storage) else {
        return Ok((0, 0));
    };
    let before = entries(&file);
    let target = MemStorage::new();
    let compacted = file.compact_into(target.clone()).map_err(|error| error.to_string())?;
    let new = CompoundFile::from_storage(target).map_err(|error| error.to_string())?;
    let there = entries(&new);
    let same = |(new, old): (&Item, &Item)| {
        is_new_path(&new.0, &old.0) && (new.1, &new.2, new.3) == (old.1, &old.2, true)
    };
    if there.len() != before.len() || !there.iter().zip(&before).all(same) {
        return Err("the new file differs".to_owned());
    }
    let damaged = before.iter().filter(|entry| !entry.3).count();
    if compacted.damaged.len() != damaged {
        return Err(format!("{damaged} damaged streams, told {:?}", compacted.damaged));
    }
    // Damage may look otherwise once anything has been saved: links that lead nowhere are
    // cut, and a part of a sector at the end becomes a whole one.
    let plain = MemStorage::from(bytes.to_vec());
    let plain = CompoundFile::from_storage(plain).map_err(|error| error.to_string())?;
    plain.set_state_bits("/", !plain.root().state_bits()).map_err(|error| error.to_string())?;
    plain.set_state_bits("/", !plain.root().state_bits()).map_err(|error| error.to_string())?;
    plain.flush().map_err(|error| error.to_string())?;
    let plain = CompoundFile::from_storage(MemStorage::from(plain.storage().to_vec()));
    let saved = entries(&plain.map_err(|error| error.to_string())?);
    let options = CompactOptions::new().wipe(true);
    let in_place = options.compact(&file).map_err(|error| error.to_string())?;
    let there = entries(&file);
    if there != before && there != saved {
        let differs = there.iter().zip(&before).find(|(a, b)| a != b);
        let differs = differs.map(|(a, b)| (&a.0, a.2.len(), a.3, &b.0, b.2.len(), b.3));
        return Err(format!("the file differs: {differs:?}"));
    }
    let again = CompoundFile::from_storage(MemStorage::from(file.storage().to_vec()));
    let again = entries(&again.map_err(|error| error.to_string())?);
    if again != saved {
        let differs = again.iter().zip(&saved).find(|(a, b)| a != b);
        let differs = differs.map(|(a, b)| (&a.0, a.2.len(), a.3, &b.0, b.2.len(), b.3));
        let (there, were) = (again.len(), saved.len());
        return Err(format!("{there} entries, were {were}, when it is opened again: {differs:?}"));
    }
    Ok((compacted.bytes_after, in_place.bytes_after))
}

#[test]
fn corpus_files_keep_their_streams() {
    let mut wrong = Vec::new();
    let (mut files, mut before, mut new, mut in_place) = (0, 0, 0, 0);
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        match compacted(&bytes) {
            Ok((0, _)) => {}
            Ok((new_bytes, bytes_in_place)) => {
                files += 1;
                before += bytes.len() as u64;
                new += new_bytes;
                in_place += bytes_in_place;
            }
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    println!("{files} files, {before} bytes, {new} when new, {in_place} in place");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
