//! Looking at everything: figures, checksums, and that every sector has one owner.

use alloc_core::{SectorCount, SectorSet};

use crate::data::{ReadError, check_all};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::extent::{Extent, sectors_in};
use crate::layout::{Blob, file_name, reserved_sectors};
use crate::object::Object;
use crate::store::Usage;
use crate::tree::Cursor;

/// What [`Store::verify`](crate::Store::verify) has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong: [`Error::Corrupt`] for bytes of an object,
    /// [`Error::Damaged`] for what the store keeps of itself.
    pub findings: Vec<Error>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

/// Figures of a store.
pub(crate) fn usage(engine: &Engine) -> Result<Usage> {
    let bytes = u64::from(engine.space.sector_bytes);
    let counts = engine.lock_commit().counts;
    let space = engine.space.usage();
    let files = engine.files();
    let mut usage = Usage {
        objects: counts.objects,
        object_bytes: counts.bytes,
        free_bytes: space.free * bytes,
        waiting_bytes: space.waiting * bytes,
        journal_bytes: engine.journal_sectors() * bytes,
        files: files.len() as u64,
        ..Usage::default()
    };
    for file in &*files {
        usage.file_bytes += file.len()?;
        usage.allocated_bytes += file.allocated_bytes()?;
    }
    Ok(usage)
}

/// Who owns which sector.
struct Owners {
    files: Vec<SectorSet>,
    sector_bytes: u32,
    findings: Vec<Error>,
}

impl Owners {
    fn claim(&mut self, extent: Extent, what: &'static str) {
        let offset = u64::from(extent.start) * u64::from(self.sector_bytes);
        let name = file_name(extent.file);
        let set = self.files.get_mut(usize::from(extent.file));
        let Some(set) = set.filter(|set| extent.start + extent.count <= set.total().get()) else {
            self.findings.push(Error::damaged(
                what,
                name,
                offset,
                "it lies behind the end of the file",
            ));
            return;
        };
        if set.first_common(extent.run()).is_some() {
            self.findings.push(Error::damaged(
                what,
                name,
                offset,
                "its sectors belong to something else too",
            ));
        }
        set.insert_run(extent.run());
    }

    fn count(&self) -> u64 {
        self.files.iter().map(|set| u64::from(set.count().get())).sum()
    }
}

/// Reads everything.
pub(crate) fn verify(engine: &Engine, mut progress: impl FnMut(u64, u64)) -> Result<Report> {
    let read_only = engine.journal().is_err();
    if !read_only {
        engine.fold_all()?;
    }
    // No fold comes between, so that the map and the index are of one state.
    let state = engine.lock_fold();
    let view = engine.view();
    let bytes = u64::from(engine.space.sector_bytes);
    let mut owners = Owners {
        files: engine
            .files()
            .iter()
            .zip(0..)
            .map(|(file, number)| {
                let sectors = u32::try_from(file.len()? / bytes).unwrap_or(u32::MAX);
                // What was replaced since the last fold may have been cut off. What
                // has not been is read below.
                let sectors = sectors.max(state.used.used_end(number));
                Ok(SectorSet::new(SectorCount::new(sectors)))
            })
            .collect::<Result<_>>()?,
        sector_bytes: engine.space.sector_bytes,
        findings: Vec::new(),
    };
    let mut report = Report::default();
    for number in 0..u16::try_from(owners.files.len()).expect("few files") {
        let count = reserved_sectors(number, engine.space.sector_bytes);
        owners.claim(Extent { file: number, start: 0, count }, "the head of a block file");
    }
    for extent in state.used.own_extents() {
        owners.claim(extent, "the free map");
    }
    owners.claim(state.superblock.journal.segment, "the journal");
    let walked = engine.nodes.for_each_node(&view.root, &mut |blob: Blob| {
        owners.claim(blob.extent, "a node of the index");
        Ok(())
    });
    if let Err(error) = walked {
        report.findings.push(error);
    }
    let all = view.counts.bytes;
    let walked = for_each_object(engine, &view.root, &mut |key, object| {
        for extent in object.extents() {
            owners.claim(extent, "an object");
        }
        // What a commit has replaced since the last fold may have been overwritten.
        if view.active.contains_key(key) || view.frozen.contains_key(key) {
            return Ok(());
        }
        check(engine, key, object, &mut report, &mut |bytes| progress(bytes, all.max(bytes)))
    });
    let walked = walked.and_then(|()| {
        let older = view.frozen.iter().filter(|(key, _)| !view.active.contains_key(*key));
        for (key, object) in view.active.iter().chain(older) {
            let Some(object) = object else { continue };
            check(engine, key, object, &mut report, &mut |bytes| progress(bytes, all.max(bytes)))?;
        }
        Ok(())
    });
    match walked {
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => report.findings.push(error),
        Ok(()) => {}
    }
    report.findings.append(&mut owners.findings);
    if report.findings.is_empty() && !read_only {
        check_map(&state.used, &owners, &mut report);
        check_space(engine, &state, &owners, &mut report);
    }
    Ok(report)
}

