//! What is root's: `policy` (the process that stays root), `reading` (of the configuration, by a
//! process of root's), `at_root` (requests to it), `openers` (processes that open files),
//! `certificate_watch` (files of certificates change), `confinement` (what the kernel denies the server where root has started
//! it), `by_chance` (applications that run as root although no user is configured).

pub(crate) mod at_root;
pub(crate) mod by_chance;
pub(crate) mod certificate_watch;
pub(crate) mod confinement;
pub(crate) mod openers;
pub(crate) mod policy;
pub(crate) mod reading;
