//! [`Stacks`]: many small stacks of numbers in one pool of 16-byte chunks.

use alloc::vec::Vec;

/// Numbers in a chunk, beside the link to the chunk below.
pub(crate) const ROOM: u16 = 3;
/// No chunk.
const NONE: u32 = u32::MAX;

/// One link (the first number) and room for three values: most stacks are
/// short, and a larger chunk would be mostly empty. Aligned so that it never
/// lies across two cache lines.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Chunk([u32; 4]);

/// One stack: its uppermost chunk, its height, and the height its owner has
/// set as its limit. Eight bytes, because there is one for each size of run.
#[derive(Clone, Copy)]
struct Stack {
    chunk: u32,
    count: u16,
    limit: u16,
}

/// The pool is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PoolFull;

/// What [`Stacks::offer`] has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// The value is on top.
    Taken,
    /// The stack is at its limit.
    StackFull,
    /// The pool is full.
    PoolFull,
}

/// Stacks of `u32`, numbered from 0, which share their memory: 5.3 bytes a
/// value, and chunks that one stack gives up are used by the next.
///
/// All of it takes at most `max_bytes`; the vector of stacks reaches to the
/// highest number in use.
#[derive(Clone)]
pub(crate) struct Stacks {
    all: Vec<Stack>,
    chunks: Vec<Chunk>,
    /// Uppermost chunk of the list of unused ones.
    unused: u32,
    unused_count: u32,
    max_bytes: usize,
    first_limit: u16,
}

impl Stacks {
    /// Stacks with an initial limit each, in at most `max_bytes` of memory.
    pub(crate) const fn new(max_bytes: usize, first_limit: u16) -> Self {
        Self {
            all: Vec::new(),
            chunks: Vec::new(),
            unused: NONE,
            unused_count: 0,
            max_bytes,
            first_limit,
        }
    }

    #[inline]
    pub(crate) fn count(&self, stack: usize) -> u16 {
        self.all.get(stack).map_or(0, |stack| stack.count)
    }

    pub(crate) fn set_limit(&mut self, stack: usize, limit: u16) {
        if let Some(stack) = self.all.get_mut(stack) {
            stack.limit = limit;
        }
    }

    /// Whether the stack is at its limit.
    #[inline]
    pub(crate) fn is_full(&self, stack: usize) -> bool {
        self.all.get(stack).is_some_and(|stack| stack.count >= stack.limit)
    }

    /// The value on top.
    #[inline]
    pub(crate) fn top(&self, stack: usize) -> Option<u32> {
        let stack = self.all.get(stack)?;
        let slot = slot_of(stack.count)?;
        Some(self.chunks[stack.chunk as usize].0[slot])
    }

    /// Takes the value off the top.
    #[inline]
    pub(crate) fn pop(&mut self, stack: usize) -> Option<u32> {
        let stack = self.all.get_mut(stack)?;
        let slot = slot_of(stack.count)?;
        let at = stack.chunk;
        let chunk = &mut self.chunks[at as usize].0;
        let (value, below) = (chunk[slot], chunk[0]);
        stack.count -= 1;
        // One time in three the chunk is empty then and goes to the unused
        // ones: selections, since a branch would be guessed wrong that often.
        let emptied = slot == 1;
        chunk[0] = if emptied { self.unused } else { below };
        stack.chunk = if emptied { below } else { at };
        self.unused = if emptied { at } else { self.unused };
        self.unused_count += u32::from(emptied);
        Some(value)
    }

    /// Puts a value on top, whatever the stack's limit.
    ///
    /// The height must be below `u16::MAX`.
    #[inline]
    pub(crate) fn push(&mut self, stack: usize, value: u32) -> Result<(), PoolFull> {
        if stack >= self.all.len() {
            self.add_stacks(stack);
        }
        let count = self.all[stack].count;
        let slot = (count % ROOM + 1) as usize;
        if slot == 1 {
            let below = self.all[stack].chunk;
            self.all[stack].chunk = self.new_chunk(below)?;
        }
        let stack = &mut self.all[stack];
        self.chunks[stack.chunk as usize].0[slot] = value;
        stack.count = count + 1;
        Ok(())
    }

