//! The application's files, where a change of them asks for something: [`restart_file`] with [`source_files`] for a
//! restart, [`folder_state`] for another try at a boot that failed. [`folder_walk`] looks through a folder. All of it runs
//! aside from the loop (`shell/app_files.rs`).

pub(crate) mod folder_state;
pub(crate) mod folder_walk;
pub(crate) mod restart_file;
pub(crate) mod source_files;
