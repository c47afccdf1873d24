//! What keys have now, for those who ask for one key: all that is not in the
//! index yet, and some of what is.

use std::hash::BuildHasher;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::frame::Key;
use crate::object::Object;

const SHARDS: usize = 16;

/// The present, by key.
pub(crate) struct Live {
    shards: [RwLock<Shard>; SHARDS],
    hasher: DefaultHashBuilder,
    /// Entries of the index that a shard keeps.
    clean_limit: usize,
}

#[derive(Default)]
struct Shard {
    slots: HashTable<Slot>,
    clean: usize,
}

struct Slot {
    key: Key,
    hash: u64,
    /// None if the key has been deleted.
    object: Option<Arc<Object>>,
    /// Not in the index yet.
    is_dirty: bool,
}

impl Live {
    /// Keeps about so many entries of the index.
    pub(crate) fn new(clean_limit: usize) -> Self {
        let clean_limit = (clean_limit / SHARDS).max(4);
        Self { shards: Default::default(), hasher: DefaultHashBuilder::default(), clean_limit }
    }

    fn shard(&self, key: &[u8]) -> (u64, &RwLock<Shard>) {
        let hash = self.hasher.hash_one(key);
        // The table uses the bits at both ends.
        (hash, &self.shards[(hash >> 24) as usize % SHARDS])
    }

    /// What a key has: nothing at all if that is in the index alone.
    #[expect(clippy::option_option, reason = "known to have none is not unknown")]
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Arc<Object>>> {
        let (hash, shard) = self.shard(key);
        let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
        shard.slots.find(hash, |slot| slot.key[..] == *key).map(|slot| slot.object.clone())
    }

    /// A commit gives a key an object, or takes it.
    pub(crate) fn set(&self, key: Key, object: Option<Arc<Object>>) {
        let (hash, shard) = self.shard(&key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *shard;
        if let Some(slot) = shard.slots.find_mut(hash, |slot| slot.key == key) {
            shard.clean -= usize::from(!slot.is_dirty);
            (slot.object, slot.is_dirty) = (object, true);
            return;
        }
        let slot = Slot { key, hash, object, is_dirty: true };
        shard.slots.insert_unique(hash, slot, |slot| slot.hash);
    }

    /// Keeps what the index says of a key, unless it does not say so any more,
    /// which `is_current` tells while no commit can come between.
    pub(crate) fn remember(&self, key: &[u8], object: &Arc<Object>, is_current: impl Fn() -> bool) {
        let (hash, shard) = self.shard(key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        if !is_current() || shard.slots.find(hash, |slot| slot.key[..] == *key).is_some() {
            return;
        }
        if shard.clean >= self.clean_limit {
            shard.forget_half();
        }
        shard.clean += 1;
        let slot =
            Slot { key: key.into(), hash, object: Some(Arc::clone(object)), is_dirty: false };
        shard.slots.insert_unique(hash, slot, |slot| slot.hash);
    }

    /// A fold has brought `old` of a key into the index, as `new`. False if the
    /// key has got another object since.
    pub(crate) fn folded(
        &self,
        key: &Key,
        old: Option<&Arc<Object>>,
        new: Option<&Arc<Object>>,
    ) -> bool {
        let (hash, shard) = self.shard(key);
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *shard;
        let Ok(mut entry) = shard.slots.find_entry(hash, |slot| slot.key == *key) else {
            // Put and deleted again after the fold before this one had begun, which
            // then took this deletion for its own.
            assert!(old.is_none(), "what is not in the index is kept here");
            return true;
        };
        let slot = entry.get_mut();
        let is_same = match (&slot.object, old) {
            (Some(object), Some(old)) => Arc::ptr_eq(object, old),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            return false;
        }
        match new {
            Some(new) if shard.clean < self.clean_limit => {
                slot.object = Some(Arc::clone(new));
                slot.is_dirty = false;
                shard.clean += 1;
            }
            _ => {
                entry.remove();
            }
        }
        true
    }
}

impl Shard {
    /// Drops about half of what is in the index anyway, by chance.
    fn forget_half(&mut self) {
        let mut coin = false;
        let mut clean = 0;
        self.slots.retain(|slot| {
            if slot.is_dirty {
                return true;
            }
            coin = !coin;
            clean += usize::from(coin);
            coin
        });
        self.clean = clean;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Body;
    use bytes::Bytes;

    fn object(version: u64) -> Arc<Object> {
        let body = Body::Inline(Bytes::new());
        let metadata = Bytes::new();
        Arc::new(Object { version, created: 0, modified: 0, len: 0, crc: 0, body, metadata })
    }

    #[test]
    fn what_is_not_in_the_index_is_never_dropped() {
        let live = Live::new(64);
        for i in 0..1000_u32 {
            live.set(i.to_le_bytes()[..].into(), Some(object(u64::from(i))));
        }
        for i in 1000..3000_u32 {
            live.remember(&i.to_le_bytes(), &object(1), || true);
        }
        let known = |range: std::ops::Range<u32>| {
            range.filter(|i| live.get(&i.to_le_bytes()).is_some()).count()
        };
        assert_eq!(known(0..1000), 1000);
        assert!(known(1000..3000) <= 64);
        assert!(known(1000..3000) > 16);
    }

    #[test]
    fn a_commit_wins_over_what_was_read_before_it() {
        let live = Live::new(64);
        live.set(b"a"[..].into(), None);
        live.remember(b"a", &object(1), || true);
        assert_eq!(live.get(b"a"), Some(None));
        live.remember(b"b", &object(1), || false);
        assert_eq!(live.get(b"b"), None);
    }

    #[test]
    fn a_key_that_is_deleted_again_during_a_fold_is_folded_twice() {
        let live = Live::new(64);
        let key: Key = b"a"[..].into();
        live.set(Arc::clone(&key), None);
        live.set(Arc::clone(&key), Some(object(1)));
        live.set(Arc::clone(&key), None);
        assert!(live.folded(&key, None, None));
        assert!(live.folded(&key, None, None));
        assert_eq!(live.get(b"a"), None);
    }

    #[test]
    fn a_fold_leaves_what_came_after_it() {
        let live = Live::new(64);
        let key: Key = b"a"[..].into();
        let (old, new) = (object(1), object(1));
        live.set(Arc::clone(&key), Some(Arc::clone(&old)));
        assert!(live.folded(&key, Some(&old), Some(&new)));
        assert!(Arc::ptr_eq(&live.get(b"a").unwrap().unwrap(), &new));
        live.set(Arc::clone(&key), Some(object(2)));
        assert!(!live.folded(&key, Some(&new), Some(&new)));
        assert_eq!(live.get(b"a").unwrap().unwrap().version, 2);
        live.set(Arc::clone(&key), None);
        assert!(live.folded(&key, None, None));
        assert_eq!(live.get(b"a"), None);
    }
}
