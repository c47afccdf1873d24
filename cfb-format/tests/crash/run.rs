//! A run: steps done to a file on a simulated disk, with the states that its commits made and where in the disk's log
//! each of them became possible and certain.

use cfb_format::{CompactOptions, CompoundFile, Error, OpenOptions};

use super::disk::{Call, SimDisk};
use super::script::{Handles, Step, Tree, perform};

/// How a run commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Any order-keeping prefix of the calls may be what is left.
    Flush,
    /// Any subset of the calls since the last sync may be what is left.
    Sync,
}

/// One commit, as places in the disk's log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    /// From here on the disk may have the new state.
    pub(crate) from: usize,
    /// From here on it has; never, if the commit failed.
    pub(crate) to: Option<usize>,
}

/// A file on a disk, and the states it went through.
pub(crate) struct Run {
    pub(crate) base: Vec<u8>,
    pub(crate) disk: SimDisk,
    pub(crate) mode: Mode,
    file: Option<CompoundFile<SimDisk>>,
    held: Option<Handles<SimDisk>>,
    /// What memory should have.
    pub(crate) tree: Tree,
    /// The base, then one for each commit.
    pub(crate) states: Vec<Tree>,
    pub(crate) commits: Vec<Commit>,
}

impl Run {
    /// Opens a file that is safe on its disk. `held`: handles stay open between steps.
    pub(crate) fn new(base: &[u8], tree: &Tree, mode: Mode, held: bool) -> Self {
        let disk = SimDisk::new(base.to_vec());
        let options = OpenOptions::new().write(true);
        let file = options.open_storage(disk.clone()).expect("the base is a sound file");
        Self {
            base: base.to_vec(),
            disk,
            mode,
            file: Some(file),
            held: held.then(Handles::default),
            tree: tree.clone(),
            states: vec![tree.clone()],
            commits: Vec::new(),
        }
    }

    pub(crate) fn file(&self) -> &CompoundFile<SimDisk> {
        self.file.as_ref().expect("open until the run ends")
    }

    /// Does a step to the file and, where that works, to the tree.
    ///
    /// # Errors
    ///
    /// What the library says. A commit that failed after it tried the header counts as one that may be on the disk.
    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Error> {
        if *step == Step::Revert {
            return self.revert();
        }
        if !step.is_commit() {
            let file = self.file.as_ref().expect("open until the run ends");
            perform(file, self.held.as_mut(), step)?;
            self.tree.apply(step);
            return Ok(());
        }
        let from = self.disk.log_len();
        let sync = match step {
            Step::Commit => self.mode == Mode::Sync,
            other => *other == Step::Sync,
        };
        let result = match step {
            Step::Compact(wipe) => {
                let options = CompactOptions::new().wipe(*wipe).sync(self.mode == Mode::Sync);
                options.compact(self.file()).map(drop)
            }
            _ if sync => self.file().sync(),
            _ => self.file().flush(),
        };
        let to = match &result {
            Ok(()) => Some(self.disk.log_len()),
            Err(_) if self.disk.header_tried().is_some_and(|at| at >= from) => None,
            Err(_) => return result,
        };
        self.commits.push(Commit { from, to });
        self.states.push(self.tree.clone());
        result
    }

    /// Goes back to the last commit, or to what the disk has of one that failed.
    fn revert(&mut self) -> Result<(), Error> {
        self.file().revert()?;
        if let Some(held) = &mut self.held {
            held.clear();
        }
        let sure = self.commits.last().is_none_or(|commit| commit.to.is_some());
        let last = self.states.last().expect("the base at least");
        self.tree = if sure { last.clone() } else { Tree::of(self.file())? };
        Ok(())
    }

    /// Does all of `steps`, none of which may fail.
    pub(crate) fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.step(step).map_err(|error| format!("{step:?} fails: {error}"))?;
        }
        Ok(())
    }

    /// Drops every handle, the file's last, so that what is not committed yet may come to the disk.
    pub(crate) fn close_uncommitted(&mut self) {
        self.commits.push(Commit { from: self.disk.log_len(), to: None });
        self.states.push(self.tree.clone());
        self.close();
    }

    /// Drops every handle, the file's last.
    pub(crate) fn close(&mut self) {
        if let Some(held) = &mut self.held {
            held.clear();
        }
        self.file = None;
    }

    /// The states that the disk may have after the first `calls` calls of its log, the last of them perhaps in part;
    /// `sure` of them are known to be done.
    pub(crate) fn allowed(&self, sure: usize, calls: usize) -> std::ops::RangeInclusive<usize> {
        let done = |commit: &Commit| commit.to.is_some_and(|to| to <= sure);
        let least = self.commits.iter().rposition(done).map_or(0, |at| at + 1);
        let most =
            self.commits.iter().rposition(|commit| commit.from < calls).map_or(0, |at| at + 1);
        least..=most.max(least)
    }

    /// Like [`allowed`](Self::allowed), when the first `safe` calls end with a sync and `calls` of all may have happened.
    pub(crate) fn allowed_unsynced(
        &self,
        log: &[Call],
        safe: usize,
        calls: usize,
    ) -> std::ops::RangeInclusive<usize> {
        let done = |commit: &Commit| {
            let Some(to) = commit.to else { return false };
            let synced = (commit.from..to).rev().find(|&at| matches!(log[at], Call::Sync));
            to <= safe || synced.is_some_and(|at| at < safe)
        };
        let least = self.commits.iter().rposition(done).map_or(0, |at| at + 1);
        let most =
            self.commits.iter().rposition(|commit| commit.from < calls).map_or(0, |at| at + 1);
        least..=most.max(least)
    }
}