    /// Puts a value on top, unless it lies there already or the stack is at
    /// its limit.
    #[inline]
    pub(crate) fn offer(&mut self, stack: usize, value: u32) -> Offered {
        let Some(known) = self.all.get_mut(stack) else {
            return self.push(stack, value).map_or(Offered::PoolFull, |()| Offered::Taken);
        };
        let slot = usize::from(known.count % ROOM);
        if known.count > 0 {
            let top = &self.chunks[known.chunk as usize].0;
            // slot 0 stands for a full chunk
            if top[if slot == 0 { usize::from(ROOM) } else { slot }] == value {
                return Offered::Taken;
            }
        }
        if known.count >= known.limit {
            return Offered::StackFull;
        }
        if self.unused != NONE {
            // the same without a branch: one time in three a chunk is needed
            let needed = slot == 0;
            let at = if needed { self.unused } else { known.chunk };
            let chunk = &mut self.chunks[at as usize].0;
            let link = chunk[0];
            chunk[0] = if needed { known.chunk } else { link };
            self.unused = if needed { link } else { self.unused };
            self.unused_count -= u32::from(needed);
            chunk[slot + 1] = value;
            known.chunk = at;
            known.count += 1;
            return Offered::Taken;
        }
        self.push(stack, value).map_or(Offered::PoolFull, |()| Offered::Taken)
    }

    #[cold]
    fn add_stacks(&mut self, stack: usize) {
        let empty = Stack { chunk: NONE, count: 0, limit: self.first_limit };
        if stack >= self.all.capacity() {
            // a doubling vector would waste more than the stacks hold
            self.all.reserve_exact((stack + 1).next_multiple_of(64) - self.all.len());
        }
        self.all.resize(stack + 1, empty);
    }

    fn new_chunk(&mut self, below: u32) -> Result<u32, PoolFull> {
        if self.unused != NONE {
            let at = self.unused;
            let chunk = &mut self.chunks[at as usize];
            self.unused = core::mem::replace(&mut chunk.0[0], below);
            self.unused_count -= 1;
            return Ok(at);
        }
        let count = self.chunks.len();
        if count == self.chunks.capacity() {
            let room = (count / 8).max(8).min(self.chunks_to_make());
            if room == 0 {
                return Err(PoolFull);
            }
            self.chunks.reserve_exact(room);
        }
        self.chunks.push(Chunk([below, 0, 0, 0]));
        // memory for 2^32 chunks is more than any limit
        Ok(u32::try_from(count).unwrap_or(NONE))
    }

    /// Puts another value in the place of the one on top, if there is one.
    #[inline]
    pub(crate) fn set_top(&mut self, stack: usize, value: u32) {
        if let Some(stack) = self.all.get(stack)
            && let Some(slot) = slot_of(stack.count)
        {
            self.chunks[stack.chunk as usize].0[slot] = value;
        }
    }

    /// Exchanges the value on top with the least of the uppermost `chunks`
    /// chunks.
    pub(crate) fn raise_least(&mut self, stack: usize, chunks: u16) {
        let Some(&Stack { chunk: top, count, .. }) = self.all.get(stack) else { return };
        let Some(top_slot) = slot_of(count) else { return };
        let (mut chunk, mut slot) = (top, top_slot);
        let (mut least, mut place) = (u32::MAX, (chunk, slot));
        for _ in 0..chunks.min(count.div_ceil(ROOM)) {
            let values = &self.chunks[chunk as usize].0;
            for slot in (1..=slot).rev() {
                if values[slot] < least {
                    (least, place) = (values[slot], (chunk, slot));
                }
            }
            (chunk, slot) = (values[0], usize::from(ROOM));
        }
        let was = core::mem::replace(&mut self.chunks[top as usize].0[top_slot], least);
        self.chunks[place.0 as usize].0[place.1] = was;
    }

