#![no_std]
//! Which sectors: the part of a file system, a compound-file writer or a blob
//! store that decides where things go, without bytes, files or formats.
//!
//! # The model
//!
//! 1. A device is `total` sectors, numbered from 0 ([`SectorId`]); at most
//!    `u32::MAX` of them. What a sector holds is not this crate's business.
//! 2. Consecutive sectors are a [`Run`], never empty. The sectors of one
//!    stream, in stream order, are a [`Chain`] of maximal runs.
//! 3. A [`FreeMap`] knows which sectors are free: one bit each. Any part of any
//!    run can be taken and given back; there is no handle per allocation.
//! 4. An [`Allocator`] has a map and a policy, which keeps chains in few runs.
//! 5. A chain that grows little by little has a [`Window`]: sectors ahead of
//!    it that nobody else gets, given back when it stops growing.
//! 6. A [`Reservation`] promises a number of sectors, wherever they are.
//! 7. A [`Transaction`] keeps what is given back from being reused before a
//!    commit, and can undo what was taken since the last one.
//! 8. [`chain_from`], [`write_chain`] and [`free_words`] lead from tables of
//!    next-pointers (FAT style) to chains and maps, and back.
//! 9. All or nothing: a call that fails has changed nothing, and says with
//!    numbers why ([`NoSpace`], [`MapError`], [`LinkError`]).
//! 10. The same calls give the same layout, on every machine: nothing is
//!     hashed, and nothing depends on time or addresses.
//!
//! # Example
//!
//! ```
//! use alloc_core::{Allocator, Chain, FreeMap, SectorCount, Window, write_chain};
//!
//! let count = SectorCount::new;
//! let mut alloc = Allocator::new(FreeMap::new(count(100)));
//!
//! // two streams that grow in turn, without getting in each other's way
//! let (mut a, mut wa) = (Chain::new(), Window::doubling());
//! let (mut b, mut wb) = (Chain::new(), Window::doubling());
//! for _ in 0..6 {
//!     alloc.extend(&mut a, &mut wa, count(1))?;
//!     alloc.extend(&mut b, &mut wb, count(1))?;
//! }
//! alloc.trim(&mut wa);
//! alloc.trim(&mut wb);
//! assert_eq!((a.run_count(), b.run_count()), (1, 1));
//!
//! // the first is removed, the second shortened
//! alloc.release_chain(a);
//! let cut = b.truncate(count(4));
//! alloc.release_chain(cut);
//! assert_eq!(alloc.map().free_count(), count(96));
//!
//! // what a FAT says about it
//! let mut table = vec![u32::MAX; 16];
//! write_chain(&mut table, &b, 0xFFFF_FFFE);
//! assert_eq!(table[9..14], [10, 11, 12, 0xFFFF_FFFE, u32::MAX]);
//! # Ok::<(), alloc_core::NoSpace>(())
//! ```
//!
//! # The policy
//!
//! A request of [`Allocator::extend`] is met from, in this order:
//!
//! 1. the chain's window;
//! 2. free sectors right behind the chain's last one: **contiguous run
//!    extension**;
//! 3. one free run that holds all that is still wanted, and a new window if
//!    there is room. Best fit: the shortest such run, so that long runs remain
//!    for those who need them;
//! 4. the fewest large pieces, longest first, the last one best fit again.
//!
//! [`Allocator::allocate`] begins at step 3, or at a goal. Two percent of free
//! sectors are enough for nearly all objects to be in one run; below that,
//! every policy gathers pieces.
//!
//! # How a run is found
//!
//! The bitmap is the truth, and all else can be made from it. Above it stand
//! two trees with a bit for every 64 below: one says where free sectors are,
//! one where used ones are, so the ends of a run are found in a few steps over
//! any distance. Free runs are filed by length: a bin for each length below
//! 512 sectors, 64 bins an octave above. A bin holds the first sectors of its
//! runs. Nothing is searched for when a run is merged or cut: the new run is
//! filed, and what is filed about the old one is found to be wrong when it
//! comes up, and dropped. Memory for the bins is limited; a bin that had to
//! leave runs out is refilled from the bitmap when it runs dry, a stretch at a
//! time.
//!
//! # Costs
//!
//! | call | steps |
//! |---|---|
//! | take, release, extend | a few dependent memory reads, for any length |
//! | find, allocate in one run | the same; the bins are refilled now and then |
//! | a search that fails | a comparison, once it has failed for that length |
//! | allocate in pieces | the above for each piece |
//! | extend within a window | a counter |
//! | grow, shrink the device | amortised O(sectors / 64) |
//! | build from words | memory speed, and the runs that are filed |
//! | table to words, chain to table, chain from table | memory speed for long runs |
//!
//! A map takes 1.033 bits a sector for the bitmap and its trees, and at most
//! 0.2 more for the bins (at least 8 KiB). A chain takes 24 bytes, and 8 bytes
//! a run beyond the second. The benchmarks of this workspace (`bench-suite`)
//! show all of it beside other allocators.
//!
//! # Features
//!
//! None. `no_std` with `alloc`, no `unsafe`.

extern crate alloc;

mod allocator;
mod bitmap;
mod chain;
mod class_set;
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
