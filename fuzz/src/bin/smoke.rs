//! Runs the fuzz targets without libFuzzer, on any toolchain: every seed as it is, then mutants of the seeds for
//! some seconds. There is no coverage feedback; for that, `cargo fuzz run <target>`.
//!
//! `smoke [SECONDS] [TARGET...]`; an input that fails is kept in `artifacts/<target>/` and named. To replay inputs:
//! `smoke --replay TARGET FILE...`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sector_fuzz::{TARGETS, Target};

/// An input that takes longer hangs.
const HANG: Duration = Duration::from_secs(20);
/// Mutants do not grow past this.
const MAX_BYTES: usize = 64 << 10;

/// What is running now: since when, and on which input.
type Running = Arc<Mutex<Option<(Instant, &'static str, Vec<u8>)>>>;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--replay") {
        let target = target(&arguments[1]);
        for path in &arguments[2..] {
            (target.1)(&std::fs::read(path).expect("a file to replay"));
            println!("{}: {path} passes", target.0);
        }
        return ExitCode::SUCCESS;
    }
    let seconds = arguments.first().and_then(|first| first.parse().ok());
    if seconds.is_some() {
        arguments.remove(0);
    }
    let time = Duration::from_secs(seconds.unwrap_or(10));
    let targets: Vec<Target> = if arguments.is_empty() {
        TARGETS.to_vec()
    } else {
        arguments.iter().map(|name| target(name)).collect()
    };

    let running: Running = Arc::default();
    watch(Arc::clone(&running));
    let failed = targets.iter().filter(|target| !smoke(**target, time, &running)).count();
    println!("{} passed, {failed} failed", targets.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn target(name: &str) -> Target {
    let found = TARGETS.into_iter().find(|target| target.0 == name);
    found.unwrap_or_else(|| panic!("no target {name:?} among {:?}", TARGETS.map(|target| target.0)))
}

fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// Ends the process when one input takes too long, and keeps that input.
fn watch(running: Running) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = running.lock().expect("no panic under the lock").clone();
            if let Some((since, target, input)) = now.filter(|(since, ..)| since.elapsed() > HANG) {
                println!("{target}: {} after {:?}", keep(target, "hang", &input), since.elapsed());
                std::process::exit(1);
            }
        }
    });
}

/// All seeds of `target`, then mutants; false at the first that fails.
fn smoke(target: Target, time: Duration, running: &Running) -> bool {
    let (name, body) = target;
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder("seeds").join(name))
        .expect("every target has seeds")
        .map(|file| file.expect("an entry of the folder").path())
        .collect();
    paths.sort();
    for path in paths {
        seeds.push(std::fs::read(path).expect("a seed"));
    }
    let start = Instant::now();
    let mut random = Random(0x5EED_0000_0000_0001 ^ time.as_secs());
    let mut runs = 0usize;
    while runs < seeds.len() || start.elapsed() < time {
        let input = seeds.get(runs).cloned().unwrap_or_else(|| mutant(&seeds, &mut random));
        *running.lock().expect("no panic under the lock") =
            Some((Instant::now(), name, input.clone()));
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&input)));
        *running.lock().expect("no panic under the lock") = None;
        runs += 1;
        if outcome.is_err() {
            println!("{name}: {} at run {runs}", keep(name, "crash", &input));
            return false;
        }
    }
    println!("{name}: {runs} runs, {} seeds, {:?}", seeds.len(), start.elapsed());
    true
}

/// Writes an input that failed, and says how to run it again.
fn keep(target: &str, kind: &str, input: &[u8]) -> String {
    let folder = folder("artifacts").join(target);
    std::fs::create_dir_all(&folder).expect("artifacts can be written");
    let hash = input.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let path = folder.join(format!("{kind}-{hash:016x}"));
    std::fs::write(&path, input).expect("artifacts can be written");
    format!("{kind}, kept; again with: smoke --replay {target} {}", path.display())
}

/// A seed with some bytes, words or blocks changed.
fn mutant(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const WORDS: [u32; 12] = [
        0,
        1,
        2,
        3,
        63,
        64,
        0x7FFF_FFFF,
        0x8000_0000,
        0xFFFF_FFFA,
        0xFFFF_FFFD,
        0xFFFF_FFFE,
        0xFFFF_FFFF,
    ];
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        // Half of the changes hit the first sector, where a format has its header.
        let reach = if random.below(2) == 0 { data.len().min(512) } else { data.len() };
        let at = random.below(reach);
        match random.below(9) {
            0 if !data.is_empty() => data[at] ^= 1 << random.below(8),
            1 if !data.is_empty() => data[at] = random.below(256) as u8,
            2 | 3 if data.len() >= 4 => {
                // Formats keep their words aligned.
                let at = at.min(data.len() - 4) / 4 * 4;
                let word = if random.below(2) == 0 {
                    WORDS[random.below(12)]
                } else {
                    random.below(40) as u32
                };
                data[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
            4 => data.truncate(at),
            5 if data.len() < MAX_BYTES => {
                data.extend((0..random.below(600)).map(|_| random.below(256) as u8));
            }
            6 if !data.is_empty() => {
                // A block of the same data elsewhere.
                let len = random.below(128).min(data.len() - at);
                let to = random.below(data.len() - len + 1);
                data.copy_within(at..at + len, to);
            }
            7 => {
                // The end of another seed.
                let other = &seeds[random.below(seeds.len())];
                let keep = at.min(other.len());
                data.truncate(keep);
                data.extend_from_slice(&other[keep..]);
            }
            _ if data.len() < MAX_BYTES => {
                let fresh: Vec<u8> =
                    (0..random.below(24)).map(|_| random.below(256) as u8).collect();
                data.splice(at.min(data.len())..at.min(data.len()), fresh);
            }
            _ => {}
        }
    }
    data
}

/// Xorshift: the same runs on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}
