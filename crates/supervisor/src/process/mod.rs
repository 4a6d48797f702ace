//! The processes of an application, as they are held by the shell: [`mold`], [`worker_handle`], [`companion_handle`]; [`watcher`]: what is seen of them. [`boot_plan`] says where
//! and how a mold boots, with the Ruby of [`interpreter`], or that the folder is a static [`site`]. [`child`]: what a
//! process is started with. [`launcher`]: who starts, signals and reaps processes; [`reaper`]: this process, where it does, and
//! [`spawner_client`]: the spawner; [`mold_process`]: how a mold begins that it has started; [`companion_process`]: the process that runs a companion. [`identity`]: whether a process is who it claims to be.

pub(crate) mod boot_plan;
pub(crate) mod child;
pub(crate) mod companion_handle;
pub(crate) mod companion_process;
pub(crate) mod identity;
pub(crate) mod interpreter;
pub(crate) mod launcher;
pub(crate) mod mold;
pub(crate) mod mold_process;
pub(crate) mod reaper;
pub(crate) mod site;
pub(crate) mod spawner_client;
pub(crate) mod watcher;
pub(crate) mod worker_handle;
