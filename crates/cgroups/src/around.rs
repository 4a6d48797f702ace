//! The cgroups that hold this process, and where their limits are (cgroups(7)).

use std::path::{Path, PathBuf};

/// Where version 2 is mounted, alone or beside version 1.
const V2_MOUNTS: &[&str] = &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The folder of a cgroup, by the version that its files have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    V1(PathBuf),
    V2(PathBuf),
}

/// A controller.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) name: &'static str,
    /// Where version 1 of it may be mounted.
    pub(crate) v1_mounts: &'static [&'static str],
}

/// The folders of the cgroups that hold this process and may have this controller, and of all that they lie in: the limit of
/// each of them holds. `cgroups` is the text of `/proc/self/cgroup`: lines of `hierarchy:controllers:path`.
pub(crate) fn folders<'a>(cgroups: &'a str, controller: &'a Controller) -> impl Iterator<Item = Folder> + 'a {
    let lines = cgroups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    lines.flat_map(|(controllers, path)| match controllers {
        "" => on_the_way_up(V2_MOUNTS, path).map(Folder::V2).collect::<Vec<_>>(),
        _ if controllers.split(',').any(|name| name == controller.name) => {
            on_the_way_up(controller.v1_mounts, path).map(Folder::V1).collect()
        }
        _ => Vec::new(),
    })
}

/// The folders of a cgroup and all that it lies in. (In a container the path may be the host's; then only the mount itself,
/// the container's own cgroup, is there.)
fn on_the_way_up<'a>(mounts: &'a [&str], path: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    mounts.iter().flat_map(|mount| {
        let whole = Path::new(mount).join(path.trim_start_matches('/'));
        let folders = whole.ancestors().take_while(|folder| folder.starts_with(mount));
        folders.map(Path::to_owned).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: Controller = Controller { name: "cpu", v1_mounts: &["/cpu", "/cpu,cpuacct"] };

    fn folders_of(cgroups: &str) -> Vec<Folder> {
        folders(cgroups, &CPU).collect()
    }

    #[test]
    fn a_cgroup_and_all_that_it_lies_in() {
        let v1 = ["/cpu/a", "/cpu", "/cpu,cpuacct/a", "/cpu,cpuacct"].map(|path| Folder::V1(path.into()));
        assert_eq!(folders_of("2:memory:/a\n3:cpuset:/a\n4:cpu,cpuacct:/a\n"), v1);
        let v2 =
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"].map(|path| Folder::V2(path.into()));
        assert_eq!(folders_of("0::/a/b\n")[..3], v2);
        assert_eq!(folders_of("garbage"), []);
    }
}
