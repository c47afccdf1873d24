//! Compaction keeps every byte of the content and no other: new files that depend on nothing but the content.
//!
//! `CFB_CORPUS` names a folder of real files to be compacted as well.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

mod common;
#[path = "compact/corpus.rs"]
mod corpus;
#[path = "compact/fragmented.rs"]
mod fragmented;
#[path = "compact/in_place.rs"]
mod in_place;
#[path = "compact/large.rs"]
mod large;
#[path = "compact/rewrite.rs"]
mod rewrite;
