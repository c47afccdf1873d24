//! The bytes of objects in sectors: writing them with their checksums, reading
//! them against those.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;

use crate::checksum::{CHUNK_BYTES, checksum, chunks_of, whole};
use crate::error::{Error, Result};
use crate::extent::{Extent, Extents, cut, pieces};
use crate::layout::file_name;
use crate::object::{
    Body, INLINE_SUMS, Object, Placed, SUM_BLOCK_BYTES, SUMS_PER_BLOCK, Sums, decode_sum_block,
    encode_sum_blocks, sum_bytes,
};
use crate::space::{Purpose, Space};

/// Values are gathered into allocations and writes of about so many bytes.
const GROUP_BYTES: u64 = 4 << 20;

/// Long objects are read and checked in pieces of so many bytes, which stay in the cache meanwhile.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// Where a value has gone, and the checksum of all of it.
pub(crate) struct Written {
    pub(crate) body: Body,
    pub(crate) crc: u32,
}

/// The checksums of the chunks of a value.
pub(crate) fn sums_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(CHUNK_BYTES).map(checksum).collect()
}

/// Bytes of a value and its checksums in sectors.
fn sectors_of(space: &Space, len: u64) -> (u64, u64) {
    let sums = if chunks_of(len) > INLINE_SUMS as u64 { sum_bytes(len) } else { 0 };
    (space.sectors_for(len), space.sectors_for(sums))
}

/// Writes values to sectors: many in one call, each at the beginning of a sector.
/// None of them is empty.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Full`], those of `flush`: all sectors are free again then.
pub(crate) fn write_values(
    space: &Space,
    values: &[&[u8]],
    flush: &dyn Fn() -> Result<()>,
) -> Result<Vec<Written>> {
    let mut written = Vec::with_capacity(values.len());
    let result = write_groups(space, values, flush, &mut written);
    if let Err(error) = result {
        space.release(written.iter().flat_map(|written| written.body.extents()));
        return Err(error);
    }
    Ok(written)
}

fn write_groups(
    space: &Space,
    values: &[&[u8]],
    flush: &dyn Fn() -> Result<()>,
    written: &mut Vec<Written>,
) -> Result<()> {
    let mut rest = values;
    while !rest.is_empty() {
        let (mut count, mut sectors) = (0, 0);
        while count < rest.len() && sectors * u64::from(space.sector_bytes) < GROUP_BYTES {
            let (data, sums) = sectors_of(space, rest[count].len() as u64);
            sectors += data + sums;
            count += 1;
        }
        let (group, after) = rest.split_at(count);
        let goal = written.last().and_then(|written| written.body.extents().last());
        let mut together = space.try_run(sectors, Purpose::Object, goal);
        if together.is_none() && !space.is_ample(sectors) && space.flush_helps(sectors) {
            flush()?;
            together = space.try_run(sectors, Purpose::Object, goal);
        }
        match together {
            Some(extents) => write_to(space, group, extents, written)?,
            // Room is in smaller places, where each can have a run of its own.
            None if group.len() > 1 && space.is_ample(sectors) => {
                for value in group {
                    let (data, sums) = sectors_of(space, value.len() as u64);
                    let extents = space.allocate(data + sums, Purpose::Object, None, flush)?;
                    write_to(space, &[value], extents, written)?;
                }
            }
            None => {
                let extents = space.allocate(sectors, Purpose::Object, goal, flush)?;
                write_to(space, group, extents, written)?;
            }
        }
        rest = after;
    }
    Ok(())
}

/// Writes a group to sectors that were taken for it, or gives them back.
fn write_to(
    space: &Space,
    group: &[&[u8]],
    extents: Extents,
    written: &mut Vec<Written>,
) -> Result<()> {
    match write_group(space, group, &extents) {
        Ok(mut group) => {
            written.append(&mut group);
            Ok(())
        }
        Err(error) => {
            space.release(extents);
            Err(error)
        }
    }
}

