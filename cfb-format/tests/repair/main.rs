//! Repair gives a strictly valid file whatever the damage, loses nothing of an intact file, brings back what is still in a
//! damaged one, and never passes a guess off as certain.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

#[path = "../common/mod.rs"]
mod common;

mod corpus;
mod directory;
mod header;
mod hostile;
mod information;
mod intact;
mod judge;
mod random;
mod samples;
mod stale;
mod tables;
mod truncated;
