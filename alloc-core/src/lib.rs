#![no_std]
//! Sector allocation.
