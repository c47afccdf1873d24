//! The files that runs start from, and what they do.

use cfb_format::{CreateOptions, MemStorage, Version};

use super::script::{Step, Tree, perform};

/// A file that is safe on its disk, and what it holds.
pub(crate) struct Base {
    pub(crate) name: &'static str,
    pub(crate) image: Vec<u8>,
    pub(crate) tree: Tree,
}

/// A run to be cut and broken.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
    /// Handles stay open between steps.
    pub(crate) held: bool,
}

pub(crate) fn write(path: &str, seed: u32, len: usize) -> Step {
    Step::Write(path.to_owned(), seed, len)
}

fn write_at(path: &str, at: usize, seed: u32, len: usize) -> Step {
    Step::WriteAt(path.to_owned(), at, seed, len)
}

fn set_len(path: &str, len: usize) -> Step {
    Step::SetLen(path.to_owned(), len)
}

fn storage(path: &str) -> Step {
    Step::Storage(path.to_owned())
}

pub(crate) fn remove(path: &str) -> Step {
    Step::Remove(path.to_owned())
}

fn remove_all(path: &str) -> Step {
    Step::RemoveAll(path.to_owned())
}

fn rename(path: &str, name: &str) -> Step {
    Step::Rename(path.to_owned(), name.to_owned())
}

fn move_to(path: &str, to: &str) -> Step {
    Step::Move(path.to_owned(), to.to_owned())
}

fn copy(path: &str, to: &str) -> Step {
    Step::Copy(path.to_owned(), to.to_owned())
}

impl Base {
    fn new(name: &'static str, version: Version, steps: &[Step]) -> Self {
        let memory = MemStorage::new();
        let file = CreateOptions::new().version(version).create_storage(memory.clone());
        let file = file.expect("memory takes all");
        let mut tree = Tree::new();
        for step in steps {
            if step.is_commit() {
                file.flush().expect("memory takes all");
            } else {
                perform(&file, None, step).expect("memory takes all");
                tree.apply(step);
            }
        }
        drop(file);
        Self { name, image: memory.to_vec(), tree }
    }

    /// Small, large and empty streams, storages, and free space in the middle.
    pub(crate) fn mixed(version: Version) -> Self {
        let name = if version == Version::V3 { "v3" } else { "v4" };
        let steps = [
            write("/a", 1, 700),
            write("/gone large", 2, 30_000),
            write("/b", 3, 3000),
            write("/gone small", 4, 2000),
            write("/c", 5, 0),
            write("/d", 6, 64),
            write("/e", 7, 4095),
            write("/big", 8, 20_000),
            write("/huge", 9, 70_000),
            storage("/dir"),
            write("/dir/one", 10, 100),
            write("/dir/two", 11, 9000),
            storage("/dir/sub"),
            write("/dir/sub/x", 12, 5000),
            write("/dir/sub/y", 13, 10),
            storage("/empty"),
            Step::Class("/dir".to_owned(), 0x1234_5678_9ABC_DEF0),
            Step::StateBits("/dir/sub".to_owned(), 7),
            Step::Commit,
            remove("/gone large"),
            remove("/gone small"),
            Step::Commit,
        ];
        Self::new(name, version, &steps)
    }

    /// The root alone.
    pub(crate) fn empty(version: Version) -> Self {
        let name = if version == Version::V3 { "v3, empty" } else { "v4, empty" };
        Self::new(name, version, &[])
    }

    /// More sectors than the 109 FAT sectors of the header cover.
    pub(crate) fn with_difat() -> Self {
        let steps = [
            write("/a", 1, 700),
            write("/gone", 2, 30_000),
            write("/long", 3, 7_250_000),
            write("/b", 4, 9000),
            Step::Commit,
            remove("/gone"),
            Step::Commit,
        ];
        Self::new("v3, difat", Version::V3, &steps)
    }

