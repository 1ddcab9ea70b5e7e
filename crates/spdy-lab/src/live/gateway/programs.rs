//! Finds the programs of other servers: nginx in PATH or `sbin`, the others in the folder `interop` of the repository.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::experiment::server_program::ServerProgram;
use crate::live::gateway::error::GatewayError;

/// Folders in which Debian installs servers; PATH of a user does not have them.
const SERVER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];
/// The folder of our programs for other servers in the repository.
const INTEROP: &str = "interop";

const INSTALL_NGINX: &str = "install the Debian package nginx-light";
const INSTALL_INTEROP: &str =
    "run scripts/setup-peers in the repository, and this command in the same folder";

/// A program, and the arguments before its options.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// Checks that `server` is installed.
///
/// # Errors
///
/// [`GatewayError::Missing`].
pub fn check(server: ServerProgram) -> Result<(), GatewayError> {
    find(server).map(|_| ())
}

/// The program of `server`; `None` if that is ours.
pub(super) fn find(server: ServerProgram) -> Result<Option<Program>, GatewayError> {
    let path = env::var_os("PATH").unwrap_or_default();
    find_in(server, &path, Path::new(INTEROP))
}

/// [`find`] with this PATH and this folder `interop`.
fn find_in(
    server: ServerProgram,
    path: &OsStr,
    interop: &Path,
) -> Result<Option<Program>, GatewayError> {
    let missing = |what: String, install| GatewayError::Missing {
        server,
        what,
        install,
    };
    let in_path = |name: &str, others: &[&str], install| {
        let folders = env::split_paths(path).chain(others.iter().map(PathBuf::from));
        let found = folders
            .map(|folder| folder.join(name))
            .find(|program| program.is_file());
        found.ok_or_else(|| missing(format!("{name} in PATH"), install))
    };
    let part = |file: PathBuf| match file.exists() {
        true => Ok(file),
        false => Err(missing(file.display().to_string(), INSTALL_INTEROP)),
    };
    let java = |folder: &str, class: &str| {
        let target = interop.join(folder).join("target");
        let file = part(target.join("classpath.txt"))?;
        let classpath = fs::read_to_string(&file).map_err(|source| GatewayError::Start {
            server,
            what: file.display().to_string(),
            source,
        })?;
        let classes = part(target.join("classes"))?;
        let all = format!("{}:{}", classes.display(), classpath.trim());
        // The collector with the fewest threads: the cores are also those of the client and the link.
        let arguments = ["-XX:+UseSerialGC", "-cp", &all, class];
        Ok(Program {
            path: in_path("java", &[], INSTALL_INTEROP)?,
            arguments: arguments.map(OsString::from).into(),
        })
    };
    match server {
        ServerProgram::Ours => Ok(None),
        ServerProgram::Nginx => {
            let path = in_path("nginx", &SERVER_FOLDERS, INSTALL_NGINX)?;
            let arguments = Vec::new();
            Ok(Some(Program { path, arguments }))
        }
        ServerProgram::NodeSpdy => {
            let folder = interop.join("node-spdy");
            part(folder.join("node_modules/spdy"))?;
            let script = part(folder.join("gateway.js"))?;
            Ok(Some(Program {
                path: in_path("node", &[], INSTALL_INTEROP)?,
                // It uses deprecated functions of Node.js, which would be reported.
                arguments: vec!["--no-deprecation".into(), script.into()],
            }))
        }
        ServerProgram::Jetty => java("jvm", "spdy.interop.jetty.Gateway").map(Some),
        ServerProgram::Netty => java("netty", "spdy.interop.Gateway").map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        let folder = path.parent().expect("it has a folder");
        fs::create_dir_all(folder).expect("create a folder");
        fs::write(path, text).expect("write the file");
    }

    #[test]
    fn a_missing_part_of_a_server_is_named_with_how_to_install_it() {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = folder.path().join("bin");
        let find = |server| find_in(server, path.as_os_str(), folder.path());
        let message = |server| find(server).expect_err("it is missing").to_string();
        assert_eq!(find(ServerProgram::Ours).expect("ours"), None);
        let node = message(ServerProgram::NodeSpdy);
        for part in [
            "server=node-spdy: ",
            "node_modules/spdy was not found: run scripts/setup-peers",
        ] {
            assert!(node.contains(part), "{node}");
        }
        write(
            &folder
                .path()
                .join("node-spdy/node_modules/spdy/package.json"),
            "",
        );
        write(&folder.path().join("node-spdy/gateway.js"), "");
        let node = message(ServerProgram::NodeSpdy);
        assert!(node.contains("node in PATH was not found"), "{node}");
        write(&path.join("node"), "");
        let node = find(ServerProgram::NodeSpdy).expect("it is complete");
        assert_eq!(node.map(|node| node.path), Some(path.join("node")));
    }

    #[test]
    fn a_java_server_has_the_class_path_of_its_build() {
        let folder = tempfile::tempdir().expect("create a folder");
        let target = folder.path().join("netty/target");
        write(&target.join("classpath.txt"), "/a.jar:/b.jar\n");
        write(&target.join("classes/A.class"), "");
        write(&folder.path().join("bin/java"), "");
        let path = folder.path().join("bin").into_os_string();
        let netty = find_in(ServerProgram::Netty, &path, folder.path()).expect("it is complete");
        let arguments = netty.expect("another program").arguments;
        let classpath = format!("{}:/a.jar:/b.jar", target.join("classes").display());
        assert!(arguments.contains(&classpath.into()), "{arguments:?}");
    }
}
