//! Certificates by ACME for `spdy accelerate`: who keeps them, anew when the configuration says otherwise, and what people are told.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use spdy::runtime::SharedRuntime;
use spdy_acme::authority::{Acme as Authority, Settings};
use spdy_acme::error::AcmeError;
use spdy_acme::folder::Folder;
use spdy_acme::keeper::{Certificates, Event, Keeper, Tell, Wanted};
use spdy_acme::proofs::{Tokens, Way};
use spdy_dns::zones::SharedZones;
use spdy_net::calendar::Calendar;
use spdy_net::certificates::{Identity, certificates_from_pem};
use spdy_net::identities::Identities;
use spdy_net::network::SystemNetwork;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_net::verify::{Roots, Trust};
use spdy_proxy::config::Config;
use spdy_proxy::config_acme::{AcmeConfig, Challenge};
use spdy_proxy::sites::Sites;

use crate::commands::Usage;
use crate::printer::{BAD, BOLD, DIM, Printer};

/// Names in one certificate: what Let's Encrypt takes.
const MAX_NAMES: usize = 100;
/// The last that dates of HTTP can tell: the end of 9999.
const LAST_HOUR: Duration = Duration::from_secs(253_402_300_799);

/// Certificates, whether there is anybody to give them or not.
pub(super) struct Acme {
    /// Those that are there.
    pub(super) certificates: Certificates,
    /// What is answered for http-01.
    pub(super) tokens: Tokens,
    identities: Identities,
    zones: SharedZones,
    runtime: SharedRuntime,
    tell: Tell,
    running: Option<(Started, Keeper)>,
}

/// What a keeper was started with.
#[derive(Debug, Eq, PartialEq)]
struct Started {
    config: AcmeConfig,
    certificates: Vec<Vec<String>>,
}

/// The names of each certificate, if each can be had.
pub(super) fn certificates(config: &Config, sites: &Sites) -> anyhow::Result<Vec<Vec<String>>> {
    let certificates = match config.tls.acme {
        Some(_) => sites.certificates(),
        None => Vec::new(),
    };
    if let Some(names) = certificates.iter().find(|names| names.len() > MAX_NAMES) {
        let (first, got) = (&names[0], names.len());
        let why = "tls.acme: want no more than";
        let why = format!("{why} {MAX_NAMES} names in the certificate of {first}, got {got}");
        return Err(Usage(why).into());
    }
    Ok(certificates)
}

impl Acme {
    /// Nothing yet; what comes is shown by `identities`.
    pub(super) fn new(
        identities: &Identities,
        zones: &SharedZones,
        runtime: &SharedRuntime,
        printer: &Printer,
    ) -> Self {
        let printer = printer.clone();
        Self {
            certificates: Certificates::new(identities.clone()),
            tokens: Tokens::default(),
            identities: identities.clone(),
            zones: zones.clone(),
            runtime: runtime.clone(),
            tell: Arc::new(move |event: &Event<'_>| tell(&printer, event)),
            running: None,
        }
    }

    /// Does as `config` says from now on, with a certificate for each of these: where all is as before, nothing changes.
    pub(super) fn apply(
        &mut self,
        config: &Config,
        certificates: Vec<Vec<String>>,
    ) -> anyhow::Result<()> {
        let Some(acme) = &config.tls.acme else {
            self.running = None;
            self.certificates.clear();
            return Ok(());
        };
        let wanted = Started {
            config: acme.clone(),
            certificates,
        };
        if self
            .running
            .as_ref()
            .is_some_and(|(started, _)| *started == wanted)
        {
            return Ok(());
        }
        let folder = Folder::open(&acme.folder, &acme.directory)
            .with_context(|| format!("tls.acme.folder {}", acme.folder.display()))?;
        let authority = self.authority(acme, &folder)?;
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("no chance: {error}"))?;
        self.running = None; // before another begins with the same names
        let keeper = Keeper::start(
            &Wanted {
                certificates: wanted.certificates.clone(),
                left_percent: acme.renew_percent,
                seed: u64::from_ne_bytes(seed),
            },
            &self.certificates,
            &folder,
            Arc::new(authority),
            (Calendar::System, &self.runtime),
            &self.tell,
        )?;
        self.running = Some((wanted, keeper));
        Ok(())
    }

