//! System calls that the server never makes. seccomp has them fail with EPERM.
//!
//! A list of what is denied, and not of what is allowed: which calls a process makes also depends on its C library and
//! the age of its kernel, and a call missing in the list would end a running server. What this list cannot know,
//! calls newer than it, does not exist for the server (ENOSYS, as on an older kernel): the C library then uses the
//! older ones. A denied call fails, and does not end the process: a mistake in the list costs a function, not all
//! clients.

use libc::*;
use rustix::process::getpid;
use seccompiler::{
    apply_filter_all_threads, sock_filter, BpfProgram, SeccompAction,
    SeccompCmpArgLen::Dword,
    SeccompCmpOp::{self, Eq, MaskedEq, Ne},
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Denied whatever their arguments are.
#[rustfmt::skip]
const DENIED: &[c_long] = &[
    // Running programs: the spawner does.
    SYS_execve, SYS_execveat,
    // Other processes: their memory, descriptors, priorities, and signals by other ways than kill(2).
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_process_mrelease, SYS_kcmp,
    SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_tkill,
    SYS_setpriority, SYS_ioprio_set, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_migrate_pages, SYS_move_pages,
    // Making sockets: the spawner and the kernel (accept) do. connect(2) could also use an existing socket.
    SYS_socket, SYS_connect, SYS_bind, SYS_listen,
    // Becoming another user, and having other rights.
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid,
    SYS_setgroups, SYS_capset, SYS_personality, SYS_setsid, SYS_setpgid,
    // File systems and namespaces.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
    SYS_open_tree, SYS_move_mount, SYS_mount_setattr, SYS_unshare, SYS_setns, SYS_name_to_handle_at,
    SYS_open_by_handle_at, SYS_quotactl, SYS_quotactl_fd, SYS_fanotify_init, SYS_fanotify_mark,
    // Who may do what with files: Landlock does not limit these.
    SYS_fchmodat, FCHMODAT2, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat, SYS_mknodat,
    // Objects that all processes of a user share.
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semctl, SYS_semtimedop, SYS_msgget, SYS_msgsnd,
    SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink, SYS_add_key, SYS_request_key, SYS_keyctl,
    // Parts of the kernel that are large and open to all users: flaws are found in them.
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_io_setup, SYS_io_submit, SYS_remap_file_pages, SYS_lookup_dcookie,
    // The machine.
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load, SYS_reboot,
    SYS_swapon, SYS_swapoff, SYS_syslog, SYS_acct, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime,
    SYS_adjtimex, SYS_sethostname, SYS_setdomainname, SYS_vhangup, SYS_nfsservctl,
];

/// As [`DENIED`]: older names that only this processor has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const DENIED_HERE: &[c_long] = &[
    SYS_fork, SYS_vfork, SYS_chmod, SYS_chown, SYS_lchown, SYS_mknod, SYS_utime, SYS_utimes, SYS_futimesat,
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib,
];
/// As [`DENIED`]: older names that only this processor has.
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[c_long] = &[];

/// The same on all processors, as all numbers from 424 on.
const FCHMODAT2: c_long = 452;
/// The newest call that was looked at for this list: of Linux 6.10.
const NEWEST: c_long = SYS_mseal;

/// An argument's number, and what it is compared with.
type Condition = (u8, SeccompCmpOp, u64);

/// Denied if these conditions hold for the arguments with these numbers. They have 32 bits, for the kernel as well.
fn denied_with(pid: u64) -> Vec<(c_long, Vec<Condition>)> {
    let flag = |flag: c_int| MaskedEq(flag as u32 as u64);
    let mut rules = vec![
        // Processes; threads may be started.
        (SYS_clone, vec![(0, flag(CLONE_THREAD), 0)]),
        // Signals to others. A process that aborts sends one to itself.
        (SYS_kill, vec![(0, Ne, pid)]),
        (SYS_tgkill, vec![(0, Ne, pid)]),
        (SYS_prlimit64, vec![(0, Ne, 0), (0, Ne, pid)]),
        // Pairs are connected for good, except datagram pairs, which can send to any address.
        (SYS_socketpair, vec![(0, Ne, AF_UNIX as u64)]),
        (SYS_socketpair, vec![(1, MaskedEq(0xf), SOCK_DGRAM as u64)]),
        (SYS_socketpair, vec![(1, MaskedEq(0xf), SOCK_RAW as u64)]),
        // A listening TCP socket that does not receive any more can connect (MSG_FASTOPEN).
        (SYS_shutdown, vec![(1, Ne, SHUT_WR as u64)]),
        // Memory with code that was not there at the start.
        (SYS_mmap, vec![(2, flag(PROT_EXEC), PROT_EXEC as u64)]),
        (SYS_mprotect, vec![(2, flag(PROT_EXEC), PROT_EXEC as u64)]),
        (SYS_pkey_mprotect, vec![(2, flag(PROT_EXEC), PROT_EXEC as u64)]),
    ];
    // Typing into the terminal that root has started the server from.
    rules.extend([TIOCSTI, TIOCSCTTY, TIOCLINUX].map(|request| (SYS_ioctl, vec![(1, Eq, request)])));
    rules
}

/// Denies them to all threads of this process, for good.
pub(super) fn deny() -> Result<(), String> {
    let filters = || -> Result<_, seccompiler::Error> { Ok([no_newer_calls(), filter()?]) };
    // The first one also has to allow what the second one needs.
    let apply =
        |filters: [BpfProgram; 2]| filters.iter().try_for_each(|filter| apply_filter_all_threads(filter));
    filters().and_then(apply).map_err(|error| error.to_string())
}

fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().chain(DENIED_HERE).map(|call| (*call, Vec::new())).collect();
    for (call, conditions) in denied_with(getpid().as_raw_pid() as u64) {
        let conditions = conditions
            .into_iter()
            .map(|(argument, operator, value)| SeccompCondition::new(argument, Dword, operator, value));
        rules.entry(call).or_default().push(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?);
    }
    let denied = SeccompAction::Errno(EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, denied, TargetArch::try_from(std::env::consts::ARCH)?)?
        .try_into()
}

/// ENOSYS for calls that are newer than this list, and for clone3(2), whose flags no filter can read: the C library then
/// starts threads by clone(2). It judges numbers of this processor's own calls; [`filter`] ends a process that makes
/// others (32-bit ones).
fn no_newer_calls() -> BpfProgram {
    let is = |code: u32, k: c_long, jt, jf| sock_filter { code: code as u16, jt, jf, k: k as u32 };
    let answer = |action: u32| is(BPF_RET | BPF_K, action as c_long, 0, 0);
    vec![
        is(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0), // the call's number
        is(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        is(BPF_JMP | BPF_JGT | BPF_K, NEWEST, 0, 1),
        answer(SECCOMP_RET_ERRNO | ENOSYS as u32),
        answer(SECCOMP_RET_ALLOW),
    ]
}
