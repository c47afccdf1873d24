//! Operations as data, and the tree that a file should then hold: entries by path, contents as bytes.

use std::collections::BTreeMap;
use std::fmt;

use cfb_format::{CompoundFile, Error, Storage, Stream, Uuid};

use crate::common::raw::pattern;

/// One operation. Paths start with a slash; names differ by more than case.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A stream of this content, new or instead of what it had.
    Write(String, u32, usize),
    /// Bytes at this place of a stream.
    WriteAt(String, usize, u32, usize),
    SetLen(String, usize),
    Storage(String),
    /// The second is a name.
    Rename(String, String),
    /// The second is a path.
    Move(String, String),
    /// The second is a path.
    Copy(String, String),
    Remove(String),
    RemoveAll(String),
    Class(String, u128),
    StateBits(String, u32),
    /// `flush` or `sync`, as the run has it.
    Commit,
    Flush,
    Sync,
    /// A commit, and the same content in a shorter file; with or without a wipe.
    Compact(bool),
    /// Back to the last commit.
    Revert,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path, _, len) => write!(f, "write {path} {len}"),
            Self::WriteAt(path, at, _, len) => write!(f, "write {path} at {at} {len}"),
            Self::SetLen(path, len) => write!(f, "set_len {path} {len}"),
            Self::Storage(path) => write!(f, "storage {path}"),
            Self::Rename(path, name) => write!(f, "rename {path} {name}"),
            Self::Move(path, to) => write!(f, "move {path} {to}"),
            Self::Copy(path, to) => write!(f, "copy {path} {to}"),
            Self::Remove(path) => write!(f, "remove {path}"),
            Self::RemoveAll(path) => write!(f, "remove_all {path}"),
            Self::Class(path, _) => write!(f, "clsid {path}"),
            Self::StateBits(path, _) => write!(f, "state bits {path}"),
            Self::Commit => f.write_str("commit"),
            Self::Flush => f.write_str("flush"),
            Self::Sync => f.write_str("sync"),
            Self::Compact(wipe) => write!(f, "compact, wipe {wipe}"),
            Self::Revert => f.write_str("revert"),
        }
    }
}

impl Step {
    pub(crate) const fn is_commit(&self) -> bool {
        matches!(self, Self::Commit | Self::Flush | Self::Sync | Self::Compact(_))
    }
}

/// An entry as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// `None` for a storage.
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) class: u128,
    pub(crate) state_bits: u32,
}

/// Every entry by its path; the root's is "/".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<String, Node>);

impl Tree {
    /// The root alone.
    pub(crate) fn new() -> Self {
        Self(BTreeMap::from([("/".to_owned(), Node::default())]))
    }

    fn content(&mut self, path: &str) -> &mut Vec<u8> {
        let node = self.0.entry(path.to_owned()).or_default();
        node.content.get_or_insert_default()
    }

    fn relocate(&mut self, from: &str, to: &str) {
        for path in self.below(from) {
            let node = self.0.remove(&path).expect("just listed");
            self.0.insert(format!("{to}{}", &path[from.len()..]), node);
        }
    }

