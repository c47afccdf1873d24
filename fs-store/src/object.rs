//! What the index and the journal record of an object: everything but its bytes,
//! and those too if they are few. FORMAT.md, "Objects".

use bytes::Bytes;

use crate::checksum::{checksum, chunks_of};
use crate::codec::{Decoder, put_bytes, put_varint};
use crate::extent::{Extent, Extents, decode_extents, encode_extents, sectors_in};

/// Values up to so many bytes stay in the record for good: a sector would cost more.
pub(crate) const INLINE_BYTES: usize = 512;

/// Checksums up to so many stay in the record: those of half a megabyte.
pub(crate) const INLINE_SUMS: usize = 32;

/// The checksums of larger objects lie in sectors of their own, in blocks of so
/// many bytes. The last four of each block are the checksum of the others.
pub(crate) const SUM_BLOCK_BYTES: usize = 4096;

/// Checksums in a block.
pub(crate) const SUMS_PER_BLOCK: usize = SUM_BLOCK_BYTES / 4 - 1;

const HAS_SECTORS: u8 = 1;
const HAS_METADATA: u8 = 2;
const HAS_SUM_SECTORS: u8 = 4;

/// One object, as it was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Number of the commit that put it.
    pub(crate) version: u64,
    /// When the key got its first object since it last had none, in nanoseconds since 1970.
    pub(crate) created: u64,
    /// When this object was put.
    pub(crate) modified: u64,
    /// Length in bytes.
    pub(crate) len: u64,
    /// Checksum of all its bytes.
    pub(crate) crc: u32,
    pub(crate) body: Body,
    /// Encoded metadata; empty if there is none.
    pub(crate) metadata: Bytes,
}

/// Where the bytes of an object are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Here.
    Inline(Bytes),
    /// In sectors.
    Sectors(Placed),
}

/// The sectors of an object and the checksums of its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) extents: Extents,
    pub(crate) sums: Sums,
}

/// The checksums of the chunks of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    /// There is one chunk, and its checksum is that of the object.
    Whole,
    /// Here.
    Inline(Box<[u32]>),
    /// In blocks of checksums in sectors of their own.
    Sectors(Extents),
}

/// Bytes of the blocks that hold the checksums of an object of `len` bytes.
pub(crate) fn sum_bytes(len: u64) -> u64 {
    chunks_of(len).div_ceil(SUMS_PER_BLOCK as u64) * SUM_BLOCK_BYTES as u64
}

