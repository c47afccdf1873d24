//! The new file: what was found, written through the crate's own calls.

use std::collections::HashMap;

use super::body::Body;
use super::plan::{Node, Plan};
use super::report::{Recovery, RepairReport, RepairedStream};
use super::source::Source;
use super::{RepairOptions, ranges};
use crate::compound_file::CompoundFile;
use crate::error::Error;
use crate::file_time::FileTime;
use crate::finding::Finding;
use crate::layout::RawDirEntry;
use crate::options::CreateOptions;
use crate::storage::Storage;

use uuid::Uuid;

/// Bytes go from file to file in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// Bytes of paths that a small file may make: each entry of a deep tree has
/// the names of all above it in its path.
const PATH_BYTES: u64 = 128 << 20;

/// Where an entry of the damaged file is in the new one.
struct Placed {
    path: String,
}

/// A new file being filled.
struct Output<'a, S: ?Sized, T: Storage> {
    source: &'a Source<'a, S>,
    file: CompoundFile<T>,
    options: &'a RepairOptions,
    /// Storage for orphans, once there is one.
    orphanage: Option<String>,
    /// Bytes that may still be written beyond those that are in the file once:
    /// zeros for missing ranges, and sectors that two streams have.
    surplus_left: u64,
    path_bytes_left: u64,
    renamed_count: u64,
    /// The numbers that were added to names, by the path without one.
    numbers: HashMap<String, u32>,
    storages_count: u64,
    findings: Vec<Finding>,
}

/// Writes what a plan has into `target`.
pub(super) fn write<S: Storage + ?Sized, T: Storage>(
    source: &Source<'_, S>,
    plan: Plan,
    target: T,
    options: &RepairOptions,
) -> Result<RepairReport, Error> {
    let version = options.version.unwrap_or(plan.geometry.version);
    // Nothing is there that could be lost.
    let file = CreateOptions::new().version(version).in_place(true).create_storage(target)?;
    let mut output = Output {
        source,
        file,
        options,
        orphanage: None,
        surplus_left: source.len.saturating_add(1 << 20),
        path_bytes_left: source.len.saturating_mul(16).saturating_add(PATH_BYTES),
        renamed_count: 0,
        numbers: HashMap::new(),
        storages_count: 0,
        findings: plan.findings,
    };
    let mut placed: Vec<Placed> = Vec::with_capacity(plan.nodes.len());
    let mut streams = Vec::new();
    for node in plan.nodes {
        let path = match node.parent {
            None => String::new(),
            Some(parent) => {
                let parent = if node.orphan && parent == 0 {
                    output.orphanage()?
                } else {
                    placed[parent].path.clone()
                };
                output.free_path(parent, &node.name)
            }
        };
        if node.is_stream {
            streams.push(output.add_stream(path, node)?);
            placed.push(Placed { path: String::new() });
        } else {
            output.add_storage(&path, node.raw.as_ref(), node.parent.is_none())?;
            placed.push(Placed { path });
        }
    }
    output.file.flush()?;
    Ok(RepairReport {
        version,
        sector_bytes: plan.geometry.sector_bytes(),
        findings: output.findings,
        streams,
        storages_count: output.storages_count,
        renamed_count: output.renamed_count,
    })
}

