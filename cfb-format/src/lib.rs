//! Compound files.