    /// The entry and what is below it; of the root, only what is below it.
    fn below(&self, path: &str) -> Vec<String> {
        let inside = format!("{}/", path.trim_end_matches('/'));
        let within = |other: &&String| {
            other.as_str() != "/" && (other.as_str() == path || other.starts_with(&inside))
        };
        self.0.keys().filter(within).cloned().collect()
    }

    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Write(path, seed, len) => *self.content(path) = pattern(*seed, *len),
            Step::WriteAt(path, at, seed, len) => {
                let content = self.content(path);
                content.resize(content.len().max(at + len), 0);
                content[*at..at + len].copy_from_slice(&pattern(*seed, *len));
            }
            Step::SetLen(path, len) => self.content(path).resize(*len, 0),
            Step::Storage(path) => drop(self.0.insert(path.clone(), Node::default())),
            Step::Rename(path, name) => {
                let parent = &path[..path.rfind('/').expect("paths start with a slash")];
                self.relocate(path, &format!("{parent}/{name}"));
            }
            Step::Move(path, to) => self.relocate(path, to),
            Step::Copy(path, to) => {
                for inside in self.below(path) {
                    let node = self.0[&inside].clone();
                    self.0.insert(format!("{to}{}", &inside[path.len()..]), node);
                }
            }
            Step::Remove(path) => drop(self.0.remove(path)),
            Step::RemoveAll(path) => {
                for path in self.below(path) {
                    self.0.remove(&path);
                }
            }
            Step::Class(path, class) => self.0.get_mut(path).expect("there").class = *class,
            Step::StateBits(path, bits) => self.0.get_mut(path).expect("there").state_bits = *bits,
            Step::Commit | Step::Flush | Step::Sync | Step::Compact(_) | Step::Revert => {}
        }
    }

    /// What `file` has.
    pub(crate) fn of<S: Storage>(file: &CompoundFile<S>) -> Result<Self, Error> {
        let mut tree = Self::new();
        for entry in file.walk() {
            let content =
                if entry.is_stream() { Some(file.read_stream(entry.id())?) } else { None };
            let (class, state_bits) = (entry.clsid().as_u128(), entry.state_bits());
            tree.0.insert(entry.path().to_owned(), Node { content, class, state_bits });
        }
        Ok(tree)
    }

    /// What `file` has otherwise, if anything.
    pub(crate) fn difference<S: Storage>(&self, file: &CompoundFile<S>) -> Option<String> {
        let mut left = self.0.len();
        for entry in file.walk() {
            let path = entry.path();
            let Some(node) = self.0.get(path) else { return Some(format!("{path} is too many")) };
            left -= 1;
            if entry.is_stream() != node.content.is_some() {
                return Some(format!("{path} is of the other kind"));
            }
            if (entry.clsid(), entry.state_bits()) != (Uuid::from_u128(node.class), node.state_bits)
            {
                return Some(format!("{path} has another class or other state bits"));
            }
            let Some(content) = &node.content else { continue };
            match file.read_stream(entry.id()) {
                Err(error) => return Some(format!("{path} cannot be read: {error}")),
                Ok(found) if found.len() != content.len() => {
                    return Some(format!(
                        "{path} has {} bytes, not {}",
                        found.len(),
                        content.len()
                    ));
                }
                Ok(found) if found != *content => {
                    let at = found.iter().zip(content).position(|(a, b)| a != b);
                    return Some(format!("{path} differs from byte {} on", at.unwrap_or_default()));
                }
                Ok(_) => {}
            }
        }
        (left > 0).then(|| format!("{left} entries are missing"))
    }
}

/// Streams that stay open from one step to the next.
pub(crate) type Handles<S> = BTreeMap<String, Stream<S>>;

/// Does a step that is no commit to a file. Steps that write can be done again after an error.
///
/// # Errors
///
/// What the library says.
pub(crate) fn perform<S: Storage>(
    file: &CompoundFile<S>,
    held: Option<&mut Handles<S>>,
    step: &Step,
) -> Result<(), Error> {
    match (step, held) {
        (Step::WriteAt(path, ..) | Step::SetLen(path, _), Some(held)) => {
            if !held.contains_key(path) {
                held.insert(path.clone(), file.open_stream(path.as_str())?);
            }
            change(&held[path], step)
        }
        (Step::WriteAt(path, ..) | Step::SetLen(path, _), None) => {
            change(&file.open_stream(path.as_str())?, step)
        }
        (Step::Write(path, seed, len), _) => {
            file.write_stream(path.as_str(), &pattern(*seed, *len))
        }
        (Step::Storage(path), _) => file.create_storage(path).map(drop),
        (Step::Class(path, class), _) => file.set_clsid(path.as_str(), Uuid::from_u128(*class)),
        (Step::StateBits(path, bits), _) => file.set_state_bits(path.as_str(), *bits),
        (other, held) => {
            // Handles are kept by path.
            if let Some(held) = held {
                held.clear();
            }
            match other {
                Step::Rename(path, name) => file.rename(path.as_str(), name),
                Step::Move(path, to) => file.move_to(path.as_str(), to),
                Step::Copy(path, to) => {
                    // What was copied before an error stays.
                    if file.exists(to.as_str()) {
                        file.remove_all(to.as_str())?;
                    }
                    file.copy(path.as_str(), to).map(drop)
                }
                Step::Remove(path) => file.remove_stream(path.as_str()),
                Step::RemoveAll(path) => file.remove_all(path.as_str()),
                _ => unreachable!("the run commits and reverts"),
            }
        }
    }
}

fn change<S: Storage>(stream: &Stream<S>, step: &Step) -> Result<(), Error> {
    match step {
        Step::WriteAt(_, at, seed, len) => stream.write_at(&pattern(*seed, *len), *at as u64),
        Step::SetLen(_, len) => stream.set_len(*len as u64),
        _ => unreachable!("only these need a handle"),
    }
}
