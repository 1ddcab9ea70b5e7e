//! Runs the program as a user that is not root.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// A user and a group without a name. Not 65534 (`nobody`): the kernel shows that for IDs that a namespace does not map.
pub(crate) const UNPRIVILEGED_ID: u32 = 54_321;

/// The program as a user without privileges: the user that runs the tests, or `UNPRIVILEGED_ID` if that is root. It runs a copy in
/// `folder` that this user may execute.
pub(crate) fn unprivileged(folder: &Path, arguments: &[&str]) -> Command {
    let open = Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, open).expect("set the permissions");
    let program = folder.join("spdy");
    let binary = env!("CARGO_BIN_EXE_spdy");
    if !program.exists() {
        // Another process writes the copy. A process that another test starts now would inherit a descriptor of ours that is open
        // for writing, and the kernel does not execute a file while one exists ("Text file busy").
        let status = Command::new("install")
            .args(["-m", "755", binary])
            .arg(&program)
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "cannot copy the program to {}",
            program.display()
        );
    }
    let mut command = Command::new(program);
    command.args(arguments).env_remove("SPDY_LOG");
    let is_root = std::fs::metadata("/proc/self").expect("Linux").uid() == 0;
    if is_root {
        command
            .uid(UNPRIVILEGED_ID)
            .gid(UNPRIVILEGED_ID)
            .current_dir("/");
    }
    command
}
