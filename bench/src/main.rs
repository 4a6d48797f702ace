//! The program `highball-bench`, which `highball bench` runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    match highball_bench::command::run(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("highball: {failure}");
            ExitCode::FAILURE
        }
    }
}
