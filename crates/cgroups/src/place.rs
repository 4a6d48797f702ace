//! Where this process's own cgroup is in the file system.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The folder of this process's cgroup; `None`: there is no version 2 of cgroups here, or this process cannot see its own.
///
/// # Errors
/// There is no `/proc`.
pub(crate) fn own() -> io::Result<Option<PathBuf>> {
    let (cgroups, mounts) =
        (fs::read_to_string("/proc/self/cgroup")?, fs::read_to_string("/proc/self/mountinfo")?);
    Ok(folder(&cgroups, &mounts))
}

/// `cgroups` is the text of `/proc/self/cgroup`, `mounts` the text of `/proc/self/mountinfo` (proc(5)).
fn folder(cgroups: &str, mounts: &str) -> Option<PathBuf> {
    let own = Path::new(cgroups.lines().find_map(|line| line.strip_prefix("0::"))?);
    // Outside of the namespace, or removed.
    if own.components().any(|part| part == Component::ParentDir)
        || own.to_string_lossy().ends_with(" (deleted)")
    {
        return None;
    }
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = own.strip_prefix(root).ok()?;
        kind.starts_with("cgroup2 ").then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: &str =
        "24 1 0:21 / /sys rw - sysfs sysfs rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
    const BESIDE: &str = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                          32 30 0:28 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_mount_and_the_path_make_the_folder() {
        let found = |cgroups, mounts| folder(cgroups, mounts).map(|found| found.display().to_string());
        let service = Some("/sys/fs/cgroup/system.slice/highball.service".into());
        assert_eq!(found("0::/system.slice/highball.service\n", ALONE), service);
        let unified = Some("/sys/fs/cgroup/unified/a".into());
        assert_eq!(found("4:memory:/b\n0::/a\n", BESIDE), unified);
        assert_eq!(found("0::/\n", ALONE), Some("/sys/fs/cgroup/".into()));
    }

    #[test]
    fn a_container_may_see_its_own_part_alone() {
        let mounts = "9 8 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(folder("0::/docker/abc/x\n", mounts), Some("/sys/fs/cgroup/x".into()));
        assert_eq!(folder("0::/docker/other\n", mounts), None);
        assert_eq!(folder("0::/../other\n", ALONE), None);
    }

    #[test]
    fn without_version_2_there_is_none() {
        assert_eq!(folder("4:memory:/b\n", BESIDE), None);
        assert_eq!(folder("0::/a\n", &BESIDE[..BESIDE.find('\n').unwrap()]), None);
        assert_eq!(folder("0::/a (deleted)\n", ALONE), None);
    }
}
