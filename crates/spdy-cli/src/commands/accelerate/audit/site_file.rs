//! `spdy accelerate audit -o FILE`: a configuration for the site of the page, which works when it is started, and the secret that it names.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anstyle::Style;
use anyhow::Context;
use spdy_accelerator::config_source::read_config;
use spdy_accelerator::origins::upstream_needs::UpstreamNeeds;
use spdy_accelerator::start_plan::StartPlan;
use spdy_lab::audit::advice::Advice;
use spdy_service::random;
use url::Url;

use super::host_entry::host_entry;
use crate::outcome::Usage;
use crate::output::{AtomicFile, BOLD, Printer, WARN, format_count};

/// The ending of the secret's file.
const SECRET: &str = "secret";
/// Random bytes of a secret. It is written with two digits a byte.
const SECRET_BYTES: usize = 32;

/// The files of a configuration, before they are written.
pub(super) struct SiteFile {
    path: PathBuf,
    file: AtomicFile,
}

/// What the configuration is made of.
pub(super) struct SiteFacts<'a> {
    /// URL of the page.
    pub(super) page: &'a Url,
    /// The hosts to list.
    pub(super) advice: &'a Advice,
    /// What `[upstream]` needs to reach them.
    pub(super) needs: &'a UpstreamNeeds,
    /// Address of the site's origin, if its name does not lead there.
    pub(super) address: Option<IpAddr>,
}

impl SiteFile {
    /// Reserves the file at `path`, before the work that fills it.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        if path.exists() {
            let path = path.display();
            return Err(Usage(format!(
                "{path} exists, and may have changes by hand: expected the name of a new file"
            ))
            .into());
        }
        if path.extension().is_some_and(|ending| ending == SECRET) {
            let path = path.display();
            return Err(Usage(format!(
                "{path} would be the name of the secret: expected another ending, such as .toml"
            ))
            .into());
        }
        let file = AtomicFile::create(path)?;
        // The secret's path is in the file, which may be read from another folder.
        let path = std::path::absolute(path);
        let path = path.context("cannot find the current folder")?;
        Ok(Self { path, file })
    }

    /// Writes the configuration and its secret, and checks that the accelerator accepts them.
    pub(super) fn write(self, facts: &SiteFacts<'_>, printer: &Printer) -> anyhow::Result<()> {
        let Self { path, file } = self;
        let secret = path.with_extension(SECRET);
        let is_new = write_secret(&secret)?;
        file.write(text(facts, &secret).as_bytes())?;
        let plan = read_config(&path).and_then(StartPlan::new);
        plan.with_context(|| format!("cannot use {}", path.display()))?;
        let what = match is_new {
            true => "new secret",
            false => "existing secret",
        };
        printer.note(format_args!(
            "configuration: {BOLD}{}{BOLD:#}, with the {what} {}",
            path.display(),
            secret.display()
        ));
        let unknown = facts.needs.resolve.values();
        let unknown = unknown.filter(|address| address.is_none()).count();
        if unknown > 0 {
            printer.note(format_args!(
                "{WARN}no address{WARN:#} of {} is known: set it in [upstream.resolve] if this machine's resolver does not find the name",
                format_count(unknown as u64, "host")
            ));
        }
        Ok(())
    }
}

/// Creates the secret at `path`, for the owner alone. Returns false if the file exists.
fn write_secret(path: &Path) -> anyhow::Result<bool> {
    let secret = random::bytes::<SECRET_BYTES>()?;
    let digits = secret.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let created = options.open(path);
    let written = created.and_then(|mut file| file.write_all(format!("{digits}\n").as_bytes()));
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot write {}", path.display())),
    }
}

/// `text` as a string of TOML: one of JSON is valid there too.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The configuration, with the secret in the file `secret`.
fn text(facts: &SiteFacts<'_>, secret: &Path) -> String {
    let SiteFacts {
        page,
        advice,
        needs,
        address,
    } = facts;
    let host = page.host_str().unwrap_or_default();
    let origin = page.origin().ascii_serialization();
    let mut text = format!(
        "# The accelerator in front of {origin}, from an audit of {page}\n\
         # `spdy accelerate schema` prints all keys, and `spdy accelerate FILE --check` checks the file.\n\n\
         # The secret in this file signs URLs of proxied resources. Keep it private, and the same on every machine of the site.\n\
         secret_file = {}\n\n\
         [listen]\n\
         tls = [\"127.0.0.1:8443\"]         # for all clients: \"0.0.0.0:443\", with a certificate in [tls] or [tls.acme]\n\n",
        toml_text(&secret.to_string_lossy())
    );
    if !needs.is_empty() {
        text.push_str("# Hosts that are not public.\n");
        text.push_str(&needs.toml());
        text.push('\n');
    }
    let _ = write!(text, "[[site]]\nnames = [{host:?}]\norigin = {origin:?}\n");
    match address {
        Some(address) => {
            let _ = writeln!(text, "address = \"{address}\"");
        }
        None => text.push_str(
            "# address = \"192.0.2.1\"         # of the origin, when its name leads to the accelerator\n",
        ),
    }
    if !advice.own_hosts.is_empty() {
        let _ = write!(
            text,
            "\n[site.rewrite]\n# Better than the entries for them: serve these hosts on the site's own address and certificate.\n# own_hosts = {:?}\n",
            advice.own_hosts
        );
    }
    for advised in &advice.hosts {
        text.push('\n');
        text.push_str(&host_entry(advised, Style::new()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_valid_string_of_toml() {
        for text in [
            "/a b/site.secret",
            "C:\\a\"b",
            "/Mu\u{308}ller/\u{1}\n\u{1f600}",
        ] {
            let table: toml::Table = toml::from_str(&format!("key = {}", toml_text(text))).unwrap();
            assert_eq!(table["key"].as_str(), Some(text));
        }
    }
}
