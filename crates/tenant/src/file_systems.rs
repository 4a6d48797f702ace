//! File systems that hold no files of users: their content is made up by the kernel for the process that reads it, or
//! reading it does something. Their files look regular.
//!
//! This is a list of what is refused, and not of what is allowed. File systems for files are many (ext4, overlay, NFS,
//! and any that a user writes with FUSE), and a server must not refuse them. Those of the kernel are few, and can be
//! mounted by root alone. What is new among them is not refused before it is in this list, but is still opened with the
//! user's rights.

use rustix::fs::fstatfs;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// By their magic numbers (statfs(2), linux/magic.h).
const OF_THE_KERNEL: [(u32, &str); 30] = [
    (0x0000_9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0xcafe_4a11, "bpf"),
    (0x6165_676c, "pstore"),
    (0xde5e_81e4, "efivarfs"),
    (0x6265_6570, "configfs"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x5a3c_69f0, "apparmorfs"),
    (0x6e73_6673, "nsfs"),
    (0x5049_4446, "pidfs"),
    (0x0000_1cd1, "devpts"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x1980_0202, "mqueue"),
    (0x6573_5543, "fusectl"),
    (0x0765_5821, "resctrl"),
    (0xabba_1974, "xenfs"),
    (0x6759_6969, "rpc_pipefs"),
    (0x6e66_7364, "nfsd"),
    (0x0904_1934, "anon_inodefs"),
    (0x534f_434b, "sockfs"),
    (0x5049_5045, "pipefs"),
    (0x444d_4142, "dma-buf"),
    (0x5345_434d, "secretmem"),
    (0x0000_9fa1, "openprom"),
];

/// The number of the file system that something open is of. May wait for that file system.
#[allow(clippy::unnecessary_cast)] // the type of the number differs between platforms
pub(crate) fn magic_of(descriptor: impl AsFd) -> Result<u32, Errno> {
    Ok(fstatfs(descriptor)?.f_type as u32)
}

/// The name of the kernel's file system with this number; `None` for others.
pub(crate) fn of_the_kernel(magic: u32) -> Option<&'static str> {
    OF_THE_KERNEL.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}
