//! What went wrong, as a chain: what was being done, then why it failed.

use std::error::Error;
use std::fmt;
use std::io::{self, BufWriter, Write};

use crate::escape;

/// Why a verb stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    doing: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    closed_pipe: bool,
}

impl Failure {
    /// A failure that needs no further cause.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { doing: text.into(), source: None, closed_pipe: false }
    }

    /// What was being done, and the error that ended it.
    pub(crate) fn because(
        doing: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { doing: doing.into(), source: Some(source.into()), closed_pipe: false }
    }

    /// Standard output did not take the result.
    pub(crate) fn stdout(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Self::because("cannot write to standard output", error) }
    }

    /// 1 if the store is in order and says no, or has found an object damaged; else 2.
    pub(crate) fn exit_code(&self) -> u8 {
        use fs_store::Error as E;
        let mut next: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = next {
            if let Some(
                E::NotFound { .. }
                | E::AlreadyExists { .. }
                | E::Conflict { .. }
                | E::Corrupt { .. },
            ) = error.downcast_ref()
            {
                return 1;
            }
            next = error.source();
        }
        2
    }

    /// Whether the reader of our standard output has gone away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.doing)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Says what was being done when a `Result` came out bad.
pub(crate) trait Context<T> {
    /// Wraps the error in a [`Failure`].
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for Result<T, E> {
    fn doing(self, doing: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure::because(doing(), error))
    }
}

/// The whole chain in one line, causes after colons.
///
/// Some errors repeat their cause in their own text; what is already said is
/// not said again.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// Writes one line about `error` to standard error.
pub(crate) fn report(error: &dyn Error) {
    say(&chain(error));
}

/// Writes one line to standard error. When even that is closed, nobody listens.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "fs-store: {}", escape::printable(text));
}

/// Hands `body` a buffered standard output and flushes it.
pub(crate) fn print(body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    body(&mut out).and_then(|()| out.flush()).map_err(Failure::stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_names_every_cause_once() {
        let inner = Failure::because("reading x", io::Error::other("disk on fire"));
        let outer = Failure::because("cannot open y", inner);
        assert_eq!(chain(&outer), "cannot open y: reading x: disk on fire");

        let repeats = Failure::because("reading x: disk on fire", io::Error::other("disk on fire"));
        assert_eq!(chain(&repeats), "reading x: disk on fire");
    }

    #[test]
    fn the_exit_code_is_that_of_the_cause() {
        let none = Failure::because("x", fs_store::Error::NotFound { key: Vec::new() });
        assert_eq!(Failure::because("y", none).exit_code(), 1);
        assert_eq!(Failure::because("y", fs_store::Error::Locked).exit_code(), 2);
        assert_eq!(Failure::new("y").exit_code(), 2);
    }

    #[test]
    fn only_a_closed_standard_output_counts_as_a_closed_pipe() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::stdout(closed()).is_closed_pipe());
        assert!(!Failure::because("writing", closed()).is_closed_pipe());
        assert!(!Failure::stdout(io::Error::from(io::ErrorKind::StorageFull)).is_closed_pipe());
    }
}
