//! A folder of the host into a storage.
//!
//! First a survey of the folder, then all entries, then the bytes: a name the
//! format cannot carry is met before anything large is read.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use cfb_format::{Error, Stream};

use crate::copying::Copier;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{Compound, escape, show};

/// A file or folder to take in.
struct Source {
    path: PathBuf,
    /// Below the storage that takes the folder, for the library.
    target: String,
    is_folder: bool,
}

/// What a folder holds.
pub(crate) struct Survey {
    sources: Vec<Source>,
    /// Of all files together.
    pub(crate) bytes: u64,
    /// What cannot be taken in, and why.
    pub(crate) problems: Vec<Failure>,
}

/// How a folder is read.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Take file names as they are, without undoing escapes.
    pub(crate) literal_names: bool,
    /// A file to pass over: the one being written.
    pub(crate) except: Option<&'a Path>,
}

impl Survey {
    /// Walks `folder`, names in order, so that equal folders make equal files.
    ///
    /// Links to files count as files. Links to folders are not followed, for
    /// they may lead back; they, pipes and devices are problems.
    pub(crate) fn of(folder: &Path, rules: Rules<'_>) -> Result<Self, Failure> {
        let mut survey = Self { sources: Vec::new(), bytes: 0, problems: Vec::new() };
        let mut pending = vec![(folder.to_owned(), String::new())];
        while let Some((folder, target)) = pending.pop() {
            if !target.is_empty() {
                let (path, target) = (folder.clone(), target.clone());
                survey.sources.push(Source { path, target, is_folder: true });
            }
            let mut folders = Vec::new();
            for path in entries(&folder)? {
                survey.look_at(path, &target, rules, &mut folders);
            }
            pending.extend(folders.into_iter().rev());
        }
        Ok(survey)
    }

    fn look_at(
        &mut self,
        path: PathBuf,
        parent: &str,
        rules: Rules<'_>,
        folders: &mut Vec<(PathBuf, String)>,
    ) {
        let problem = |why: &str| Failure::new(format!("{}: {why}", show::path(&path)));
        let Some(name) = entry_name(&path, rules.literal_names) else {
            self.problems.push(problem("its name cannot be stored"));
            return;
        };
        let target = if parent.is_empty() { name } else { format!("{parent}/{name}") };
        let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink());
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() && !is_link => folders.push((path, target)),
            Ok(meta) if meta.is_file() => {
                if rules.except.is_some_and(|except| is_same(&path, except)) {
                    return;
                }
                self.bytes += meta.len();
                self.sources.push(Source { path, target, is_folder: false });
            }
            Ok(_) if is_link => self.problems.push(problem("a link to something else than a file")),
            Ok(_) => self.problems.push(problem("neither a file nor a folder")),
            Err(error) => {
                let doing = format!("cannot look at {}", show::path(&path));
                self.problems.push(Failure::because(doing, error));
            }
        }
    }

    /// Makes an entry below `base` for each source; the streams are empty yet.
    ///
    /// A source without entry becomes a problem, and so does what is below it.
    pub(crate) fn make_entries(&mut self, file: &Compound, base: &str) -> Vec<Pending> {
        let mut pending = Vec::new();
        for source in std::mem::take(&mut self.sources) {
            let path =
                if base.is_empty() { source.target } else { format!("{base}/{}", source.target) };
            let made = if source.is_folder {
                file.create_storage(path.as_str()).map(|_| None)
            } else {
                file.create_new_stream(path.as_str()).map(Some)
            };
            match made {
                Ok(Some(stream)) => pending.push(Pending { path: source.path, stream }),
                Ok(None) => {}
                Err(error) => {
                    let doing = format!("cannot store {}", show::path(&source.path));
                    self.problems.push(match error {
                        // The name is in the path already.
                        Error::BadName { rule, .. } => Failure::because(doing, rule),
                        error => Failure::because(doing, error),
                    });
                }
            }
        }
        pending
    }
}

/// A file whose entry is made and whose bytes are still to come.
pub(crate) struct Pending {
    path: PathBuf,
    stream: Stream<File>,
}

impl Pending {
    /// Copies the bytes.
    pub(crate) fn fill(self, copier: &mut Copier, progress: &mut Progress) -> Result<(), Failure> {
        let doing = || format!("cannot store {}", show::path(&self.path));
        let mut source =
            File::open(&self.path).map_err(|error| Failure::because(doing(), error))?;
        copier
            .copy_in(&mut source, &self.stream, progress)
            .map_err(|failure| Failure::because(doing(), failure))?;
        Ok(())
    }
}

/// The paths in a folder, ordered by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let doing = || format!("cannot read the folder {}", show::path(folder));
    let mut paths = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .map_err(|error| Failure::because(doing(), error))?;
    paths.sort_unstable();
    Ok(paths)
}

/// The name for the entry of a file, if a path of the library can carry it.
pub(crate) fn entry_name(path: &Path, literal: bool) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name =
        if literal { name.to_owned() } else { String::from_utf16(&escape::units_of(name)).ok()? };
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

fn is_same(one: &Path, other: &Path) -> bool {
    // Names first: they differ nearly always, and cost nothing.
    one.file_name() == other.file_name()
        && match (fs::canonicalize(one), fs::canonicalize(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
}