/// Reads one object; `progress` gets the bytes of all objects so far.
fn check(
    engine: &Engine,
    key: &[u8],
    object: &Object,
    report: &mut Report,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut read = report.bytes;
    let checked = check_all(&engine.space, object, &mut |bytes| {
        read += bytes;
        progress(read);
    });
    match checked {
        Ok(()) => {}
        Err(ReadError::Other(error @ Error::Io { .. })) => return Err(error),
        Err(error) => report.findings.push(error.of(key)),
    }
    report.objects += 1;
    report.bytes += object.len;
    Ok(())
}

/// Whether the recorded map says what the index does.
fn check_map(used: &crate::free_map::UsedMap, owners: &Owners, report: &mut Report) {
    for (number, set) in (0..).zip(&owners.files) {
        let reserved = reserved_sectors(number, owners.sector_bytes);
        for run in set.runs() {
            let extent = Extent::new(number, run);
            // The heads of files are in use whatever the map says.
            let start = extent.start.max(reserved);
            if start >= extent.start + extent.count {
                continue;
            }
            let extent = Extent { start, count: extent.start + extent.count - start, ..extent };
            if !used.has(extent) {
                let offset = u64::from(start) * u64::from(owners.sector_bytes);
                let why = "sectors that are in use are free in it";
                report.findings.push(Error::damaged(
                    "the free map",
                    file_name(number),
                    offset,
                    why,
                ));
            }
        }
    }
    let heads: u64 = (1..u16::try_from(owners.files.len()).expect("few files"))
        .map(|number| u64::from(reserved_sectors(number, owners.sector_bytes)))
        .sum();
    if used.count() + heads != owners.count() {
        let why = "sectors that nothing uses are in use in it";
        report.findings.push(Error::damaged("the free map", file_name(0), 0, why));
    }
}

/// Whether the map in memory agrees, if nobody is at work.
fn check_space(
    engine: &Engine,
    state: &crate::fold::FoldState,
    owners: &Owners,
    report: &mut Report,
) {
    let usage = engine.space.usage();
    let is_still = usage.waiting == 0 && usage.unsettled == 0 && engine.is_folded();
    // Segments of the journal that the superblock does not name.
    let current = engine.journal().map(|journal| journal.segment().0).ok();
    let mut segments: Vec<Extent> = state.segments.iter().copied().chain(current).collect();
    segments.retain(|segment| *segment != state.superblock.journal.segment);
    segments.extend(state.spare);
    if is_still && usage.total - usage.free != owners.count() + sectors_in(&segments) {
        let why = "it does not agree with the index";
        report.findings.push(Error::damaged("the free map in memory", file_name(0), 0, why));
    }
}

/// Calls `seen` for every object of the index.
fn for_each_object(
    engine: &Engine,
    root: &crate::tree::Root,
    seen: &mut dyn FnMut(&[u8], &Object) -> Result<()>,
) -> Result<()> {
    let nodes = &engine.nodes;
    let mut cursor = Cursor::at_or_above(nodes, root, &[])?;
    while let Some((key, value)) = cursor.entry(nodes, true)? {
        seen(&key, &nodes.decode(&value)?)?;
        cursor.forward(nodes)?;
    }
    Ok(())
}
