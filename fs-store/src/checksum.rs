//! CRC-32C (Castagnoli), by hardware where there is some. FORMAT.md, "Checksums".

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// An object's bytes are checked in chunks of so many, so that reading a part of
/// it reads and checks little more than that part.
pub(crate) const CHUNK_BYTES: usize = 16 << 10;

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(Crc32Iscsi, bytes))
}

/// The checksum of two byte strings, one behind the other, from theirs. `len` is
/// the length of the second in bytes.
pub(crate) fn join(first: u32, second: u32, len: u64) -> u32 {
    narrow(crc_fast::checksum_combine(Crc32Iscsi, first.into(), second.into(), len))
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
