//! Deploying an application: `config` prints configurations of other programs for it (`machines`: those for several machines),
//! `init` writes the files for it, `other_servers` knows files that Highball does not read.

pub(crate) mod config;
pub(crate) mod init;
mod machines;
pub(crate) mod other_servers;
