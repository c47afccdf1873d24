//! `alloc-core`: the free map and the allocator over it.

use alloc_core::{Allocator, Chain, FreeMap, Run, SectorCount, SectorId, Window};

use super::{Extends, Facts, RawRun, Rival};
use crate::fill::Fill;

/// The allocator of this workspace.
#[derive(Debug)]
pub struct Ours {
    allocator: Allocator,
}

impl Ours {
    /// The free map inside.
    pub fn map(&self) -> &FreeMap {
        self.allocator.map()
    }
}

impl Rival for Ours {
    const TITLE: &'static str = "alloc-core";
    const ABILITIES: Facts =
        Facts { policy: "best fit", runs: true, frees_parts: true, linear: false };
    type Object = Chain;
    type Finder = FreeMap;

    fn load(fill: &Fill, free_words: &[u64]) -> Option<Self> {
        let map = FreeMap::from_free_words(SectorCount::new(fill.sectors), free_words.to_vec());
        Some(Self { allocator: Allocator::new(map) })
    }

    fn allocate(&mut self, count: u32) -> Option<Chain> {
        self.allocator.allocate(SectorCount::new(count), None).ok()
    }

    fn release(&mut self, object: Chain) {
        self.allocator.release_chain(object);
    }

    fn extents(object: &Chain) -> usize {
        object.run_count()
    }

    fn into_finder(self) -> FreeMap {
        self.allocator.into_map()
    }

    fn search(map: &mut FreeMap, count: u32) -> bool {
        map.find(SectorCount::new(count), None).is_some()
    }

    fn free(&self) -> u32 {
        self.allocator.map().free_count().get()
    }

    fn count_free_runs(&self) -> Option<usize> {
        Some(self.allocator.map().run_count() as usize)
    }

    fn with_objects(sectors: u32, counts: &[u32]) -> Option<(Self, Vec<Chain>)> {
        let mut ours = Self { allocator: Allocator::new(FreeMap::new(SectorCount::new(sectors))) };
        let objects = counts.iter().map(|&count| ours.allocate(count));
        let objects = objects.collect::<Option<Vec<_>>>()?;
        Some((ours, objects))
    }
}

impl Extends for Ours {
    type Tail = Chain;

    fn tail((start, count): RawRun) -> Chain {
        Chain::from_runs([Run::new(SectorId::new(start), SectorCount::new(count))])
    }

    fn extend(&mut self, tail: &mut Chain, count: u32) -> bool {
        self.allocator.extend(tail, &mut Window::none(), SectorCount::new(count)).is_ok()
    }

    fn cut(&mut self, tail: &mut Chain, count: u32) {
        let kept = tail.sector_count().get() - count;
        let cut = tail.truncate(SectorCount::new(kept));
        self.allocator.release_chain(cut);
    }
}
