//! Stores of blobs: one file an object, embedded engines, plain calls.
//!
//! * [`data`]: keys and values, the same in every run.
//! * [`contestant`]: the stores, behind one trait; rivals behind features.
//! * [`raw`]: plain calls that move the same bytes.
//! * [`work`]: what is done; a workload gives one row or more.
//! * [`measure`]: rounds in turn, medians.
//! * [`churn`], [`memory`]: what is counted and not timed.
//! * [`report`]: all of it, with the bounds, as Markdown or JSON.
//! * [`command`]: the command line, for this crate and for the one with the
//!   rivals that need a C++ compiler.

pub mod churn;
pub mod command;
pub mod contestant;
pub mod data;
pub mod measure;
pub mod memory;
pub mod raw;
pub mod report;
pub mod work;
