//! What the tests of this crate share: compound files made and judged by hand, and storages that count, fail or are mostly
//! empty.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of these helpers")]

pub(crate) mod abuse;
pub(crate) mod files;
pub(crate) mod raw;
pub(crate) mod storages;
