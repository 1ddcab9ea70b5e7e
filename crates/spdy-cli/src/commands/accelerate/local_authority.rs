//! Where the certificate of the local authority is kept if the configuration names no file: in the user's data folder, so that a browser
//! that trusts it once trusts it after each start.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_proxy::config::Config;

/// The file of the certificate; its key is beside it.
const FILE: &str = "ca.pem";

/// Sets the authority's file in `config`, if the accelerator shows certificates of the local authority and `config` has none.
///
/// If the folder or its files cannot be used, the authority is kept in memory and is new at each start.
pub(super) fn set_default(config: &mut Config) {
    let tls = &config.tls;
    let is_local = tls.files().next().is_none() && tls.acme.is_none();
    if is_local && tls.write_authority.is_none() && !config.listen.tls().is_empty() {
        let folder = folder(|name| env::var_os(name).map(PathBuf::from));
        let folder = folder.filter(|folder| create_folder(folder));
        let file = folder.map(|folder| folder.join(FILE));
        // A file that cannot be used must not prevent a start.
        let is_usable = |file: &PathBuf| LocalCa::load_or_create(file, KeyKind::EcdsaP256).is_ok();
        config.tls.write_authority = file.filter(is_usable);
    }
}

/// The folder for lasting files of the user, by the variables of the environment (XDG Base Directory Specification).
fn folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME");
    let data = data.or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("spdy"))
}

/// Creates `folder`, for the user alone, if it does not exist. Returns whether it exists then.
fn create_folder(folder: &Path) -> bool {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_users_data_folder() {
        let of = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(key, _)| *key == name);
            folder(|name| find(name).map(|(_, value)| PathBuf::from(value)))
        };
        let home = ("HOME", "/home/u");
        assert_eq!(of(&[home]), Some("/home/u/.local/share/spdy".into()));
        let xdg = ("XDG_DATA_HOME", "/data");
        assert_eq!(of(&[home, xdg]), Some("/data/spdy".into()));
        // Relative paths are invalid by the specification.
        assert_eq!(of(&[home, ("XDG_DATA_HOME", "data")]), of(&[home]));
        assert_eq!(of(&[]), None);
    }
}
