//! A frame of the journal: one commit, with all that is needed to know whether
//! it counts. FORMAT.md, "Journal".

use std::sync::Arc;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{checksum, checksum_of};
use crate::codec::{Decoder, put_bytes, put_varint};
use crate::extent::Extent;
use crate::object::Object;

/// First bytes of a frame.
const MAGIC: u32 = u32::from_le_bytes(*b"FSJ1");

const OP_PUT: u8 = 1;
const OP_DELETE: u8 = 2;
const OP_NEXT: u8 = 3;

/// Bytes before the payload of a frame.
pub(crate) const HEADER_BYTES: usize = size_of::<RawHeader>();

/// Frames begin at multiples of so many bytes.
pub(crate) const FRAME_ALIGN: u64 = 8;

/// A key.
pub(crate) type Key = Arc<[u8]>;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: U32,
    len: U32,
    epoch: U64,
    session: U64,
    seq: U64,
    durable: U64,
    reserved: U32,
    crc: U32,
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The use of the segment that it was written in.
    pub(crate) epoch: u64,
    /// The opening of the store that it was written in.
    pub(crate) session: u64,
    /// Number of the commit.
    pub(crate) seq: u64,
    /// Commits up to this one were on the medium when it was written.
    pub(crate) durable: u64,
}

/// One step of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Put(Key, Arc<Object>),
    Delete(Key),
    /// The journal goes on in another segment, in its use `epoch`.
    Next {
        segment: Extent,
        epoch: u64,
    },
}

impl Op {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Put(key, object) => {
                out.push(OP_PUT);
                put_bytes(out, key);
                object.encode(out);
            }
            Self::Delete(key) => {
                out.push(OP_DELETE);
                put_bytes(out, key);
            }
            Self::Next { segment, epoch } => {
                out.push(OP_NEXT);
                segment.encode(out);
                put_varint(out, *epoch);
            }
        }
    }

    fn decode(from: &mut Decoder<'_>, sector_bytes: u32) -> Option<Self> {
        Some(match from.u8()? {
            OP_PUT => {
                let key = from.bytes()?.into();
                Self::Put(key, Arc::new(Object::decode(from, sector_bytes)?))
            }
            OP_DELETE => Self::Delete(from.bytes()?.into()),
            OP_NEXT => Self::Next { segment: Extent::decode(from)?, epoch: from.varint()? },
            _ => return None,
        })
    }
}

/// The steps of a payload. `None` if it is none, which its checksum rules out
/// unless somebody made it so.
pub(crate) fn decode_ops(payload: &[u8], sector_bytes: u32) -> Option<Vec<Op>> {
    let mut from = Decoder::new(payload);
    let mut ops = Vec::new();
    while !from.is_empty() {
        ops.push(Op::decode(&mut from, sector_bytes)?);
    }
    Some(ops)
}

/// Appends a frame.
pub(crate) fn encode(header: Header, payload: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let raw = RawHeader {
        magic: MAGIC.into(),
        len: u32::try_from(payload.len()).expect("checked by the caller").into(),
        epoch: header.epoch.into(),
        session: header.session.into(),
        seq: header.seq.into(),
        durable: header.durable.into(),
        reserved: 0.into(),
        crc: 0.into(),
    };
    out.extend_from_slice(raw.as_bytes());
    out.extend_from_slice(payload);
    let crc = checksum(&out[start..]);
    out[start + HEADER_BYTES - 4..start + HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    let aligned = out.len().next_multiple_of(usize::try_from(FRAME_ALIGN).expect("small"));
    out.resize(aligned, 0);
}

/// Bytes that a frame with such a payload takes.
pub(crate) fn frame_bytes(payload: usize) -> u64 {
    ((HEADER_BYTES + payload) as u64).next_multiple_of(FRAME_ALIGN)
}

/// The frame at the front of `bytes`, if there is a whole one: its header and payload.
pub(crate) fn decode(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let (raw, _) = RawHeader::ref_from_prefix(bytes).ok()?;
    if raw.magic.get() != MAGIC {
        return None;
    }
    let end = HEADER_BYTES.checked_add(usize::try_from(raw.len.get()).ok()?)?;
    let frame = bytes.get(..end)?;
    // The checksum was made with zeros in its place.
    let crc = checksum_of(&[&frame[..HEADER_BYTES - 4], &[0; 4], &frame[HEADER_BYTES..]]);
    if crc != raw.crc.get() {
        return None;
    }
    let header = Header {
        epoch: raw.epoch.get(),
        session: raw.session.get(),
        seq: raw.seq.get(),
        durable: raw.durable.get(),
    };
    Some((header, &frame[HEADER_BYTES..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Body;
    use bytes::Bytes;

    const HEADER: Header = Header { epoch: 1, session: 2, seq: 3, durable: 1 };

    fn frame(ops: &[Op]) -> Vec<u8> {
        let mut payload = Vec::new();
        for op in ops {
            op.encode(&mut payload);
        }
        let mut out = Vec::new();
        encode(HEADER, &payload, &mut out);
        out
    }

    #[test]
    fn frames_come_back() {
        let object = Object {
            version: 3,
            created: 5,
            modified: 6,
            len: 2,
            crc: 9,
            body: Body::Inline(Bytes::from_static(b"ab")),
            metadata: Bytes::new(),
        };
        let segment = Extent { file: 0, start: 9, count: 4 };
        let ops = [
            Op::Put(b"key"[..].into(), Arc::new(object)),
            Op::Delete(b"gone"[..].into()),
            Op::Next { segment, epoch: 8 },
        ];
        let bytes = frame(&ops);
        let (header, payload) = decode(&bytes).unwrap();
        assert_eq!(header, HEADER);
        assert_eq!(decode_ops(payload, 4096).unwrap(), ops);
    }

    #[test]
    fn a_changed_or_missing_byte_makes_it_none() {
        let bytes = frame(&[Op::Delete(b"gone"[..].into())]);
        let end = HEADER_BYTES + 6;
        for at in 0..end {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert_eq!(decode(&changed), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