/// Writes values one behind the other, each followed by its checksums if they are many.
fn write_group(space: &Space, values: &[&[u8]], extents: &Extents) -> Result<Vec<Written>> {
    /// As much as a sector can have.
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let sector = space.sector_bytes as usize;
    let padding = |len: usize| &ZEROS[..len.next_multiple_of(sector) - len];
    let sums: Vec<Vec<u32>> = values.iter().map(|value| sums_of(value)).collect();
    let blocks: Vec<Vec<u8>> = sums
        .iter()
        .map(|sums| {
            let mut blocks = Vec::new();
            if sums.len() > INLINE_SUMS {
                encode_sum_blocks(sums, &mut blocks);
            }
            blocks
        })
        .collect();
    let mut parts = Vec::with_capacity(values.len() * 2);
    for (value, blocks) in values.iter().zip(&blocks) {
        for part in [value, padding(value.len()), blocks, padding(blocks.len())] {
            if !part.is_empty() {
                parts.push(IoSlice::new(part));
            }
        }
    }
    space.write(extents, 0, &parts)?;
    let mut rest = extents.clone();
    Ok(values
        .iter()
        .zip(sums)
        .map(|(value, sums)| {
            let len = value.len() as u64;
            let (data, sum_sectors) = sectors_of(space, len);
            let crc = whole(&sums, len);
            let extents = cut(&mut rest, data);
            let sums = if sum_sectors == 0 {
                inline(sums)
            } else {
                Sums::Sectors(cut(&mut rest, sum_sectors))
            };
            Written { body: Body::Sectors(Placed { extents, sums }), crc }
        })
        .collect())
}

/// Checksums that stay with their object.
fn inline(sums: Vec<u32>) -> Sums {
    if sums.len() == 1 { Sums::Whole } else { Sums::Inline(sums.into()) }
}

/// Writes the checksums of an object whose bytes are written already.
pub(crate) fn place_sums(
    space: &Space,
    sums: Vec<u32>,
    len: u64,
    flush: &dyn Fn() -> Result<()>,
) -> Result<Sums> {
    if sums.len() <= INLINE_SUMS {
        return Ok(inline(sums));
    }
    let mut blocks = Vec::new();
    encode_sum_blocks(&sums, &mut blocks);
    let count = space.sectors_for(sum_bytes(len));
    let extents = space.allocate(count, Purpose::Object, None, flush)?;
    if let Err(error) = space.write(&extents, 0, &[IoSlice::new(&blocks)]) {
        space.release(extents);
        return Err(error);
    }
    Ok(Sums::Sectors(extents))
}

/// Bytes that are not those that were written.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file: u16,
    pub(crate) offset: u64,
}

/// Why bytes of an object could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    Other(Error),
    Mismatch(Mismatch),
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl ReadError {
    /// The same for people who know the object by its key.
    pub(crate) fn of(self, key: &[u8]) -> Error {
        match self {
            Self::Other(error) => error,
            Self::Mismatch(Mismatch { start, end, file, offset }) => {
                Error::Corrupt { key: key.to_vec(), start, end, file: file_name(file), offset }
            }
        }
    }
}

/// Reads the sectors of one object.
pub(crate) struct ObjectReader<'a> {
    space: &'a Space,
    placed: &'a Placed,
    len: u64,
    version: u64,
    crc: u32,
    /// The block of checksums that was used last.
    block: Option<(u64, Arc<[u32]>)>,
    /// Whether checksums come from the medium even if they are in memory.
    distrusts: bool,
}

impl<'a> ObjectReader<'a> {
    /// A reader of an object that has these sectors.
    pub(crate) fn new(space: &'a Space, object: &'a Object, placed: &'a Placed) -> Self {
        Self {
            space,
            placed,
            len: object.len,
            version: object.version,
            crc: object.crc,
            block: None,
            distrusts: false,
        }
    }

    /// The checksum of a chunk.
    fn sum(&mut self, chunk: u64) -> Result<u32, ReadError> {
        let index = |number: u64| usize::try_from(number).expect("bounded by memory");
        match &self.placed.sums {
            Sums::Whole => Ok(self.crc),
            Sums::Inline(sums) => Ok(sums[index(chunk)]),
            Sums::Sectors(extents) => {
                let (number, nth) = (chunk / SUMS_PER_BLOCK as u64, chunk % SUMS_PER_BLOCK as u64);
                if self.block.as_ref().is_none_or(|(block, _)| *block != number) {
                    self.block = Some((number, self.sum_block(extents, number)?));
                }
                let (_, sums) = self.block.as_ref().expect("just read");
                Ok(sums[index(nth)])
            }
        }
    }

