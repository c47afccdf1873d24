#![no_std]
//! Which sectors: free maps, chains of runs, and the policy that keeps streams
//! contiguous.

extern crate alloc;

mod allocator;
mod bitmap;
mod chain;
mod error;
mod free_map;
mod id;
mod links;
mod run;
mod sector_set;
mod size_bins;
mod size_class;
mod stacks;
mod stats;
mod summary;
mod transaction;
mod window;
mod words;

pub use allocator::{Allocator, Reservation};
pub use chain::{Chain, Runs, Segment, Segments};
pub use error::{ChainError, LinkError, MapError, NoSpace, VerifyError};
pub use free_map::{FreeMap, FreeRuns};
pub use id::{ByteOffset, SectorCount, SectorId};
pub use links::{LinkRules, chain_from, claim, claim_chain_from, free_words, write_chain};
pub use run::Run;
pub use sector_set::{SectorSet, SetRuns};
pub use stats::{ChainStats, FreeStats};
pub use transaction::Transaction;
pub use window::Window;
