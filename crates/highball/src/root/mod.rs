//! What is root's: `policy` (the process that stays root), `at_root` (requests to it), `openers` (processes that open files),
//! `certificate_watch` (files of certificates change), `confinement` (what the kernel denies the server where root has started
//! it), `by_chance` (applications that run as root although no user is configured).

pub(crate) mod at_root;
pub(crate) mod by_chance;
pub(crate) mod certificate_watch;
pub(crate) mod confinement;
mod openers;
pub(crate) mod policy;
