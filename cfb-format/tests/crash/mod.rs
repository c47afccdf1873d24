//! Runs of operations on a simulated disk, cut or broken anywhere, and judged: the file that is left opens strict and
//! holds exactly a committed state.

pub(crate) mod cases;
pub(crate) mod cuts;
pub(crate) mod disk;
pub(crate) mod faults;
pub(crate) mod judge;
pub(crate) mod random;
pub(crate) mod run;
pub(crate) mod script;

/// Xorshift: the same cuts on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`, which is not zero.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % limit
    }
}
