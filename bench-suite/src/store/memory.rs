//! Memory: each store in a process of its own, so that nobody else's shows.
//!
//! What counts is anonymous memory (`RssAnon`), which is the process's own.
//! Pages of mapped files come and go as the system likes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::contestant::{Entry, FileCount};
use super::data::{prefixed_key, value};
use super::measure::{Options, Seat};
use super::work::{grouped, million, size, streams};
use crate::report::table::{Bound, Table};

/// What a process of its own does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Task {
    /// Puts objects of 64 MiB in pieces; the highest memory while it does.
    Stream,
    /// Fills a store with very many objects; nothing is reported.
    Fill,
    /// Opens that store and gets an object; the memory then.
    Open,
}

/// Bytes of anonymous memory of this process.
fn anonymous_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Runs `work`; by how much memory grew at most while it ran.
fn highest(work: impl FnOnce()) -> u64 {
    let before = anonymous_bytes();
    let (top, done) = (AtomicU64::new(before), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                top.fetch_max(anonymous_bytes(), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        work();
        top.fetch_max(anonymous_bytes(), Ordering::Relaxed);
        done.store(true, Ordering::Relaxed);
    });
    top.into_inner() - before
}

/// What the process that was started for it does; prints bytes.
pub fn child(entry: &Entry, task: Task, count: usize, dir: &Path) {
    // The pool of values is there before memory is looked at.
    let _ = value(0, 1);
    let bytes = match task {
        Task::Stream => {
            let store = (entry.open)(dir);
            highest(|| {
                (0..count).for_each(|index| streams::put(&*store, index));
                store.sync();
            })
        }
        Task::Fill => {
            million::fill(&*(entry.open)(dir), count);
            0
        }
        Task::Open => {
            let before = anonymous_bytes();
            let store = (entry.open)(dir);
            let right = value(0, million::LEN);
            store.get(&prefixed_key(0), &mut |found| assert!(found == right, "{}", entry.name));
            anonymous_bytes().saturating_sub(before)
        }
    };
    println!("{bytes}");
}

/// Starts this program again for `task` and waits for its figure, in MiB.
fn in_child(entry: &Entry, task: Task, count: usize, dir: &Path) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let task = clap::ValueEnum::to_possible_value(&task).expect("every task has a name");
    let output = Command::new(program)
        .args(["--child", task.get_name(), entry.name, &count.to_string()])
        .arg(dir)
        .output()
        .expect("this program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} in a child: {errors}", entry.name);
    let bytes = String::from_utf8_lossy(&output.stdout).trim().parse::<u64>();
    bytes.expect("a number of bytes") as f64 / f64::from(1 << 20)
}

/// Measures and adds tables and their bounds.
pub fn measure(
    options: &Options,
    entries: &[Entry],
    (large, many): (usize, usize),
    tables: &mut Vec<Table>,
    bounds: &mut Vec<Bound>,
) {
    let name = "memory while streaming";
    if options.wants(name) {
        let what = format!("{large} x {} in {}", size(64 << 20), size(64 << 10));
        let mut table = Table::new(
            "Memory while streaming",
            &format!("How much anonymous memory grows at most while {what} are put, MiB."),
            &["store", "MiB"],
        );
        for entry in entries {
            options.say(&format!("{name}: {}", entry.name));
            let mut seat = Seat::new(*entry, &options.dir);
            seat.fresh();
            seat.close();
            let highest = in_child(entry, Task::Stream, large, seat.dir());
            table.row(vec![entry.name.into(), highest.into()]);
            if entry.ours {
                bounds.push(Bound::at_most(format!("{name}: MiB"), highest, 16.0));
            }
        }
        tables.push(table);
    }
    let name = "memory of an open store";
    if options.wants(name) {
        let note = format!(
            "Anonymous memory after opening a store of {} objects of {} B and getting one, MiB.",
            grouped(many),
            million::LEN
        );
        let mut table = Table::new("Memory of an open store", &note, &["store", "MiB"]);
        for entry in entries.iter().filter(|entry| entry.files == FileCount::Few) {
            options.say(&format!("{name}: {}", entry.name));
            let mut seat = Seat::new(*entry, &options.dir);
            seat.fresh();
            seat.close();
            in_child(entry, Task::Fill, many, seat.dir());
            let open = in_child(entry, Task::Open, many, seat.dir());
            table.row(vec![entry.name.into(), open.into()]);
            if entry.ours {
                bounds.push(Bound::at_most(format!("{name}: MiB"), open, 64.0));
            }
        }
        tables.push(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_used_for_a_moment_is_seen() {
        let grown = highest(|| {
            let block = vec![1_u8; 64 << 20];
            std::thread::sleep(Duration::from_millis(20));
            drop(block);
        });
        assert!(grown >= 60 << 20, "{grown} bytes");
    }
}
