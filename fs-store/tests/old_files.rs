//! FORMAT.md says what the bytes are: what it is enough to read a store is in
//! `old_files/format.rs`, and stores of every past version still open.

#[path = "old_files/format.rs"]
mod format;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use format::{Files, Found, Table, crc32c, index, put_bytes, put_varint};
use fs_store::{Batch, Durability, Error, ListOptions, MemDisk, OpenOptions, PutOptions, Store};

/// Bytes of which most are zero, so that a file of them is short.
fn sparse(seed: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (nth, at) in (0..len).step_by(5000).enumerate() {
        bytes[at] = seed.wrapping_add(nth.to_le_bytes()[0]) | 1;
    }
    bytes
}

/// What a store of the tests has: keys, values, metadata.
type Content = BTreeMap<Vec<u8>, (Vec<u8>, Vec<(String, Vec<u8>)>)>;

/// Fills a store with one of everything, the last part of it in the journal only.
fn fill(store: &Store) -> Content {
    let mut content = Content::new();
    let mut batch = Batch::new();
    for number in 0..400 {
        let (key, value) = (format!("many/{number:03}"), number.to_string().into_bytes());
        batch.put(&key[..], value.clone());
        content.insert(key.into_bytes(), (value, Vec::new()));
    }
    store.commit(batch).expect("committed");
    let mut put = |key: &str, value: Vec<u8>, options: PutOptions, names: &[&str]| {
        let named = names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec()));
        let named: Vec<_> = named.collect();
        let options =
            named.iter().fold(options, |options, (name, value)| options.metadata(name, &value[..]));
        store.put_with(key, &value, &options).expect("put");
        content.insert(key.as_bytes().to_vec(), (value, named));
    };
    let buffered = || PutOptions::new().durability(Durability::Buffered);
    put("empty", Vec::new(), buffered(), &[]);
    put("inline", sparse(1, 512), buffered(), &["a", "type"]);
    put("one chunk", sparse(2, 5000), buffered(), &["type"]);
    put("three chunks", sparse(3, 40_000), buffered(), &[]);
    put("many chunks", sparse(4, 700_001), buffered(), &[]);
    put("ridden", sparse(5, 20_000), PutOptions::new().durability(Durability::Sync), &[]);
    put("gone", sparse(6, 9000), buffered(), &[]);
    put("old name", sparse(7, 9000), buffered(), &[]);
    // Brings all of this into the index.
    store.trim().expect("folded");

    put("riding", sparse(8, 20_000), PutOptions::new().durability(Durability::Sync), &["x"]);
    put("one chunk", sparse(9, 6000), buffered(), &[]);
    let mut batch = Batch::new();
    batch.delete("gone").rename("old name", "new name").put("batch", &b"1"[..]);
    store.commit(batch).expect("committed");
    content.remove(&b"gone"[..]);
    let moved = content.remove(&b"old name"[..]).expect("put above");
    content.insert(b"new name".to_vec(), moved);
    content.insert(b"batch".to_vec(), (b"1".to_vec(), Vec::new()));
    content
}

/// What a store says that it has, through the library.
fn content_of(store: &Store) -> Content {
    let list = store.list(&ListOptions::new()).expect("listed");
    list.map(|item| {
        let item = item.expect("an item");
        let value = store.get(&item.key).expect("read").expect("there").to_vec();
        (item.key.to_vec(), (value, item.stat.expect("asked for").metadata))
    })
    .collect()
}

fn content_of_found(found: &Found) -> Content {
    let one = |object: &format::Object| (object.bytes.clone(), object.metadata.clone());
    found.objects.iter().map(|(key, object)| (key.clone(), one(object))).collect()
}

/// The first difference, rather than a megabyte of bytes.
#[track_caller]
fn assert_same(found: &Content, expected: &Content) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, value) in expected {
        assert!(found[key] == *value, "{} differs", key.escape_ascii());
    }
}

// ---------------------------------------------------------------- by the tables

/// A store as it is before it is closed, and closed.
fn files_of(options: &OpenOptions) -> [(MemDisk, Content); 2] {
    let disk = MemDisk::new();
    let store = options.clone().create(true).open_on(disk.clone()).expect("a store");
    let content = fill(&store);
    let open = MemDisk::from_files(disk.files());
    store.close().expect("closed");
    [(open, content.clone()), (disk, content)]
}

#[test]
fn the_tables_are_enough_to_read_a_store() {
    for sector_bytes in [512, 4096, 65_536] {
        let options = OpenOptions::new().sector_bytes(sector_bytes);
        let [open, closed] = files_of(&options);
        for (disk, content) in [&open, &closed] {
            let found = Files::new(disk.files()).read();
            assert_same(&content_of_found(&found), content);
            assert_eq!(found.levels, 2, "there are enough keys");
            let sum_chunks = found.objects.values().map(|object| object.sum_chunks).max();
            assert_eq!(sum_chunks, Some(43), "one is long enough");
        }
        assert_eq!(Files::new(open.0.files()).read().in_journal, 3);
        let found = Files::new(closed.0.files()).read();
        assert_eq!((found.in_journal, found.in_index), (0, closed.1.len() as u64));

        // What the library says of objects is what is there.
        let store = OpenOptions::new().read_only(true).open_on(closed.0.clone()).expect("opens");
        for (key, object) in &found.objects {
            let stat = store.stat(key).expect("known").expect("there");
            assert_eq!(stat.version, object.version);
            assert_eq!((stat.created, stat.modified), (object.created, object.modified));
            assert_eq!((stat.len, stat.checksum), (object.bytes.len() as u64, object.crc));
        }
        let new = &found.objects[&b"one chunk"[..]];
        assert!(new.created < new.modified, "the second object of its key");
    }
}

