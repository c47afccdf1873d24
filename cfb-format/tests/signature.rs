//! The header's transaction signature counts the saves of an atomic writer, and nobody else's. [MS-CFB] 2.2

use cfb_format::{CompoundFile, CreateOptions, MemStorage, OpenOptions, RepairOptions, repair};

fn signature(memory: &MemStorage) -> u32 {
    u32::from_le_bytes(memory.to_vec()[0x34..0x38].try_into().expect("four bytes"))
}

fn open(memory: &MemStorage, in_place: bool) -> CompoundFile<MemStorage> {
    let options = OpenOptions::new().write(true).in_place(in_place);
    options.open_storage(memory.clone()).expect("it opens")
}

/// An atomic file with a stream, closed.
fn saved() -> MemStorage {
    let memory = MemStorage::new();
    let file = CreateOptions::new().in_place(false).create_storage(memory.clone()).unwrap();
    file.write_stream("s", &[1; 9000]).unwrap();
    file.flush().unwrap();
    memory
}

#[test]
fn an_atomic_save_counts_one_if_something_has_changed() {
    let memory = saved();
    let file = open(&memory, false);
    let before = signature(&memory);
    file.flush().unwrap();
    file.sync().unwrap();
    assert_eq!(signature(&memory), before, "nothing has changed");
    for nth in 1..=3 {
        file.write_stream("s", &[nth; 9000]).unwrap();
        file.flush().unwrap();
        assert_eq!(signature(&memory), before + u32::from(nth));
    }
    file.write_stream("s", &[9; 9000]).unwrap();
    file.revert().unwrap();
    file.flush().unwrap();
    assert_eq!(signature(&memory), before + 3, "what is reverted was never saved");
    drop(file);
    assert_eq!(signature(&memory), before + 3);
}

#[test]
fn the_largest_signature_is_followed_by_zero() {
    let memory = saved();
    let mut bytes = memory.to_vec();
    bytes[0x34..0x38].fill(0xFF);
    let memory = MemStorage::from(bytes);
    let file = open(&memory, false);
    file.write_stream("s", &[2; 9000]).unwrap();
    file.flush().unwrap();
    assert_eq!(signature(&memory), 0);
}

#[test]
fn a_writer_in_place_leaves_the_signature_of_others() {
    let memory = saved();
    let before = signature(&memory);
    assert_ne!(before, 0);
    let file = open(&memory, true);
    file.write_stream("s", &[2; 9000]).unwrap();
    file.flush().unwrap();
    drop(file);
    assert_eq!(signature(&memory), before);
    let new = MemStorage::new();
    let file = CompoundFile::create_in(new.clone()).unwrap();
    file.write_stream("s", &[2; 9000]).unwrap();
    file.flush().unwrap();
    assert_eq!(signature(&new), 0, "file transactions are not implemented in place");
}

#[test]
fn new_files_from_compaction_and_repair_start_at_zero() {
    let memory = saved();
    assert_ne!(signature(&memory), 0);
    let (compact, repaired) = (MemStorage::new(), MemStorage::new());
    open(&memory, false).compact_into(compact.clone()).unwrap();
    assert_eq!(signature(&compact), 0);
    repair(&memory.to_vec()[..], repaired.clone(), &RepairOptions::new()).unwrap();
    assert_eq!(signature(&repaired), 0);
}