/// Appends the blocks that hold these checksums.
pub(crate) fn encode_sum_blocks(sums: &[u32], out: &mut Vec<u8>) {
    for block in sums.chunks(SUMS_PER_BLOCK) {
        let start = out.len();
        out.extend(block.iter().flat_map(|sum| sum.to_le_bytes()));
        out.resize(start + SUM_BLOCK_BYTES - 4, 0);
        let crc = checksum(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// Takes one block of checksums apart. `None` if it is not what was written.
pub(crate) fn decode_sum_block(block: &[u8]) -> Option<Vec<u32>> {
    let (sums, crc) = block.split_last_chunk::<4>()?;
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    (checksum(sums) == u32::from_le_bytes(*crc)).then(|| sums.chunks_exact(4).map(number).collect())
}

impl Body {
    /// Every extent that belongs to it, those of its checksums too.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        let (data, sums): (&[Extent], &[Extent]) = match self {
            Self::Inline(_) => (&[], &[]),
            Self::Sectors(placed) => match &placed.sums {
                Sums::Whole | Sums::Inline(_) => (&placed.extents, &[]),
                Sums::Sectors(sums) => (&placed.extents, sums),
            },
        };
        data.iter().chain(sums).copied()
    }
}

impl Object {
    /// Every extent that belongs to the object.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.body.extents()
    }

    /// Appends the object to a record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut flags = 0;
        if let Body::Sectors(placed) = &self.body {
            flags |= HAS_SECTORS;
            if matches!(placed.sums, Sums::Sectors(_)) {
                flags |= HAS_SUM_SECTORS;
            }
        }
        if !self.metadata.is_empty() {
            flags |= HAS_METADATA;
        }
        out.push(flags);
        put_varint(out, self.version);
        out.extend_from_slice(&self.modified.to_le_bytes());
        put_varint(out, self.modified.wrapping_sub(self.created));
        put_varint(out, self.len);
        out.extend_from_slice(&self.crc.to_le_bytes());
        if !self.metadata.is_empty() {
            put_bytes(out, &self.metadata);
        }
        match &self.body {
            Body::Inline(bytes) => out.extend_from_slice(bytes),
            Body::Sectors(placed) => {
                encode_extents(&placed.extents, out);
                match &placed.sums {
                    Sums::Whole => {}
                    Sums::Inline(sums) => out.extend(sums.iter().flat_map(|sum| sum.to_le_bytes())),
                    Sums::Sectors(extents) => encode_extents(extents, out),
                }
            }
        }
    }

    /// Takes an object off a record. `None` if it cannot be one: its sectors must
    /// be as many as its length asks for.
    pub(crate) fn decode(from: &mut Decoder<'_>, sector_bytes: u32) -> Option<Self> {
        let flags = from.u8()?;
        if flags & !(HAS_SECTORS | HAS_METADATA | HAS_SUM_SECTORS) != 0 {
            return None;
        }
        let version = from.varint()?;
        let modified = from.u64()?;
        let created = modified.wrapping_sub(from.varint()?);
        let len = from.varint()?;
        let crc = from.u32()?;
        let metadata = if flags & HAS_METADATA == 0 {
            Bytes::new()
        } else {
            Bytes::copy_from_slice(from.bytes()?)
        };
        let body = if flags & HAS_SECTORS == 0 {
            Body::Inline(Bytes::copy_from_slice(from.take(usize::try_from(len).ok()?)?))
        } else {
            let extents = decode_extents(from)?;
            if len == 0 || sectors_in(&extents) != len.div_ceil(sector_bytes.into()) {
                return None;
            }
            let sums = if flags & HAS_SUM_SECTORS == 0 {
                let chunks = usize::try_from(chunks_of(len)).ok()?;
                match chunks {
                    1 => Sums::Whole,
                    2..=INLINE_SUMS => {
                        Sums::Inline((0..chunks).map(|_| from.u32()).collect::<Option<_>>()?)
                    }
                    _ => return None,
                }
            } else {
                let extents = decode_extents(from)?;
                if sectors_in(&extents) != sum_bytes(len).div_ceil(sector_bytes.into()) {
                    return None;
                }
                Sums::Sectors(extents)
            };
            Body::Sectors(Placed { extents, sums })
        };
        Some(Self { version, created, modified, len, crc, body, metadata })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smallvec::smallvec;

    fn object(len: u64, body: Body) -> Object {
        let metadata = Bytes::from_static(b"meta");
        Object { version: 7, created: 90, modified: 100, len, crc: 5, body, metadata }
    }

    fn round_trip(object: &Object) {
        let mut out = Vec::new();
        object.encode(&mut out);
        let mut decoder = Decoder::new(&out);
        assert_eq!(Object::decode(&mut decoder, 4096).as_ref(), Some(object));
        assert!(decoder.is_empty());
        for len in 0..out.len() {
            assert_eq!(Object::decode(&mut Decoder::new(&out[..len]), 4096), None);
        }
    }

    #[test]
    fn objects_come_back_and_cut_ones_do_not() {
        round_trip(&object(3, Body::Inline(Bytes::from_static(b"abc"))));
        let extents: Extents = smallvec![Extent { file: 1, start: 9, count: 2 }];
        let sums = Sums::Whole;
        round_trip(&object(5000, Body::Sectors(Placed { extents, sums })));
        let extents: Extents = smallvec![Extent { file: 0, start: 9, count: 256 }];
        let sums = Sums::Sectors(smallvec![Extent { file: 0, start: 500, count: 1 }]);
        round_trip(&object(1 << 20, Body::Sectors(Placed { extents, sums })));
    }

    #[test]
    fn sectors_must_fit_the_length() {
        let extents: Extents = smallvec![Extent { file: 1, start: 9, count: 3 }];
        let sums = Sums::Whole;
        let mut out = Vec::new();
        object(5000, Body::Sectors(Placed { extents, sums })).encode(&mut out);
        assert_eq!(Object::decode(&mut Decoder::new(&out), 4096), None);
    }

    #[test]
    fn blocks_of_checksums_come_back_and_changed_ones_do_not() {
        let sums: Vec<u32> = (0..2000).collect();
        let mut out = Vec::new();
        encode_sum_blocks(&sums, &mut out);
        assert_eq!(out.len() as u64, sum_bytes(2000 * crate::checksum::CHUNK_BYTES as u64));
        let first = decode_sum_block(&out[..SUM_BLOCK_BYTES]).unwrap();
        assert_eq!(first[..], sums[..SUMS_PER_BLOCK]);
        out[77] ^= 1;
        assert_eq!(decode_sum_block(&out[..SUM_BLOCK_BYTES]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_object_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::new(&bytes);
            if let Some(object) = Object::decode(&mut decoder, 512) {
                let mut out = Vec::new();
                object.encode(&mut out);
                prop_assert_eq!(Object::decode(&mut Decoder::new(&out), 512), Some(object));
            }
        }
    }
}
