//! Compound files: `cfb-format` beside crate `cfb` 0.16 and beside plain calls
//! that move the same bytes.
//!
//! * [`base`]: memory or a file of the system.
//! * [`contestant`]: the three, behind one trait.
//! * [`work`]: what is done, one workload a row.
//! * [`rows`]: all workloads, with their sizes.
//! * [`measure`]: rounds in turn, medians.
//! * [`memory`], [`threads`], [`flushes`], [`corpus`]: rows of other kinds.
//! * [`report`]: all of it, with the bounds, as Markdown or JSON.

pub mod base;
pub mod contestant;
pub mod corpus;
pub mod flushes;
pub mod measure;
pub mod memory;
pub mod names;
pub mod report;
pub mod rows;
pub mod threads;
pub mod work;
