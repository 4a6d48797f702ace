//! Whose a process is.

use std::fs;

/// The parent and the effective user id of a process, if it exists.
pub(crate) fn parent_and_uid_of(pid: i32) -> Option<(i32, u32)> {
    parent_and_uid(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn parent_and_uid(status: &str) -> Option<(i32, u32)> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let parent = field("PPid:")?.trim().parse().ok()?;
    let effective = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    Some((parent, effective))
}

/// The name of a user; `uid 33` where there is none.
pub(crate) fn user_name(uid: u32) -> String {
    highball_users::name_of(uid).unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_counts() {
        let status = "Name:\truby\nPPid:\t12\nTracerPid:\t0\nUid:\t0\t33\t33\t33\n";
        assert_eq!(parent_and_uid(status), Some((12, 33)));
        assert_eq!(parent_and_uid("Name:\truby\n"), None);
    }

    #[test]
    fn users_have_names_where_they_are_known() {
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(4_000_000_000), "uid 4000000000");
    }
}
