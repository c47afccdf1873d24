//! One operation through a stream handle, whose stream may be gone.

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use cfb_format::{MemStorage, Stream};

use super::step::agree;
use super::{MAX_STREAM_BYTES, MAX_TOTAL_BYTES, Model, Op, Refusal, assert_same_bytes, ops};

impl Model {
    /// Applies `op` to the handle at `index` and to what the model holds for it.
    pub(super) fn through_handle(&mut self, index: usize, op: Op) {
        let seed = self.seed;
        let room = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes());
        let (id, stream) = &mut self.handles[index];
        let Some(node) = self.nodes.get_mut(id) else {
            agree(stream.read_at(&mut [0; 4], 0), &vec![Refusal::Stale], op);
            agree(stream.write_at(b"late", 0), &vec![Refusal::Stale], op);
            agree(stream.extents(), &vec![Refusal::Stale], op);
            return;
        };
        let content = node.content.as_mut().expect("handles are of streams");
        assert_eq!(stream.len(), content.len() as u64, "length of {:?}", node.name);
        let fits = |end: usize| end <= MAX_STREAM_BYTES.min(content.len() + room);
        match op {
            Op::WriteAt { at, len, .. } => {
                let at = place(at, content.len());
                if fits(at + len as usize) {
                    let bytes = ops::pattern(seed, len);
                    agree(stream.write_at(&bytes, at as u64), &vec![], op);
                    overwrite(content, at, &bytes);
                }
            }
            Op::Append { len, .. } => {
                if fits(content.len() + len as usize) {
                    let bytes = ops::pattern(seed, len);
                    agree(stream.write_at(&bytes, content.len() as u64), &vec![], op);
                    content.extend(bytes);
                }
            }
            Op::WriteThroughCursor { at, len, .. } => {
                let at = place(at, content.len());
                if fits(at + len as usize) {
                    let bytes = ops::pattern(seed, len);
                    stream.seek(SeekFrom::Start(at as u64)).expect("any place can be sought");
                    let (first, second) = bytes.split_at(bytes.len() / 3);
                    stream.write_all(first).expect("memory takes all");
                    stream.write_all(second).expect("memory takes all");
                    stream.flush().expect("memory takes all");
                    overwrite(content, at, &bytes);
                    let end = stream.stream_position().expect("a live stream");
                    assert_eq!(
                        end,
                        (at + bytes.len()) as u64,
                        "the cursor stands behind what was written"
                    );
                }
            }
            Op::SetLen { len, .. } => {
                if fits(len as usize) {
                    agree(stream.set_len(u64::from(len)), &vec![], op);
                    content.resize(len as usize, 0);
                }
            }
            Op::ReadAt { at, len, .. } => {
                let at = place(at, content.len());
                let mut bytes = vec![0xEE; len as usize];
                let read =
                    agree(stream.read_at(&mut bytes, at as u64), &vec![], op).expect("just agreed");
                let expected = &content[at.min(content.len())..];
                let expected = &expected[..expected.len().min(len as usize)];
                assert_same_bytes(&bytes[..read], expected, &node.name);
            }
            Op::ReadThroughCursor { at, step, .. } => {
                let at = place(at, content.len());
                let expected = &content[at.min(content.len())..];
                assert_same_bytes(&read_by_steps(stream, at, step), expected, &node.name);
            }
            Op::Extents { .. } => {
                let extents = agree(stream.extents(), &vec![], op).expect("just agreed");
                let covered: u64 = extents.iter().map(|extent| extent.len_bytes).sum();
                assert_eq!(covered, content.len() as u64, "extents cover the stream and no more");
                let file = self.storage.to_vec();
                let at_extents = extents.iter().flat_map(|extent| {
                    let start = extent.offset as usize;
                    &file[start..start + extent.len_bytes as usize]
                });
                let bytes: Vec<u8> = at_extents.copied().collect();
                assert_same_bytes(&bytes, content, &node.name);
            }
            other => unreachable!("{other:?} needs no handle"),
        }
    }
}

/// A place in or a little behind a stream of `len` bytes.
fn place(at: u8, len: usize) -> usize {
    match at {
        0..=199 => len * usize::from(at) / 199,
        200..=229 => len.saturating_sub(usize::from(at - 199)),
        230.. => len + usize::from(at - 229) * 97,
    }
}

/// What a write does to a file: a gap reads as zeros.
fn overwrite(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Reads to the end by `BufRead` and `Read` in turn, in steps of an odd size.
fn read_by_steps(stream: &mut Stream<MemStorage>, at: usize, step: u8) -> Vec<u8> {
    stream.seek(SeekFrom::Start(at as u64)).expect("any place can be sought");
    let mut all = Vec::new();
    let mut buf = vec![0; usize::from(step) * 37 + 1];
    loop {
        let seen = stream.fill_buf().expect("a sound stream");
        let take = seen.len().min(usize::from(step) + 1);
        all.extend_from_slice(&seen[..take]);
        stream.consume(take);
        let read = stream.read(&mut buf).expect("a sound stream");
        all.extend_from_slice(&buf[..read]);
        if take == 0 && read == 0 {
            return all;
        }
    }
}
