//! `check` on real files: it agrees with an independent audit of them, but for differences of known kinds, and its time and
//! memory stay in proportion to the file, whatever is in it.
//!
//! `CFB_CORPUS` names the folder of files; without it the tests that need it say that they were skipped.

#![allow(clippy::cast_possible_truncation, reason = "sizes here are small by construction")]

#[path = "../common/mod.rs"]
mod common;

mod agreement;
mod classes;
mod cost;
mod facts;
mod findings;
mod rows;

use std::path::PathBuf;
use std::sync::RwLock;

use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc};

#[global_allocator]
static MEMORY: &PeakMemAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

/// Held for writing while memory is measured, so that no other test allocates meanwhile.
static QUIET: RwLock<()> = RwLock::new(());

fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("CFB_CORPUS").filter(|folder| !folder.is_empty());
    if folder.is_none() {
        eprintln!("skipped: CFB_CORPUS names no folder of compound files");
    }
    folder.map(PathBuf::from)
}
