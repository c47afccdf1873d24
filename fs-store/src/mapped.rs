//! [`Mapped`]: the bytes of an object where they lie.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::data::{check_bytes, read_all};
use crate::disk::Mapping;
use crate::engine::Engine;
use crate::error::Result;
use crate::extent::Extent;
use crate::object::Body;
use crate::space::Pin;

/// The bytes of an object, borrowed from a map of the file that they lie in: no
/// copy is made. Its sectors are not used again while this lives.
pub struct Mapped {
    place: Place,
}

enum Place {
    Mapped {
        mapping: Mapping,
        range: Range<usize>,
        _pin: Pin,
    },
    /// In the index, in pieces, or on a disk without maps.
    Copied(Bytes),
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.place {
            Place::Mapped { mapping, range, .. } => &(**mapping).as_ref()[range.clone()],
            Place::Copied(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The bytes of a key's object, checked.
pub(crate) fn get(engine: &Engine, key: &[u8]) -> Result<Option<Mapped>> {
    // Others may write to what a process looks at that only reads.
    engine.journal()?;
    let pin = engine.space.pin();
    let Some(object) = engine.lookup(key)? else { return Ok(None) };
    if let Body::Sectors(placed) = &object.body
        && let [extent] = placed.extents[..]
        && let Some((mapping, range)) = find(engine, extent, object.len)?
    {
        let bytes = &(*mapping).as_ref()[range.clone()];
        check_bytes(&engine.space, &object, placed, bytes).map_err(|error| error.of(key))?;
        return Ok(Some(Mapped { place: Place::Mapped { mapping, range, _pin: pin } }));
    }
    let bytes = read_all(&engine.space, &object).map_err(|error| error.of(key))?;
    Ok(Some(Mapped { place: Place::Copied(bytes) }))
}

/// The map that an extent lies in, and where.
fn find(engine: &Engine, extent: Extent, len: u64) -> Result<Option<(Mapping, Range<usize>)>> {
    let start = engine.space.offset_of(extent);
    let files = engine.files();
    let Some(file) = files.get(usize::from(extent.file)) else { return Ok(None) };
    let Some(mapping) = file.mapped(start + len)? else { return Ok(None) };
    let index = |at: u64| usize::try_from(at).expect("within a map");
    Ok(Some((Arc::clone(&mapping), index(start)..index(start + len))))
}
