//! Writes the sample results of the tests in every form into a folder, to look at:
//! `cargo run -p highball-bench --example sample_report FOLDER`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use highball_bench::report;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&folder)?;
    let results = sample::results();
    for (name, text) in [
        ("sample.txt", report::table(&results)),
        ("sample.json", report::json(&results)),
        ("sample.md", report::markdown(&results)),
        ("sample.html", report::html(&results)),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    println!(
        "{} measurements of {} schemes: {}",
        results.samples.len(),
        results.schemes.len(),
        folder.display()
    );
    Ok(())
}