    /// Nearly as many sectors as the 109 FAT sectors of the header cover.
    pub(crate) fn before_difat() -> Self {
        let steps = [write("/a", 1, 700), write("/long", 3, 7_050_000), Step::Commit];
        Self::new("v3, nearly difat", Version::V3, &steps)
    }
}

/// One operation each, or a few, on [`Base::mixed`], each with its commit.
pub(crate) fn all() -> Vec<Case> {
    let single: [(&str, Vec<Step>); 31] = [
        ("create a small stream", vec![write("/new", 20, 300)]),
        ("create a large stream", vec![write("/new", 20, 50_000)]),
        ("create an empty stream", vec![write("/new", 20, 0)]),
        ("create a storage", vec![storage("/dir/new")]),
        ("replace a small stream", vec![write("/b", 20, 2500)]),
        ("replace a large stream", vec![write("/big", 20, 30_000)]),
        ("replace a large stream by a small one", vec![write("/big", 20, 100)]),
        ("replace a small stream by a large one", vec![write("/b", 20, 15_000)]),
        ("overwrite within a small stream", vec![write_at("/b", 1000, 20, 700)]),
        ("overwrite one byte", vec![write_at("/b", 1000, 20, 1)]),
        ("overwrite whole sectors", vec![write_at("/huge", 8192, 20, 4096)]),
        ("overwrite parts of sectors", vec![write_at("/huge", 10_001, 20, 3333)]),
        ("append to a small stream", vec![write_at("/a", 700, 20, 500)]),
        ("append to a large stream", vec![write_at("/huge", 70_000, 20, 10_000)]),
        ("write behind the end", vec![write_at("/a", 20_000, 20, 10)]),
        ("grow across the cutoff", vec![write_at("/b", 3000, 20, 3000)]),
        ("grow across the cutoff by length", vec![set_len("/e", 5000)]),
        ("shrink across the cutoff", vec![set_len("/big", 1000)]),
        ("empty a stream", vec![set_len("/huge", 0)]),
        ("lengthen a stream", vec![set_len("/huge", 100_000)]),
        ("shorten a stream", vec![set_len("/huge", 30_001)]),
        ("rename", vec![rename("/a", "a much longer name"), rename("/dir", "s")]),
        ("move", vec![move_to("/dir/sub", "/sub"), move_to("/b", "/dir/b")]),
        ("copy", vec![copy("/dir", "/empty/dir"), copy("/huge", "/dir/huge")]),
        ("remove a small stream", vec![remove("/b")]),
        ("remove a large stream", vec![remove("/big")]),
        ("remove a storage and all in it", vec![remove_all("/dir")]),
        ("remove everything", vec![remove_all("/")]),
        (
            "create 300 streams",
            (0..300).map(|n| write(&format!("/n{n}"), n, 30 + n as usize)).collect(),
        ),
        (
            "set a class and state bits",
            vec![Step::Class("/".to_owned(), 99), Step::StateBits("/empty".to_owned(), 5)],
        ),
        ("change nothing", vec![]),
    ];
    let mut cases = Vec::new();
    for (name, mut steps) in single {
        steps.push(Step::Commit);
        let by_handle = |step: &Step| matches!(step, Step::WriteAt(..) | Step::SetLen(..));
        if steps.iter().any(by_handle) {
            // Once more through the handle that has just written.
            let mut again = steps.clone();
            again.extend([write("/other", 30, 5000), Step::Commit]);
            again.extend(steps.clone());
            cases.push(Case { name, steps: again, held: true });
        }
        cases.push(Case { name, steps, held: false });
    }
    cases.extend(several());
    cases
}

