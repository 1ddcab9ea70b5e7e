//! Finds the control group (version 2) of this program.

use std::io;
use std::path::{Path, PathBuf};

/// The folder of the control group of this process.
///
/// # Errors
///
/// `/proc` cannot be read, or no file system of version 2 is mounted.
pub(super) fn of_this_process() -> io::Result<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup")?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
    folder(&groups, &mounts).ok_or_else(|| {
        let reason = "no control group of version 2 is mounted";
        io::Error::new(io::ErrorKind::NotFound, reason)
    })
}

/// The folder of the group that `groups` (`/proc/PID/cgroup`) names, in a file system of `mounts` (`/proc/PID/mountinfo`).
fn folder(groups: &str, mounts: &str) -> Option<PathBuf> {
    // Version 2 has the number 0 and no controllers.
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        if !file_system.starts_with("cgroup2 ") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        let below = Path::new(group).strip_prefix(root).ok()?;
        Some(Path::new(mount_point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMD: &str = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn group_of_a_service_is_a_folder_below_the_mount() {
        let found = folder("0::/system.slice/spdy.service\n", SYSTEMD);
        assert_eq!(
            found.unwrap(),
            Path::new("/sys/fs/cgroup/system.slice/spdy.service")
        );
    }

    #[test]
    fn group_is_found_beside_groups_of_version_1() {
        let groups = "4:memory:/a\n1:cpu:/\n0::/\n";
        let mounts = "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            folder(groups, mounts).unwrap(),
            Path::new("/sys/fs/cgroup/unified")
        );
    }

    #[test]
    fn container_sees_only_a_part_of_the_tree() {
        let mounts = "30 25 0:26 /docker/1f /sys/fs/cgroup ro - cgroup2 cgroup ro\n";
        let found = folder("0::/docker/1f/web\n", mounts);
        assert_eq!(found.unwrap(), Path::new("/sys/fs/cgroup/web"));
        assert_eq!(folder("0::/docker/2a\n", mounts), None);
    }

    #[test]
    fn system_without_version_2_has_no_group() {
        assert_eq!(folder("1:cpu:/\n", SYSTEMD), None);
        assert_eq!(folder("0::/\n", ""), None);
    }
}
