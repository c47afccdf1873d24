//! A bar on standard error for work that takes a while.

use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, report};

/// Work shorter than this shows no bar at all.
const PATIENCE: Duration = Duration::from_millis(400);

/// How far some work over bytes has come.
///
/// Draws only when standard error is a terminal, and only once the work has
/// lasted. Reports go through here, so that bar and text do not mix.
pub(crate) struct Progress {
    verb: &'static str,
    /// `None` when nobody knows, as of a pipe.
    total_bytes: Option<u64>,
    done_bytes: u64,
    started: Instant,
    may_draw: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(verb: &'static str, total_bytes: Option<u64>) -> Self {
        Self {
            verb,
            total_bytes,
            done_bytes: 0,
            started: Instant::now(),
            may_draw: io::stderr().is_terminal(),
            bar: None,
        }
    }

    /// A bar that never draws, for work whose result goes to the terminal itself.
    pub(crate) fn silent() -> Self {
        let mut progress = Self::new("", None);
        progress.may_draw = false;
        progress
    }

    /// `bytes` more are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.done_bytes = self.done_bytes.saturating_add(bytes);
        if self.bar.is_none() && self.may_draw && self.started.elapsed() >= PATIENCE {
            self.bar = Some(self.bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done_bytes);
        }
    }

    /// So many bytes are done, of so many.
    pub(crate) fn reach(&mut self, done_bytes: u64, total_bytes: u64) {
        self.total_bytes = Some(total_bytes);
        self.advance(done_bytes.saturating_sub(self.done_bytes));
    }

    /// One line about something that went wrong while the work goes on.
    pub(crate) fn report(&self, failure: &Failure) {
        match &self.bar {
            Some(bar) => bar.suspend(|| report(failure)),
            None => report(failure),
        }
    }

    fn bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(self.total_bytes, ProgressDrawTarget::stderr())
            .with_prefix(self.verb)
            .with_elapsed(self.started.elapsed());
        let template = if self.total_bytes.is_some() {
            "{prefix} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left"
        } else {
            "{prefix} {spinner} {bytes}  {bytes_per_sec}"
        };
        bar.set_style(ProgressStyle::with_template(template).expect("a template known to parse"));
        bar
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A source that tells how far it has come.
pub(crate) struct Watched<'a, R> {
    pub(crate) source: R,
    pub(crate) progress: &'a mut Progress,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buf)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}