#[test]
fn the_tables_are_enough_to_read_block_files() {
    let disk = MemDisk::new();
    let options = OpenOptions::new().create(true).block_file_bytes(4 << 20);
    let store = options.open_on(disk.clone()).expect("a store");
    let (mut content, mut stats) = (Content::new(), Vec::new());
    let now = || u64::try_from(UNIX_EPOCH.elapsed().expect("later").as_nanos()).expect("not yet");
    let began = now();
    for number in 0..12 {
        let value = sparse(number, 1_000_000);
        stats.push(store.put([b'k', number], &value).expect("put"));
        content.insert(vec![b'k', number], (value, Vec::new()));
    }
    let ended = now();
    store.close().expect("closed");
    let found = Files::new(disk.files()).read();
    assert!(found.block_files >= 3, "{} files", found.block_files);
    assert_same(&content_of_found(&found), &content);
    // What the library said before any of it was read back.
    for (object, stat) in found.objects.values().zip(stats) {
        assert_eq!((object.version, object.crc), (stat.version, stat.checksum));
        assert_eq!((object.created, object.modified), (stat.created, stat.modified));
        assert!((began..=ended).contains(&object.modified), "{object:?}");
    }
}

#[test]
fn a_journal_written_by_the_tables_is_read() {
    let [_, (disk, mut content)] = files_of(&OpenOptions::new());
    let mut files = disk.files();
    let (superblock, frame) = (Table::of("Superblock", 0), Table::of("Journal", 0));
    let (_, bytes) = Files::new(files.clone()).superblock();
    let get = |field| superblock.get(&bytes, field);
    let blocks = &mut files.iter_mut().find(|(name, _)| name == "blocks-00000").unwrap().1;

    // A second segment behind the end of the file.
    let second = blocks.len().next_multiple_of(4096);
    blocks.resize(second + 16384, 0);
    let made = |epoch: u64, seq: u64, payload: &[u8]| {
        let mut bytes = vec![0; 48];
        bytes[frame.range("magic")].copy_from_slice(b"FSJ1");
        for (field, number) in
            [("len", payload.len() as u64), ("epoch", epoch), ("session", 7), ("seq", seq)]
        {
            frame.put(&mut bytes, field, number);
        }
        frame.put(&mut bytes, "durable", get("journal_seq") - 1);
        bytes.extend_from_slice(payload);
        let crc = crc32c(&bytes);
        frame.put(&mut bytes, "crc", crc.into());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let (first, epoch, seq) =
        (index(get("journal_start") * 4096), get("journal_epoch"), get("journal_seq"));

    let mut put = vec![1];
    put_bytes(&mut put, b"by hand");
    put.push(2); // metadata, and the bytes here
    put_varint(&mut put, seq);
    put.extend_from_slice(&1_000_u64.to_le_bytes());
    put_varint(&mut put, 400); // created at 600
    put_varint(&mut put, 300);
    put.extend_from_slice(&crc32c(&[9; 300]).to_le_bytes());
    let mut metadata = Vec::new();
    put_varint(&mut metadata, 1);
    put_bytes(&mut metadata, b"name");
    put_bytes(&mut metadata, b"value");
    put_bytes(&mut put, &metadata);
    put.extend_from_slice(&[9; 300]);
    let put = made(epoch, seq, &put);

    let mut next = vec![3];
    for number in [0, second as u64 / 4096, 4, epoch + 5] {
        put_varint(&mut next, number);
    }
    let next = made(epoch, seq + 1, &next);

    let mut delete = vec![2];
    put_bytes(&mut delete, b"many/000");
    let delete = made(epoch + 5, seq + 2, &delete);

    blocks[first..first + put.len()].copy_from_slice(&put);
    // As if a flush had come between.
    blocks[first + 4096..first + 4096 + next.len()].copy_from_slice(&next);
    blocks[second..second + delete.len()].copy_from_slice(&delete);

    let disk = MemDisk::from_files(files);
    let store = OpenOptions::new().open_on(disk).expect("opens");
    content.remove(&b"many/000"[..]);
    content.insert(b"by hand".to_vec(), (vec![9; 300], vec![("name".into(), b"value".to_vec())]));
    assert_same(&content_of(&store), &content);
    let stat = store.stat("by hand").expect("known").expect("there");
    assert_eq!((stat.version, stat.created, stat.modified), (seq, 600, 1_000));
    let report = store.verify(|_, _| {}).expect("verified");
    assert!(report.is_sound(), "{:?}", report.findings);
}

// ---------------------------------------------------------------- versions

fn with_version(mut files: Vec<(String, Vec<u8>)>, version: u64) -> MemDisk {
    let table = Table::of("Superblock", 0);
    let blocks = &mut files.iter_mut().find(|(name, _)| name == "blocks-00000").unwrap().1;
    for place in (0..4).map(|place| place * 4096) {
        if table.bytes(&blocks[place..], "magic") == b"FSSTORE\n" {
            table.put(&mut blocks[place..], "version", version);
            let crc = crc32c(&blocks[place..place + 128]);
            table.put(&mut blocks[place..], "crc", crc.into());
        }
    }
    MemDisk::from_files(files)
}

#[test]
fn a_later_version_is_refused_by_name_and_left_alone() {
    let [_, (disk, content)] = files_of(&OpenOptions::new());
    let same = with_version(disk.files(), 1);
    assert_same(&content_of(&OpenOptions::new().open_on(same).expect("opens")), &content);
    for options in [
        OpenOptions::new(),
        OpenOptions::new().read_only(true),
        OpenOptions::new().create(true),
        OpenOptions::new().create_new(true),
    ] {
        let later = with_version(disk.files(), 2);
        let before = later.files();
        let refused = options.open_on(later.clone()).expect_err("it is of a later version");
        assert!(matches!(refused, Error::Version { found: 2, known: 1 }), "{refused:?}");
        let text = refused.to_string();
        assert_eq!(text, "the store has format version 2; this library knows up to 1");
        assert!(later.files() == before, "nothing was written");
    }
}

/// Where stores of past versions are kept: a line for each file with its name and
/// length, then its bytes in pieces, those that are not zero, behind their offset.
fn kept(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/files/version-{version}.txt"))
}

/// Version and times of one of its objects.
const OLD: (u64, u64, u64) = (12, 1_796_097_308_921_072_820, 1_796_097_308_923_464_895);

const PIECE: usize = 64;

fn to_text(files: &[(String, Vec<u8>)]) -> String {
    let mut text = String::new();
    for (name, bytes) in files {
        writeln!(text, "file {name} {}", bytes.len()).expect("a string takes everything");
        for (nth, piece) in bytes.chunks(PIECE).enumerate() {
            let Some(last) = piece.iter().rposition(|byte| *byte != 0) else { continue };
            write!(text, "{:x} ", nth * PIECE).expect("a string takes everything");
            for byte in &piece[..=last] {
                write!(text, "{byte:02x}").expect("a string takes everything");
            }
            text.push('\n');
        }
    }
    text
}

fn from_text(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let first = words.next().expect("a word");
        if first == "file" {
            let name = words.next().expect("a name").to_owned();
            let len = words.next().expect("a length").parse().expect("a number");
            files.push((name, vec![0; len]));
            continue;
        }
        let at = usize::from_str_radix(first, 16).expect("an offset");
        let digits = words.next().expect("bytes");
        let bytes = &mut files.last_mut().expect("a file").1;
        for nth in 0..digits.len() / 2 {
            let byte = u8::from_str_radix(&digits[2 * nth..2 * nth + 2], 16).expect("a byte");
            bytes[at + nth] = byte;
        }
    }
    files
}

