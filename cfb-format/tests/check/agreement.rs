//! The findings of `check` beside the codes that an audit by other means gave to each file of the corpus.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cfb_format::FindingCode;

use crate::facts::Facts;
use crate::rows::{ROWS, Row};

/// Reads every file of `index.tsv`, on two threads.
fn files(corpus: &std::path::Path) -> Vec<Facts> {
    let index = std::fs::read_to_string(corpus.join("index.tsv")).expect("index.tsv is there");
    let mut lines = index.lines();
    let head: Vec<&str> = lines.next().expect("a head").split('\t').collect();
    let column = |name| head.iter().position(|head| *head == name).expect("a column of the index");
    let (file, codes) = (column("file"), column("deviations"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    assert!(!rows.is_empty(), "index.tsv is empty");
    let next = AtomicUsize::new(0);
    let facts = Mutex::new(Vec::new());
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let read = Facts::of(&corpus.join("files"), row[file], row[codes]);
            facts.lock().expect("no panic under the lock").push(read);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let mut facts = facts.into_inner().expect("no panic under the lock");
    facts.sort_by(|a, b| a.name.cmp(&b.name));
    facts
}

/// One row's counts, and the files whose difference has no explanation.
#[derive(Default)]
struct Tally {
    both: usize,
    only_audit: usize,
    only_ours: usize,
    refused: usize,
    reasons: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    fn of(row: &Row, files: &[Facts]) -> Self {
        let mut tally = Self::default();
        for facts in files {
            let (audited, found) = (facts.audited(row.audit), facts.found(row.ours));
            let (count, classes) = match (audited, found) {
                (false, false) => continue,
                (true, true) => {
                    tally.both += 1;
                    continue;
                }
                (true, false) if facts.is_refused => {
                    tally.refused += 1;
                    continue;
                }
                (true, false) => (&mut tally.only_audit, row.only_audit),
                (false, true) => (&mut tally.only_ours, row.only_ours),
            };
            *count += 1;
            match classes.iter().find(|class| (class.is_it)(facts)) {
                Some(class) => *tally.reasons.entry(class.why).or_default() += 1,
                None => tally.unexplained.push(format!(
                    "{}: {:?} of the audit against {:?} here",
                    facts.name,
                    facts
                        .audit
                        .iter()
                        .filter(|code| row.audit.contains(&&***code))
                        .collect::<Vec<_>>(),
                    facts
                        .found_all()
                        .iter()
                        .filter(|code| row.ours.contains(code))
                        .collect::<Vec<_>>(),
                )),
            }
        }
        tally
    }
}

/// The row of the table in `CHECK.md`.
fn told(row: &Row, tally: &Tally) -> String {
    let names = |names: &[&str]| match names {
        [] => "—".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" "),
    };
    let why = tally.reasons.iter().fold(String::new(), |mut text, (why, count)| {
        let start = if text.is_empty() { "" } else { "; " };
        write!(text, "{start}{count}: {why}").expect("a string takes all");
        text
    });
    format!(
        "| {} | {} | {} | {} | {} | {} | {why} |",
        names(row.audit),
        names(row.ours),
        tally.both,
        tally.refused,
        tally.only_audit,
        tally.only_ours,
    )
}

#[test]
fn check_agrees_with_the_audit_but_for_differences_of_known_kinds() {
    let Some(corpus) = crate::corpus() else { return };
    let _others_may_run = crate::QUIET.read();
    let files = files(&corpus);
    let mut complaints = Vec::new();
    let audited: BTreeSet<&String> = files.iter().flat_map(|facts| &facts.audit).collect();
    let unknown =
        audited.iter().filter(|code| !ROWS.iter().any(|row| row.audit.contains(&&****code)));
    complaints.extend(unknown.map(|code| format!("{code} of the audit is in no row")));
    let (mut both, mut differing) = (0, 0);
    for row in ROWS {
        let tally = Tally::of(row, &files);
        println!("{}", told(row, &tally));
        both += tally.both;
        differing += tally.only_audit + tally.only_ours;
        complaints.extend(tally.unexplained);
    }
    let refused = files.iter().filter(|facts| facts.is_refused).count();
    println!("{} files, {refused} refused; {both} rows agree, {differing} differ", files.len());
    assert!(both > files.len() / 2, "{both} agreements in {} files", files.len());
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn every_code_of_check_is_in_one_row() {
    for code in FindingCode::ALL {
        let rows = ROWS.iter().filter(|row| row.ours.contains(&code.as_str())).count();
        // No file that opens lacks the signature; the range lock is beyond the sizes of the corpus.
        let never = matches!(code, FindingCode::HeaderSignature | FindingCode::RangeLock);
        assert_eq!(rows, usize::from(!never), "rows of {code}");
    }
}
