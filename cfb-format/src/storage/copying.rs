//! Copies between places in memory that nobody chose.
//!
//! More than a few KiB the copy of the C library leaves to one instruction of
//! the processor. That is the fastest way where source and target lie alike in
//! their cache lines, or where the target begins one. Elsewhere it takes up to
//! three times as long (AMD Zen 4; others differ less), and a copy in short
//! pieces, which go through registers, does not.

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Short enough to go through registers, long enough to cost nothing more.
const PIECE_BYTES: usize = 512;

/// Of longer copies one side is seldom in the cache, and the one instruction is
/// better at waiting for it.
const MAX_IN_PIECES_BYTES: usize = 64 << 10;

/// How an address lies in its cache line.
fn lies(at: *const u8) -> usize {
    at.addr() % LINE_BYTES
}

/// In how long pieces bytes are best copied from one address to another.
fn best_piece_bytes(to: *const u8, from: &[u8]) -> usize {
    let is_alike = lies(to) == 0 || lies(to) == lies(from.as_ptr());
    if is_alike || from.len() > MAX_IN_PIECES_BYTES { usize::MAX } else { PIECE_BYTES }
}

/// Copies all of `from` to the start of `to`.
///
/// # Panics
///
/// When `to` is shorter.
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    let piece_bytes = best_piece_bytes(to.as_ptr(), from);
    copy_in_pieces(&mut to[..from.len()], from, piece_bytes);
}

fn copy_in_pieces(to: &mut [u8], from: &[u8], piece_bytes: usize) {
    for (to, from) in to.chunks_mut(piece_bytes).zip(from.chunks(piece_bytes)) {
        to.copy_from_slice(from);
    }
}

/// Long enough that one side is most likely not in the cache.
const COLD_BYTES: usize = 128 << 10;

/// Bytes that go through the first-level cache at a time.
const PASS_BYTES: usize = 4 << 10;

/// A buffer in the cache that lies as bytes elsewhere do in their cache lines: long
/// copies go through it, so that what comes from or goes to memory is copied by
/// the one instruction at its best.
struct Pass {
    bytes: [u8; PASS_BYTES + 2 * LINE_BYTES],
    start: usize,
}

impl Pass {
    /// What a copy of `len` bytes between two addresses goes through, if it gains by
    /// it; as the bytes at `cold` lie.
    fn between(cold: *const u8, other: *const u8, len: usize) -> Option<Self> {
        if len < COLD_BYTES || lies(cold) == lies(other) {
            return None;
        }
        Some(Self { bytes: [0; PASS_BYTES + 2 * LINE_BYTES], start: lies(cold) })
    }

    fn room(&mut self, len: usize) -> &mut [u8] {
        let line = self.bytes.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        &mut self.bytes[line + self.start..][..len]
    }
}

/// Copies all of `from`, which may be anywhere, to the start of `to`.
///
/// # Panics
///
/// When `to` is shorter.
pub(super) fn copy_cold(to: &mut [u8], from: &[u8]) {
    let to = &mut to[..from.len()];
    let Some(mut pass) = Pass::between(from.as_ptr(), to.as_ptr(), from.len()) else {
        to.copy_from_slice(from);
        return;
    };
    for (to, from) in to.chunks_mut(PASS_BYTES).zip(from.chunks(PASS_BYTES)) {
        let room = pass.room(from.len());
        room.copy_from_slice(from);
        copy_in_pieces(to, room, PIECE_BYTES);
    }
}

/// Appends all of `from` to `to`.
pub(crate) fn append(to: &mut Vec<u8>, from: &[u8]) {
    to.reserve(from.len());
    let end = to.as_ptr().wrapping_add(to.len());
    if let Some(mut pass) = Pass::between(end, from.as_ptr(), from.len()) {
        for from in from.chunks(PASS_BYTES) {
            let room = pass.room(from.len());
            copy_in_pieces(room, from, PIECE_BYTES);
            to.extend_from_slice(room);
        }
        return;
    }
    for piece in from.chunks(best_piece_bytes(end, from)) {
        to.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_the_same_wherever_the_bytes_lie() {
        let source: Vec<u8> = (0..=250).cycle().take(2 * COLD_BYTES).collect();
        for (from, to) in [(0, 0), (0, 16), (16, 0), (16, 16), (1, 2), (63, 64), (5, 69)] {
            for len_bytes in [0, 1, 511, 512, 513, 1_024, 2_500, COLD_BYTES, COLD_BYTES + 77] {
                let bytes = &source[from..from + len_bytes];
                let mut target = vec![0xEE; to + len_bytes + 1];
                copy(&mut target[to..], bytes);
                assert_eq!(target[to..to + len_bytes], *bytes);
                assert!(target[..to].iter().all(|&byte| byte == 0xEE));
                assert_eq!(target[to + len_bytes], 0xEE, "no byte more");

                target[to..].fill(0xEE);
                copy_cold(&mut target[to..], bytes);
                assert_eq!(target[to..to + len_bytes], *bytes);

                target.truncate(to);
                append(&mut target, bytes);
                assert_eq!(target[to..], *bytes);
            }
        }
    }

    #[test]
    fn only_bytes_that_lie_differently_are_copied_in_pieces() {
        let lines = [0_u8; 4 * LINE_BYTES];
        let line = lines.as_ptr().align_offset(LINE_BYTES);
        let at = |offset: usize| &lines[line + offset..];
        assert_eq!(best_piece_bytes(at(16).as_ptr(), at(0)), PIECE_BYTES);
        assert_eq!(best_piece_bytes(at(16).as_ptr(), at(80)), usize::MAX);
        assert_eq!(best_piece_bytes(at(64).as_ptr(), at(3)), usize::MAX);
    }
}