    /// A block of checksums, from memory if it was read lately.
    fn sum_block(&self, extents: &[Extent], number: u64) -> Result<Arc<[u32]>, ReadError> {
        let at = number * SUM_BLOCK_BYTES as u64;
        let place = pieces(extents, self.space.sector_bytes, at, 1).next();
        let (file, offset, _) = place.unwrap_or_default();
        let key = (self.version, file, offset);
        let known = if self.distrusts { None } else { self.space.sum_blocks.get(&key) };
        if let Some(block) = known {
            return Ok(block);
        }
        let mut bytes = Vec::new();
        self.space.read_onto(extents, at, SUM_BLOCK_BYTES, &mut bytes)?;
        let sums: Arc<[u32]> = decode_sum_block(&bytes)
            .ok_or_else(|| {
                // Without them no byte of these chunks can be trusted.
                let first = number * SUMS_PER_BLOCK as u64 * CHUNK_BYTES as u64;
                let last = first + (SUMS_PER_BLOCK * CHUNK_BYTES) as u64;
                self.mismatch(extents, at, first, last.min(self.len))
            })?
            .into();
        self.space.sum_blocks.insert(key, Arc::clone(&sums));
        Ok(sums)
    }

    fn mismatch(&self, extents: &[Extent], at: u64, start: u64, end: u64) -> ReadError {
        let place = pieces(extents, self.space.sector_bytes, at, 1).next();
        let (file, offset, _) = place.unwrap_or_default();
        ReadError::Mismatch(Mismatch { start, end, file, offset })
    }

    /// Checks bytes that begin at the beginning of a chunk.
    fn check(&mut self, bytes: &[u8], at: u64) -> Result<(), ReadError> {
        let first = at / CHUNK_BYTES as u64;
        for (chunk, bytes) in (first..).zip(bytes.chunks(CHUNK_BYTES)) {
            if self.sum(chunk)? != checksum(bytes) {
                let start = chunk * CHUNK_BYTES as u64;
                let placed = self.placed;
                return Err(self.mismatch(
                    &placed.extents,
                    start,
                    start,
                    start + bytes.len() as u64,
                ));
            }
        }
        Ok(())
    }

    /// Appends the bytes from `start` to `end`, which are the bounds of chunks or
    /// the end of the object.
    pub(crate) fn read_chunks(
        &mut self,
        start: u64,
        end: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let mut at = start;
        while at < end {
            let len = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let before = out.len();
            let placed = self.placed;
            let read = self.space.read_onto(&placed.extents, at, len, out);
            let read = read.map_err(ReadError::from);
            if let Err(error) = read.and_then(|()| self.check(&out[before..], at)) {
                out.truncate(before);
                return Err(error);
            }
            at += len as u64;
        }
        Ok(())
    }

    /// Fills `buf` with the bytes from `start` on, which is the beginning of a
    /// chunk, as its end is the end of one or of the object.
    pub(crate) fn fill_chunks(&mut self, start: u64, buf: &mut [u8]) -> Result<(), ReadError> {
        let mut at = start;
        for piece in buf.chunks_mut(PIECE_BYTES) {
            let placed = self.placed;
            let read = self.space.read_into(&placed.extents, at, piece).map_err(ReadError::from);
            if let Err(error) = read.and_then(|()| self.check(piece, at)) {
                // No wrong byte leaves.
                piece.fill(0);
                return Err(error);
            }
            at += piece.len() as u64;
        }
        Ok(())
    }
}

/// The bytes of an object, checked.
pub(crate) fn read_all(space: &Space, object: &Object) -> Result<Bytes, ReadError> {
    match &object.body {
        Body::Inline(bytes) => Ok(bytes.clone()),
        Body::Sectors(placed) => {
            let len = usize::try_from(object.len).expect("bounded by memory");
            let mut out = Vec::with_capacity(len);
            ObjectReader::new(space, object, placed).read_chunks(0, object.len, &mut out)?;
            Ok(out.into())
        }
    }
}

/// Checks all bytes of an object that are in memory already.
#[cfg(feature = "mmap")]
pub(crate) fn check_bytes(
    space: &Space,
    object: &Object,
    placed: &Placed,
    bytes: &[u8],
) -> Result<(), ReadError> {
    ObjectReader::new(space, object, placed).check(bytes, 0)
}

/// Reads an object against its checksums, a piece at a time; `seen` gets the bytes
/// of each.
pub(crate) fn check_all(
    space: &Space,
    object: &Object,
    seen: &mut dyn FnMut(u64),
) -> Result<(), ReadError> {
    let Body::Sectors(placed) = &object.body else { return Ok(()) };
    let len = object.len;
    let mut reader = ObjectReader { distrusts: true, ..ObjectReader::new(space, object, placed) };
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    for at in (0..len).step_by(PIECE_BYTES) {
        piece.clear();
        reader.read_chunks(at, (at + PIECE_BYTES as u64).min(len), &mut piece)?;
        seen(piece.len() as u64);
    }
    Ok(())
}
