//! A tree described by any bytes is written, opened strictly, and equal; so is its copy in the other version.

use std::collections::BTreeMap;

use cfb_format::{CompoundFile, CreateOptions, MemStorage, OpenOptions, Strictness, Version};

use crate::cfb_model::audit;

/// Writes a tree, reads it back, copies it into a file of the other version, and reads that.
///
/// # Panics
///
/// Where what is read differs from what was written.
pub fn cfb_round_trip(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let (from, to) =
        if first & 1 == 0 { (Version::V3, Version::V4) } else { (Version::V4, Version::V3) };
    let storage = MemStorage::new();
    let file =
        CreateOptions::new().version(from).create_storage(storage.clone()).expect("an empty file");
    let tree = write(&file, rest);
    drop(file);
    let file = check(&storage, &tree);

    let copied = MemStorage::new();
    let copy =
        CreateOptions::new().version(to).create_storage(copied.clone()).expect("an empty file");
    for entry in file.children("/").expect("the root is a storage") {
        file.copy_into(&entry, &copy, entry.path()).expect("memory takes all");
    }
    drop(copy);
    drop(check(&copied, &tree));
}

/// Content by path; `None` for a storage. Keys are lower case, as are the names.
type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// Five bytes an entry: where it goes, its name's two letters, and its length.
fn write(file: &CompoundFile<MemStorage>, data: &[u8]) -> Tree {
    let mut tree = Tree::new();
    let mut storages = vec![String::new()];
    let mut total = 0;
    let (entries, _) = data.as_chunks::<5>();
    for [parent, a, b, low, high] in entries.iter().take(300) {
        let parent = &storages[usize::from(*parent) % storages.len()];
        let letter = |byte: u8| char::from(b'a' + byte % 26);
        let name: String = [letter(*a), letter(*b)].iter().take(1 + usize::from(a % 2)).collect();
        let path = format!("{parent}{name}");
        if tree.contains_key(&path) {
            assert!(file.create_new_stream(path.as_str()).is_err(), "{path} is there already");
            continue;
        }
        if *high >= 200 {
            file.create_storage(path.as_str()).expect("a new name");
            storages.push(format!("{path}/"));
            tree.insert(path, None);
            continue;
        }
        let len =
            (usize::from(*low) | usize::from(*high) << 8) * if high % 16 == 15 { 9 } else { 1 };
        total += len;
        if total > 3_000_000 {
            break;
        }
        let content: Vec<u8> = (0..len).map(|i| (i ^ len) as u8 ^ a).collect();
        file.write_stream(path.as_str(), &content).expect("memory takes all");
        tree.insert(path, Some(content));
    }
    tree
}

/// Opens strictly, audits, and compares.
fn check(storage: &MemStorage, tree: &Tree) -> CompoundFile<MemStorage> {
    audit(&storage.to_vec());
    let options = OpenOptions::new().strictness(Strictness::Strict);
    let file = options.open_storage(storage.clone()).expect("what was written opens, strict");
    assert!(file.check().expect("memory can be read").is_empty(), "nothing to find");
    assert_eq!(file.walk().count(), tree.len() + 1);
    for (path, content) in tree {
        match content {
            None => assert!(file.is_storage(path.as_str()), "{path}"),
            Some(content) => assert!(
                file.read_stream(path.as_str()).expect("a sound stream") == *content,
                "{path}"
            ),
        }
    }
    file
}
