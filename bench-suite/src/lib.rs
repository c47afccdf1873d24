//! Workloads and rivals for measuring the crates of this workspace side by
//! side. Seeded: every run measures the same work.
//!
//! * [`fill`]: devices that are empty, half full, nearly full; free sectors
//!   scattered or in log-normal runs.
//! * [`rivals`]: one adapter a structure, ours among them.
//! * [`ops`]: one operation at a time (allocate, free, extend, a search that
//!   fails, load) in batches that can be undone.
//! * [`churn`]: log-normal objects come and go on a full device.
//! * [`growth`]: streams that grow in turn.
//! * [`tables`]: next-pointer tables, FAT style, and back.
//! * [`clock`]: thread CPU time, so that a busy machine does not matter.
//! * [`report`]: all of the above in one run, as a table with the ratios.
//! * [`cfb`]: compound files, with a report of their own.
//! * [`store`]: stores of blobs, with a report of their own.
//!
//! `benches/alloc.rs` puts [`ops`], [`churn`], [`growth`] and [`tables`] under
//! divan; `src/bin/alloc_report.rs` prints [`report`].

#![allow(clippy::cast_precision_loss, reason = "counts here stay far below 2^52")]

pub mod cfb;
pub mod churn;
pub mod clock;
pub mod fill;
pub mod growth;
pub mod ops;
pub mod report;
pub mod rivals;
pub mod rng;
pub mod store;
pub mod tables;
