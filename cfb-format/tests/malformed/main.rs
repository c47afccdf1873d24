//! Every way in which real files depart from the specification is read in full, named by a finding, and survives writing;
//! what breaks a MUST is refused by a strict open; damage costs the streams that it touches and no others.

#[path = "../common/mod.rs"]
mod common;

mod cases;
mod directory;
mod entries;
mod header;
mod hostile;
mod not_files;
mod tables;
mod truncated;
