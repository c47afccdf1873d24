//! Files in memory: the one place that needs `unsafe`.
//!
//! A map is a slice of bytes, and Rust takes for granted that those do not change
//! and do not go away while somebody looks at them. The system makes no such
//! promise for files, so this crate does:
//!
//! - Only the process that writes to a store maps its files (`get_mapped` is an
//!   error in others), and the lock keeps other writers of this crate away.
//! - Of a map only the sectors of one object are ever looked at, by somebody
//!   with a pin, and nothing writes to sectors while a pin keeps them.
//! - Files are only ever cut off behind the last sector that is in use, and
//!   sectors with a pin are.
//!
//! A program that writes to the files of a store past its lock, or cuts them off,
//! breaks this as it breaks the store.
#![expect(unsafe_code, reason = "a map of a file is unsafe to make; the module says why it holds")]

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::Mapping;

/// Maps a file as long as it is now.
pub(super) fn map(file: &File) -> io::Result<Mapping> {
    // SAFETY: nobody changes or cuts off the bytes that are looked at while they
    // are; see above.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Arc::new(map))
}