/// More than one commit, so that what one frees the next takes.
fn several() -> Vec<Case> {
    let mut churn = Vec::new();
    for round in 0..4 {
        churn.extend([
            write_at("/huge", 1000 * round, 40 + n(round), 20_000),
            write_at("/a", 100 * round, 50 + n(round), 300),
            write("/dir/two", 60 + n(round), 9000),
            Step::Commit,
        ]);
    }
    let mut replaced = Vec::new();
    for round in 0..5 {
        replaced.extend([write("/big", 40 + n(round), 60_000), Step::Commit]);
    }
    let mixed = vec![
        write("/new", 20, 40_000),
        write_at("/huge", 5000, 21, 5000),
        remove("/b"),
        rename("/dir", "folder"),
        Step::Commit,
        write("/folder/more", 22, 6000),
        remove("/new"),
        write_at("/a", 650, 23, 100),
        Step::Commit,
        set_len("/huge", 3000),
        write("/last", 24, 800),
        Step::Commit,
    ];
    let twice = vec![
        write_at("/huge", 100, 20, 30_000),
        write_at("/huge", 200, 21, 30_000),
        set_len("/huge", 50_000),
        write_at("/huge", 49_000, 22, 30_000),
        write("/new", 23, 9000),
        write("/new", 24, 300),
        remove("/new"),
        Step::Commit,
    ];
    let reverted = vec![
        write_at("/huge", 100, 20, 30_000),
        write_at("/a", 100, 20, 300),
        remove("/b"),
        write("/new", 21, 60_000),
        Step::Revert,
        write_at("/huge", 200, 22, 30_000),
        write("/c", 23, 9000),
        Step::Commit,
        remove_all("/dir"),
        set_len("/huge", 10),
        Step::Revert,
        write_at("/huge", 300, 24, 30_000),
        Step::Commit,
    ];
    let emptied = vec![
        remove_all("/"),
        Step::Commit,
        write("/x", 20, 50_000),
        write("/y", 21, 500),
        Step::Commit,
    ];
    let mut appended = vec![write("/long", 20, 100)];
    for piece in 0..8 {
        appended.push(write_at("/long", 100 + 40_000 * piece, 30 + n(piece), 40_000));
    }
    appended.push(Step::Commit);
    let compacted = [remove("/a"), remove("/dir/two"), write("/b", 20, 90), Step::Compact(true)];
    let compacted_on = [
        write_at("/huge", 100, 20, 30_000),
        write_at("/e", 100, 20, 300),
        remove("/big"),
        Step::Compact(false),
        write_at("/huge", 200, 22, 30_000),
        Step::Commit,
    ];
    let case = |name, steps: &[Step], held| Case { name, steps: steps.to_vec(), held };
    vec![
        case("change again and again", &churn, false),
        case("change again and again", &churn, true),
        case("replace again and again", &replaced, false),
        case("several operations, three commits", &mixed, false),
        case("several operations, three commits", &mixed, true),
        case("change what was just changed", &twice, false),
        case("change what was just changed", &twice, true),
        case("append piece by piece", &appended, true),
        case("revert and go on", &reverted, false),
        case("revert and go on", &reverted, true),
        case("empty the file and fill it", &emptied, false),
        case("compact", &[Step::Compact(false)], false),
        case("compact and wipe", &compacted, false),
        case("compact and go on", &compacted_on, true),
    ]
}

fn n(round: usize) -> u32 {
    u32::try_from(round).expect("a few")
}

/// For files whose FAT needs DIFAT sectors, or is about to.
pub(crate) fn large(base: &Base) -> Vec<Case> {
    let cases: Vec<(&str, Vec<Step>)> = if base.name == "v3, difat" {
        vec![
            ("create a small stream", vec![write("/new", 20, 300)]),
            ("overwrite within a large stream", vec![write_at("/long", 3_000_001, 20, 5000)]),
            ("shorten to where no DIFAT is needed", vec![set_len("/long", 6_000_000)]),
            ("remove a large stream", vec![remove("/long")]),
            ("compact", vec![remove("/a"), Step::Compact(false)]),
        ]
    } else {
        vec![("grow to where a DIFAT is needed", vec![write_at("/long", 7_050_000, 20, 150_000)])]
    };
    let with_commit = |(name, mut steps): (&'static str, Vec<Step>)| {
        steps.push(Step::Commit);
        Case { name, steps, held: false }
    };
    cases.into_iter().map(with_commit).collect()
}
