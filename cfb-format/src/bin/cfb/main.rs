//! The command `cfb`: lists, extracts, builds and changes compound files.
//!
//! One file a verb. Around them: [`escape`] (names for terminals and file
//! systems), [`lookup`] (a path as typed, to an entry), [`listing`] (what is
//! below an entry), [`import`] (a folder into a storage), [`copying`] (stream
//! bytes in and out), [`staged`] (files that appear whole or not at all),
//! [`progress`] and [`failure`].
//!
//! Standard output carries the result and nothing else. Everything said about
//! the work goes to standard error.

mod add;
mod cat;
mod check;
mod compact;
mod copying;
mod escape;
mod extract;
mod failure;
mod import;
mod info;
mod listing;
mod lookup;
mod ls;
mod mv;
mod pack;
mod progress;
mod repair;
mod rm;
mod show;
mod staged;
mod tree;

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use cfb_format::{CompoundFile, FindingCode, OpenOptions, Strictness};
use clap::{Parser, Subcommand};

use crate::failure::{Context, Failure, report, say};

/// A compound file on disk.
type Compound = CompoundFile<File>;

/// Looks into, builds and changes compound files: Office documents, installers, messages.
#[derive(Parser)]
#[command(name = "cfb", version, after_help = HELP)]
struct Cli {
    /// Refuse a file that breaks any rule of the format, instead of reading what can be read
    #[arg(long, global = true)]
    strict: bool,
    #[command(subcommand)]
    verb: Verb,
}

const HELP: &str = "\
Names:
  Characters that a terminal or a file system cannot carry are written %uXXXX, one
  UTF-16 unit each: %u0005SummaryInformation. Paths are given in the same form.

Exit codes:
  0  done
  1  done in part: something is damaged or was left out, standard error says what
  2  not done, or the command line is wrong

Examples:
  cfb tree report.doc
  cfb cat report.doc WordDocument > body.bin
  cfb extract report.doc --to report
  cfb pack report report.doc
  cfb check report.doc
  cfb repair report.doc -o saved.doc
  cfb compact --wipe report.doc";

#[derive(Subcommand)]
enum Verb {
    Ls(ls::Args),
    Tree(tree::Args),
    Cat(cat::Args),
    Extract(extract::Args),
    Pack(pack::Args),
    Add(add::Args),
    Rm(rm::Args),
    Mv(mv::Args),
    Info(info::Args),
    Check(check::Args),
    Repair(repair::Args),
    Compact(compact::Args),
}

/// How a verb ended, when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All of it is done.
    Done,
    /// Something was damaged or left out, and has been reported.
    Partial,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Partial) => ExitCode::from(1),
        // Whoever read our output has seen enough: `cfb ls x | head -1`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(2)
        }
    }
}

fn run(cli: Cli) -> Result<Outcome, Failure> {
    let strictness = if cli.strict { Strictness::Strict } else { Strictness::Tolerant };
    match cli.verb {
        Verb::Ls(args) => ls::run(&args, strictness),
        Verb::Tree(args) => tree::run(&args, strictness),
        Verb::Cat(args) => cat::run(&args, strictness),
        Verb::Extract(args) => extract::run(&args, strictness),
        Verb::Pack(args) => pack::run(&args),
        Verb::Add(args) => add::run(&args, strictness),
        Verb::Rm(args) => rm::run(&args, strictness),
        Verb::Mv(args) => mv::run(&args, strictness),
        Verb::Info(args) => info::run(&args, strictness),
        Verb::Check(args) => check::run(&args, strictness),
        Verb::Repair(args) => repair::run(&args),
        Verb::Compact(args) => compact::run(&args, strictness),
    }
}

/// Opens a file to read it.
fn open(path: &Path, strictness: Strictness) -> Result<Compound, Failure> {
    OpenOptions::new()
        .strictness(strictness)
        .open(path)
        .doing(|| format!("cannot open {}", show::path(path)))
}

/// Tells of damage to the directory, which a list of what is left would hide.
fn directory_damage(file: &Compound) -> Outcome {
    let findings = file.findings();
    let mut lost = findings.iter().filter(|finding| {
        use FindingCode::{DirChain, DirLink, DirLoop, DirUnusedReached};
        matches!(finding.code(), DirChain | DirLink | DirLoop | DirUnusedReached)
    });
    let Some(first) = lost.next() else { return Outcome::Done };
    let more = match lost.count() {
        0 => String::new(),
        more => format!(", and {more} more such"),
    };
    say(&format!("entries may be missing: {first}{more}"));
    Outcome::Partial
}

/// Opens a file to change it.
fn open_to_change(path: &Path, strictness: Strictness) -> Result<Compound, Failure> {
    OpenOptions::new()
        .strictness(strictness)
        .write(true)
        .open(path)
        .doing(|| format!("cannot open {} for writing", show::path(path)))
}