impl<S: Storage + ?Sized, T: Storage> Output<'_, S, T> {
    /// The storage for what no storage is known to hold.
    fn orphanage(&mut self) -> Result<String, Error> {
        if let Some(path) = &self.orphanage {
            return Ok(path.clone());
        }
        let name: Vec<u16> = self.options.orphanage.encode_utf16().collect();
        let renamed_count = self.renamed_count;
        let path = self.free_path(String::new(), &name);
        self.renamed_count = renamed_count;
        self.file.create_storage(&path)?;
        self.storages_count += 1;
        self.orphanage = Some(path.clone());
        Ok(path)
    }

    /// A path below `parent` for an entry called `name`: with the name itself
    /// where it may be created and is not taken, else with one like it.
    fn free_path(&mut self, mut parent: String, name: &[u16]) -> String {
        if self.path_bytes_left < parent.len() as u64 {
            // Too deep in all: from here on the tree goes flat.
            parent = match &self.orphanage {
                Some(path) => path.clone(),
                None => String::new(),
            };
        }
        self.path_bytes_left = self.path_bytes_left.saturating_sub(parent.len() as u64);
        let stem = legal(name);
        let mut path = format!("{parent}/{stem}");
        if !self.file.exists(path.as_str()) {
            self.renamed_count += u64::from(!stem.encode_utf16().eq(name.iter().copied()));
            return path;
        }
        // Where the last one of this name stopped, the next one goes on.
        let key = path.to_uppercase();
        let mut number = self.numbers.get(&key).copied().unwrap_or(1);
        while self.file.exists(path.as_str()) {
            number += 1;
            let suffix = format!("~{number}");
            path = format!("{parent}/{}{suffix}", cut(&stem, 31 - suffix.len()));
        }
        self.numbers.insert(key, number);
        self.renamed_count += 1;
        path
    }

    fn add_storage(
        &mut self,
        path: &str,
        raw: Option<&RawDirEntry>,
        is_root: bool,
    ) -> Result<(), Error> {
        let at = if is_root { "/" } else { path };
        if !is_root {
            self.file.create_storage(path)?;
            self.storages_count += 1;
        }
        let Some(raw) = raw else { return Ok(()) };
        let clsid = Uuid::from_bytes_le(raw.clsid);
        if !clsid.is_nil() {
            self.file.set_clsid(at, clsid)?;
        }
        if raw.state_bits.get() != 0 {
            self.file.set_state_bits(at, raw.state_bits.get())?;
        }
        // The format allows the root no creation time.
        if raw.created.get() != 0 && !is_root {
            self.file.set_created(at, FileTime::from_raw(raw.created.get()))?;
        }
        if raw.modified.get() != 0 {
            self.file.set_modified(at, FileTime::from_raw(raw.modified.get()))?;
        }
        Ok(())
    }

    fn add_stream(&mut self, path: String, node: Node) -> Result<RepairedStream, Error> {
        let Node { mut body, promised, is_unsure, orphan, raw, .. } = node;
        // What is cut off is missing too.
        let mut missing = body.missing.clone();
        let lost = ranges::total(&missing);
        let there = body.there();
        let too_long = body.len > self.max_len();
        if lost > self.surplus_left || too_long {
            body.cut_lost_end();
        }
        let is_lost = promised > 0 && there == 0 || !self.fits(&body);
        let recovery = if is_lost {
            Recovery::Lost
        } else if there < promised {
            Recovery::Partial
        } else if is_unsure || !body.guessed.is_empty() || !body.doubtful.is_empty() {
            Recovery::Guessed
        } else {
            Recovery::Whole
        };
        if is_lost {
            body = Body::default();
            missing.clear();
            ranges::add(&mut missing, 0..promised);
        } else {
            self.surplus_left =
                self.surplus_left.saturating_sub(body.len - there + ranges::total(&body.doubtful));
            self.write_body(&path, &body)?;
        }
        Ok(RepairedStream {
            path,
            recovery,
            len_bytes: body.len,
            promised_bytes: promised,
            missing,
            guessed: body.guessed,
            doubtful: body.doubtful,
            is_orphan: orphan,
            is_nameless: raw.is_none(),
        })
    }

    fn max_len(&self) -> u64 {
        self.file.version().max_stream_bytes()
    }

    /// Whether a stream can be written in proportion to the damaged file.
    fn fits(&self, body: &Body) -> bool {
        let surplus = body.len - body.there() + ranges::total(&body.doubtful);
        body.len <= self.max_len() && surplus <= self.surplus_left
    }

    fn write_body(&self, path: &str, body: &Body) -> Result<(), Error> {
        let stream = self.file.create_new_stream(path)?;
        stream.reserve(body.len)?;
        let piece_bytes = body.len.min(PIECE_BYTES);
        let mut piece = vec![0; usize::try_from(piece_bytes).expect("at most 1 MiB")];
        // Small extents are gathered to large writes.
        let (mut filled, mut written) = (0, 0);
        for extent in &body.extents {
            let mut done = 0;
            while done < extent.len {
                let room = (piece.len() - filled) as u64;
                let count = usize::try_from(room.min(extent.len - done)).expect("at most 1 MiB");
                let part = &mut piece[filled..filled + count];
                match extent.at {
                    Some(at) => self.source.read(part, at + done, "reading a stream")?,
                    None => part.fill(0),
                }
                filled += count;
                done += count as u64;
                if filled == piece.len() {
                    stream.write_at(&piece, written)?;
                    written += filled as u64;
                    filled = 0;
                }
            }
        }
        stream.write_at(&piece[..filled], written)
    }
}

/// The name with `_` for what the format forbids.
fn legal(name: &[u16]) -> String {
    let characters = char::decode_utf16(name.iter().copied()).map(|character| match character {
        Ok('\0' | '/' | '\\' | ':' | '!') | Err(_) => '_',
        Ok(character) => character,
    });
    let name: String = characters.collect();
    if name.is_empty() { "_".to_owned() } else { cut(&name, 31).to_owned() }
}

/// The longest start of a name that has at most so many UTF-16 units.
fn cut(name: &str, max_units: usize) -> &str {
    let mut units = 0;
    for (at, character) in name.char_indices() {
        units += character.len_utf16();
        if units > max_units {
            return &name[..at];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_names_become_legal_ones_of_the_same_length() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        assert_eq!(legal(&units("a/b:c")), "a_b_c");
        assert_eq!(legal(&[0xD800, 0x61]), "_a");
        assert_eq!(legal(&[]), "_");
        assert_eq!(legal(&[0x61; 32]).len(), 31);
        assert_eq!(cut("a𝄞b", 2), "a");
    }
}
