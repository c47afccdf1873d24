//! Heap of open files, counted by the allocator: entries, FAT, handles.

use super::contestant::{Contestant, Ours, Rival, Shape, Version};
use super::measure::{Heap, Options};
use super::names::{Names, Script};
use super::rows::Sizes;
use super::work::{grouped, size};
use crate::report::table::{Bound, Cell, Table};

/// Handles that are open at once.
const HANDLES: usize = 64;

/// Bytes that each of them reads.
const SHORT_READ: usize = 16;

/// Heap bytes that stay, and allocations made.
#[derive(Clone, Copy)]
struct Left {
    bytes: f64,
    allocations: f64,
}

impl Left {
    fn per(self, count: usize) -> Self {
        let count = count as f64;
        Self { bytes: self.bytes / count, allocations: self.allocations / count }
    }
}

/// Runs `work`; what it returns is still there when the heap is looked at.
fn left_by<T>(heap: fn() -> Heap, work: impl FnOnce() -> T) -> (T, Left) {
    let before = heap();
    let kept = work();
    let after = heap();
    let bytes = after.live_bytes as f64 - before.live_bytes as f64;
    let allocations = (after.allocations - before.allocations) as f64;
    (kept, Left { bytes, allocations })
}

/// A file with these streams, written by `cfb-format`.
fn file_with(names: &Names, each: u64, version: Version) -> Vec<u8> {
    let mut file = Ours::<Vec<u8>>::create(Vec::new(), version, Shape::default());
    let data = vec![1; usize::try_from(each.min(1 << 20)).expect("at most 1 MiB")];
    for key in names.keys() {
        let mut handle = file.create_stream(key);
        for _ in 0..each / data.len() as u64 {
            file.append(&mut handle, &data);
        }
    }
    file.close()
}

/// What a file holds when it was opened.
fn opened<C: Contestant<Base = Vec<u8>>>(options: &Options, bytes: &mut Vec<u8>) -> Left {
    let base = std::mem::take(bytes);
    let (file, left) = left_by(options.heap, || C::open(base, Shape::default()));
    *bytes = file.close();
    left
}

/// What a handle holds after a short read.
fn read_from<C>(options: &Options, bytes: &mut Vec<u8>, names: &Names) -> Left
where
    C: Contestant<Base = Vec<u8>>,
{
    let mut file = C::open(std::mem::take(bytes), Shape::default());
    let mut handles = Vec::with_capacity(names.count());
    let ((), left) = left_by(options.heap, || {
        for key in names.keys() {
            let mut handle = file.open_stream(key);
            file.read_next(&mut handle, &mut [0; SHORT_READ]);
            handles.push(handle);
        }
    });
    drop(handles);
    *bytes = file.close();
    left
}

/// Measures and adds a table and its bounds.
pub fn measure(options: &Options, sizes: Sizes, tables: &mut Vec<Table>, bounds: &mut Vec<Bound>) {
    if !options.wants("memory: heap of open files") {
        return;
    }
    options.say("heap of open files");
    let mut table = Table::new(
        "Heap of open files",
        "Bytes of the file are not counted.",
        &["what", "version", "cfb-format", "cfb 0.16"],
    );
    for version in Version::ALL {
        let mut row = |what: &str, ours: f64, rival: f64, bound: f64| {
            let version_name = Cell::Text(format!("{version:?}"));
            table.row(vec![what.into(), version_name, ours.into(), rival.into()]);
            bounds.push(Bound::at_most(format!("heap: {what}, {version:?}"), ours, bound));
        };

        let names = Names::sorted(Script::Ascii, sizes.many);
        let mut bytes = file_with(&names, 100, version);
        let ours = opened::<Ours<_>>(options, &mut bytes).per(sizes.many);
        let rival = opened::<Rival<_>>(options, &mut bytes).per(sizes.many);
        let streams = grouped(sizes.many);
        row(&format!("bytes an entry of {streams}"), ours.bytes, rival.bytes, 100.0);
        row(
            &format!("allocations an entry of {streams}"),
            ours.allocations,
            rival.allocations,
            1.5,
        );

        let one = Names::sorted(Script::Ascii, 1);
        let mut bytes = file_with(&one, sizes.huge, version);
        let sectors = bytes.len() / usize::try_from(version.sector_bytes()).expect("a sector");
        let ours = opened::<Ours<_>>(options, &mut bytes).per(sectors);
        let rival = opened::<Rival<_>>(options, &mut bytes).per(sectors);
        let what = format!("bytes a sector, one stream of {}", size(sizes.huge));
        row(&what, ours.bytes, rival.bytes, 5.0);

        let names = Names::sorted(Script::Ascii, HANDLES);
        let mut bytes = file_with(&names, 1 << 20, version);
        let ours = read_from::<Ours<_>>(options, &mut bytes, &names).per(HANDLES);
        let rival = read_from::<Rival<_>>(options, &mut bytes, &names).per(HANDLES);
        let what = format!("bytes of each of {HANDLES} handles that read {SHORT_READ} B");
        row(&what, ours.bytes, rival.bytes, 8_192.0);
    }
    tables.push(table);
}
