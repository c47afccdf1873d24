//! None of the faults known from other implementations exists here: one named test for each.
//!
//! The identifiers (`b01` to `b70`) are those of a survey of another library; each name says the fact that holds here.

#[path = "../common/mod.rs"]
mod common;

mod failing_storage;
mod foreign_files;
mod fuzz_sites;
mod handles;
mod limits;
mod names;
mod reading;
mod space;
mod threads;
mod tree;
