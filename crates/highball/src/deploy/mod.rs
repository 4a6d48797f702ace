//! Deploying an application: `init` writes the files for it, `other_servers` knows files that Highball does not read.

pub(crate) mod init;
pub(crate) mod other_servers;