    /// All values of the stack, the uppermost first; the stack is empty then.
    pub(crate) fn take_all(&mut self, stack: usize) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.count(stack).into());
        while let Some(value) = self.pop(stack) {
            all.push(value);
        }
        all
    }

    /// All values of the stack, the uppermost first.
    pub(crate) fn iter(&self, stack: usize) -> impl Iterator<Item = u32> {
        let (mut chunk, mut count) =
            self.all.get(stack).map_or((NONE, 0), |stack| (stack.chunk, stack.count));
        core::iter::from_fn(move || {
            let slot = slot_of(count)?;
            let values = &self.chunks[chunk as usize].0;
            if slot == 1 {
                chunk = values[0];
            }
            count -= 1;
            Some(values[slot])
        })
    }

    /// How many stacks there may be values in.
    pub(crate) fn stack_count(&self) -> usize {
        self.all.len()
    }

    /// How many chunks there is memory for, beyond those made.
    fn chunks_to_make(&self) -> usize {
        self.max_chunks().saturating_sub(self.chunks.len())
    }

    /// How many chunks there is memory for.
    pub(crate) fn max_chunks(&self) -> usize {
        let stacks = self.all.capacity() * size_of::<Stack>();
        self.max_bytes.saturating_sub(stacks) / size_of::<Chunk>()
    }

    /// How many chunks can be had without removing values.
    pub(crate) fn chunks_left(&self) -> usize {
        self.chunks_to_make() + self.unused_count as usize
    }

    /// How many chunks hold values.
    pub(crate) fn chunks_used(&self) -> usize {
        self.chunks.len() - self.unused_count as usize
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Changes the limit of memory; values beyond it stay.
    pub(crate) fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>() + self.all.capacity() * size_of::<Stack>()
    }

    /// Whether every chunk is in one stack or unused, and no two share one.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut seen = alloc::vec![false; self.chunks.len()];
        let mut claim = |at: u32| {
            let fresh = seen.get_mut(at as usize);
            fresh.is_some_and(|seen| !core::mem::replace(seen, true))
        };
        for stack in &self.all {
            let mut chunk = stack.chunk;
            for _ in 0..stack.count.div_ceil(ROOM) {
                if !claim(chunk) {
                    return false;
                }
                chunk = self.chunks[chunk as usize].0[0];
            }
        }
        let mut chunk = self.unused;
        for _ in 0..self.unused_count {
            if !claim(chunk) {
                return false;
            }
            chunk = self.chunks[chunk as usize].0[0];
        }
        seen.into_iter().all(|seen| seen)
    }
}

/// The slot of the uppermost value in its chunk; `None` for an empty stack.
#[inline]
fn slot_of(count: u16) -> Option<usize> {
    Some(usize::from(count.checked_sub(1)? % ROOM + 1))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn stacks_give_back_what_was_pushed_in_reverse() {
        let mut stacks = Stacks::new(1 << 20, 10);
        let mut slow = vec![Vec::new(); 5];
        for value in 0..2000_u32 {
            let stack = (value % 7 % 5) as usize;
            if value % 3 == 2 {
                assert_eq!(stacks.pop(stack), slow[stack].pop());
            } else {
                stacks.push(stack, value).unwrap();
                slow[stack].push(value);
            }
            assert_eq!(stacks.top(stack), slow[stack].last().copied());
            assert_eq!(usize::from(stacks.count(stack)), slow[stack].len());
        }
        assert!(stacks.is_consistent());
        for (stack, slow) in slow.iter_mut().enumerate() {
            slow.reverse();
            assert_eq!(&stacks.iter(stack).collect::<Vec<_>>(), slow);
            assert_eq!(&stacks.take_all(stack), slow);
        }
        assert_eq!(stacks.chunks_used(), 0);
        assert!(stacks.is_consistent());
    }

    #[test]
    fn a_full_pool_refuses_and_stays_as_it_was() {
        // memory for the least number of stacks, and for two chunks
        let mut stacks = Stacks::new(64 * size_of::<Stack>() + 2 * size_of::<Chunk>(), 10);
        for value in 0..6 {
            stacks.push(0, value).unwrap();
        }
        assert_eq!(stacks.push(0, 6), Err(PoolFull));
        assert_eq!(stacks.push(1, 6), Err(PoolFull));
        assert_eq!((stacks.top(0), stacks.top(1)), (Some(5), None));
        assert!(stacks.is_consistent());
        stacks.pop(0);
        stacks.push(0, 7).unwrap();
        stacks.set_top(0, 8);
        assert_eq!(stacks.iter(0).collect::<Vec<_>>(), [8, 4, 3, 2, 1, 0]);
        stacks.raise_least(0, 1);
        assert_eq!(stacks.iter(0).collect::<Vec<_>>(), [3, 4, 8, 2, 1, 0]);
        stacks.raise_least(0, 9);
        assert_eq!(stacks.iter(0).collect::<Vec<_>>(), [0, 4, 8, 2, 1, 3]);
        stacks.raise_least(7, 9);
    }
}
