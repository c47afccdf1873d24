//! Keys and values, the same in every run.
//!
//! Values are slices of one pool of random bytes: no two are alike, none can be
//! compressed, and making one costs nothing while a store is timed.

use std::sync::OnceLock;

use crate::rng::Rng;

/// Bytes of the pool.
const POOL_BYTES: usize = 8 << 20;

/// Distance between the values of neighbouring indices: odd and prime, so that
/// it meets every offset before it meets one twice.
const STEP: usize = 4_099;

fn pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    POOL.get_or_init(|| {
        let mut rng = Rng::new(0x0b1e_c75e);
        (0..POOL_BYTES / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
    })
}

/// The value of the object with this index: `len_bytes` random bytes.
///
/// ```
/// use bench_suite::store::data::value;
/// assert_eq!(value(7, 4_096).len(), 4_096);
/// assert_ne!(value(7, 4_096), value(8, 4_096));
/// ```
///
/// # Panics
///
/// When the pool is not longer than the value.
pub fn value(index: usize, len_bytes: usize) -> &'static [u8] {
    let pool = pool();
    assert!(len_bytes < pool.len(), "a value of {len_bytes} bytes from {}", pool.len());
    &pool[index.wrapping_mul(STEP) % (pool.len() - len_bytes)..][..len_bytes]
}

/// The key of the object with this index: 35 bytes, in no order.
///
/// ```
/// use bench_suite::store::data::key;
/// assert_eq!(key(1).len(), 35);
/// ```
pub fn key(index: usize) -> String {
    let mut rng = Rng::new(index as u64);
    format!("ns/{:016x}{:016x}", rng.next_u64(), rng.next_u64())
}

/// The key of an object among very many, of which each thousand share a prefix.
///
/// ```
/// use bench_suite::store::data::{prefix, prefixed_key};
/// assert!(prefixed_key(1_234).starts_with(&prefix(1)));
/// ```
pub fn prefixed_key(index: usize) -> String {
    format!("{}{:016x}", prefix(index / 1_000), Rng::new(index as u64).next_u64())
}

/// The prefix of the thousand objects with this number.
pub fn prefix(thousand: usize) -> String {
    format!("p{thousand:05}/")
}

/// The indices below `count`, in an order that is no order.
pub fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).collect();
    Rng::new(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn values_of_one_length_differ() {
        for len in [128, 4_096, 256 << 10] {
            let starts: HashSet<_> = (0..20_000).map(|index| &value(index, len)[..16]).collect();
            assert_eq!(starts.len(), 20_000, "values of {len} bytes");
        }
    }

    #[test]
    fn keys_differ() {
        assert_eq!((0..20_000).map(key).collect::<HashSet<_>>().len(), 20_000);
        assert_eq!((0..20_000).map(prefixed_key).collect::<HashSet<_>>().len(), 20_000);
    }
}
