//! Files that appear under their name whole, or not at all.
//!
//! The bytes go to a file of another name beside the target, which takes the
//! target's place at the end in one step. Until then what was there stays, and
//! after a failure the half-done file is removed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// A file on its way to `target`.
pub(crate) struct Staged {
    temporary: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Staged {
    /// Chooses a name beside `target`. The caller creates the file.
    ///
    /// A target that is a symbolic link stands for what it points to.
    pub(crate) fn beside(target: &Path) -> Self {
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let name = target.file_name().unwrap_or_default();
        let temporary = (0..=u32::MAX)
            .map(|attempt| {
                let mut hidden = OsString::from(".");
                hidden.push(name);
                hidden.push(format!(".{}-{attempt}.part", process::id()));
                target.with_file_name(hidden)
            })
            .find(|path| fs::symlink_metadata(path).is_err())
            .expect("some name is free");
        Self { temporary, target, published: false }
    }

    /// Where the bytes go until [`publish`](Self::publish).
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the finished file its name.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when the target is there and `replace` is off. The
    /// target is unchanged after any error.
    pub(crate) fn publish(mut self, replace: bool) -> io::Result<()> {
        if replace {
            if let Ok(old) = fs::metadata(&self.target) {
                // The old copy goes now: the new one has to be on the disk.
                File::options().write(true).open(&self.temporary)?.sync_all()?;
                fs::set_permissions(&self.temporary, old.permissions())?;
            }
            fs::rename(&self.temporary, &self.target)?;
        } else {
            // A hard link is the one portable way to a name that fails when the name is taken.
            match fs::hard_link(&self.temporary, &self.target) {
                Ok(()) => fs::remove_file(&self.temporary)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                // A file system without hard links.
                Err(_) if fs::symlink_metadata(&self.target).is_err() => {
                    fs::rename(&self.temporary, &self.target)?;
                }
                Err(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            }
        }
        self.published = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // It may never have been created.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder for the test")
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).expect("the folder is there");
        entries.map(|entry| entry.expect("readable").file_name()).collect()
    }

    #[test]
    fn what_is_not_published_leaves_nothing() {
        let folder = folder();
        let staged = Staged::beside(&folder.path().join("x"));
        fs::write(staged.path(), b"half").expect("written");
        drop(staged);
        assert_eq!(names(folder.path()), Vec::<OsString>::new());
    }

    #[test]
    fn a_target_that_is_there_is_replaced_only_on_request() {
        let folder = folder();
        let target = folder.path().join("x");
        fs::write(&target, b"old").expect("written");

        let staged = Staged::beside(&target);
        fs::write(staged.path(), b"new").expect("written");
        let refused = staged.publish(false).expect_err("the target is there");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).expect("readable"), b"old");

        let staged = Staged::beside(&target);
        fs::write(staged.path(), b"new").expect("written");
        staged.publish(true).expect("replaced");
        assert_eq!(fs::read(&target).expect("readable"), b"new");
        assert_eq!(names(folder.path()), ["x"]);
    }
}