/// Makes `tests/files/version-1.txt`. Not to be done again: the point of the file
/// is that it is old.
#[test]
#[ignore = "makes the file that the other tests read"]
fn make_the_store_of_version_1() {
    let [(disk, _), _] = files_of(&OpenOptions::new().journal_bytes(64 << 10));
    let text = to_text(&disk.files());
    assert!(from_text(&text) == disk.files());
    fs::create_dir_all(kept(1).parent().expect("a folder")).expect("made");
    fs::write(kept(1), text).expect("written");
}

#[test]
fn a_store_of_version_1_opens_and_can_be_changed() {
    let text = fs::read_to_string(kept(1)).expect("the file is there");
    let files = from_text(&text);
    // What was put in then; the disk here is thrown away.
    let content = fill(&OpenOptions::new().create(true).open_on(MemDisk::new()).expect("a store"));
    assert_same(&content_of_found(&Files::new(files.clone()).read()), &content);

    let disk = MemDisk::from_files(files.clone());
    let store = OpenOptions::new().read_only(true).open_on(disk.clone()).expect("opens");
    assert_same(&content_of(&store), &content);
    let stat = store.stat("one chunk").expect("known").expect("there");
    assert_eq!((stat.version, stat.created, stat.modified), OLD);
    drop(store);
    assert!(disk.files() == files, "a reader writes nothing");

    let store = OpenOptions::new().open_on(disk.clone()).expect("opens");
    assert_same(&content_of(&store), &content);
    let report = store.verify(|_, _| {}).expect("verified");
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.objects, content.len() as u64);
    store.put("new", b"today").expect("put");
    store.close().expect("closed");
    let store = OpenOptions::new().open_on(disk).expect("opens");
    assert_eq!(store.get("new").expect("read").as_deref(), Some(&b"today"[..]));
    assert_eq!(content_of(&store).len(), content.len() + 1);
}
