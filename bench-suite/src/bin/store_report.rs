//! Measures stores of blobs beside each other and beside plain calls in one
//! run and prints what is asked, what was measured and every figure.

use std::process::ExitCode;

use bench_suite::store::{command, contestant};

fn main() -> ExitCode {
    command::run(contestant::all())
}
