//! CRC-32C (Castagnoli), by hardware where there is some. FORMAT.md, "Checksums".

use std::sync::OnceLock;

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// An object's bytes are checked in chunks of so many, so that reading a part of
/// it reads and checks little more than that part.
pub(crate) const CHUNK_BYTES: usize = 16 << 10;

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(Crc32Iscsi, bytes))
}

/// The checksum of some byte strings, one behind the other.
pub(crate) fn checksum_of(parts: &[&[u8]]) -> u32 {
    let mut digest = crc_fast::Digest::new(Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    narrow(digest.finalize())
}

/// The checksum of two byte strings, one behind the other, from theirs. `len` is
/// the length of the second in bytes.
fn join(first: u32, second: u32, len: u64) -> u32 {
    if len == CHUNK_BYTES as u64 {
        return shift_by_chunk(first) ^ second;
    }
    narrow(crc_fast::checksum_combine(Crc32Iscsi, first.into(), second.into(), len))
}

/// What a checksum becomes when a chunk of bytes with the checksum 0 follows. This
/// is linear, so four look-ups in tables do it, where working it out for any
/// length takes a thousand times as long.
fn shift_by_chunk(crc: u32) -> u32 {
    static TABLES: OnceLock<[[u32; 256]; 4]> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        let mut tables = [[0; 256]; 4];
        for (nth, table) in tables.iter_mut().enumerate() {
            for bit in 0..8 {
                let one: u64 = 1 << (8 * nth + bit);
                let shifted = crc_fast::checksum_combine(Crc32Iscsi, one, 0, CHUNK_BYTES as u64);
                for (byte, entry) in table.iter_mut().enumerate() {
                    if byte >> bit & 1 == 1 {
                        *entry ^= narrow(shifted);
                    }
                }
            }
        }
        tables
    });
    let bytes = crc.to_le_bytes();
    bytes.iter().zip(tables).map(|(&byte, table)| table[usize::from(byte)]).fold(0, |a, b| a ^ b)
}

/// A CRC-32 is a number of 32 bits.
fn narrow(crc: u64) -> u32 {
    u32::try_from(crc).expect("a checksum of 32 bits")
}

/// Chunks of an object of `len` bytes.
pub(crate) fn chunks_of(len: u64) -> u64 {
    len.div_ceil(CHUNK_BYTES as u64)
}

/// The checksum of the whole from those of its chunks.
pub(crate) fn whole(chunks: &[u32], len: u64) -> u32 {
    let mut left = len;
    let mut whole = None;
    for &chunk in chunks {
        let bytes = left.min(CHUNK_BYTES as u64);
        left -= bytes;
        whole = Some(whole.map_or(chunk, |whole| join(whole, chunk, bytes)));
    }
    whole.unwrap_or_else(|| checksum(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_crc_32c() {
        // The check value of the catalogue of CRCs.
        assert_eq!(checksum(b"123456789"), 0xE306_9283);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn chunks_give_the_checksum_of_the_whole() {
        for len in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7] {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 7 % 251).to_le_bytes()[0]).collect();
            let chunks: Vec<u32> = bytes.chunks(CHUNK_BYTES).map(checksum).collect();
            assert_eq!(whole(&chunks, len as u64), checksum(&bytes));
        }
    }
}