    /// Shows `identity` for all names that there is nothing better for. If `config` has it out of a file, its end is told.
    pub(super) fn show_rest(&self, config: &Config, identity: &Identity) -> anyhow::Result<()> {
        self.identities.replace_fallback(identity)?;
        let given = config.tls.certificate.is_some().then_some(identity);
        Ok(self.certificates.tell_of(given)?)
    }

    fn authority(&self, acme: &AcmeConfig, folder: &Folder) -> anyhow::Result<Authority> {
        let read = |path: &std::path::Path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let roots = match &acme.authority {
            Some(path) => {
                let (pem, what) = (read(path)?, path.display().to_string());
                Roots::SystemAnd(certificates_from_pem(&pem, &what)?)
            }
            None => Roots::System,
        };
        let trust = Trust {
            roots,
            ..Trust::default()
        };
        let external_account = acme.external_account.as_ref().map(|account| {
            let (text, path) = (read(&account.key_file)?, account.key_file.display());
            let key = URL_SAFE_NO_PAD.decode(text.trim_ascii().trim_ascii_end());
            let key = key.map_err(|error| Usage(format!("{path}: want base64url: {error}")))?;
            anyhow::Ok((account.id.clone(), key))
        });
        let settings = Settings {
            directory: acme.directory.clone(),
            contact: acme
                .contact
                .iter()
                .map(|address| format!("mailto:{address}"))
                .collect(),
            external_account: external_account.transpose()?,
            profile: acme.profile.clone(),
            way: match acme.challenge {
                Challenge::TlsAlpn01 => Way::TlsAlpn(self.identities.clone()),
                Challenge::Http01 => Way::Http(self.tokens.clone()),
                Challenge::Dns01 => Way::Dns(self.zones.clone()),
            },
        };
        Ok(Authority::new(
            settings,
            folder.clone(),
            ClientTls::new(&trust, &TlsOptions::default())?,
            Arc::new(SystemNetwork),
            self.runtime.clone(),
        ))
    }
}

fn tell(printer: &Printer, event: &Event<'_>) {
    let names = |names: &[String]| names.join(", ");
    match event {
        Event::Found {
            names: of,
            validity,
            due,
        } => printer.note(format_args!(
            "{DIM}certificate for {}: until {}, renewed {}{DIM:#}",
            names(of),
            hour(validity.end),
            hour(*due)
        )),
        Event::Issued {
            names: of,
            validity,
            due,
        } => printer.note(format_args!(
            "{BOLD}new certificate{BOLD:#} for {}: until {}, renewed {}",
            names(of),
            hour(validity.end),
            hour(*due)
        )),
        Event::Ordered {
            names: of,
            is_first,
        } => printer.note(format_args!(
            "{DIM}ordering a certificate for {}{}{DIM:#}",
            names(of),
            match is_first {
                true => ": until it is there, one made on the spot is shown",
                false => "",
            }
        )),
        Event::Unusable { names: of, error } => printer.note(format_args!(
            "{BAD}the certificate for {} cannot be used{BAD:#}: {}",
            names(of),
            said(error)
        )),
        Event::Unkept { names: of, error } => printer.note(format_args!(
            "{BAD}the certificate for {} cannot be kept{BAD:#}, and is ordered again after a restart: {}",
            names(of),
            said(error)
        )),
        Event::Failed {
            names: of,
            error,
            again,
            held,
        } => {
            let shown = match held {
                Some(until) => format!("the one that is there is good until {}", hour(*until)),
                None => "one made on the spot is shown".to_owned(),
            };
            printer.note(format_args!(
                "{BAD}no certificate for {}{BAD:#}: {}; tried again in {}, {shown}",
                names(of),
                said(error),
                span(*again)
            ));
        }
        other => tracing::debug!(?other, "of a certificate"),
    }
}

/// On one line, and without what a terminal obeys: an authority's words are in it.
fn said(error: &AcmeError) -> String {
    error.to_string().replace(char::is_control, " ")
}

fn hour(at: SystemTime) -> String {
    httpdate::fmt_http_date(at.min(UNIX_EPOCH + LAST_HOUR))
}

fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
