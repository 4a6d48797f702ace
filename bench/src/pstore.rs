//! `highball bench pstore`: Highball's PStore and Ruby's, side by side. They are Ruby, and so is what measures them
//! (`bench/pstore.rb`): this process becomes that program.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::data::data_folder;
use crate::options::Options;
use crate::Failure;

/// Returns only if that fails.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let script = data_folder()?.join("pstore.rb");
    let ruby = env::var_os("HIGHBALL_RUBY").unwrap_or_else(|| "ruby".into());
    let error = Command::new(&ruby)
        .arg(&script)
        .arg(options.time.as_secs().to_string())
        .arg(options.rounds.to_string())
        .exec();
    Err(Failure(format!("cannot run {} {}: {error}", ruby.to_string_lossy(), script.display())))
}
