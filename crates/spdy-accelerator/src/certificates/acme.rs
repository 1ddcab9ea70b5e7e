//! Certificates by ACME for `spdy accelerate`: starts the renewer, restarts it on configuration changes, and prints its events.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use data_encoding::BASE64URL_NOPAD;
use spdy::runtime::SharedRuntime;
use spdy_acme::acme_client::{AcmeClient as Authority, AcmeSettings};
use spdy_acme::certificates::{Certificates, ExternalCertificate};
use spdy_acme::challenge::{ChallengeMethod, Http01Tokens};
use spdy_acme::error::AcmeError;
use spdy_acme::renewer::{EventHandler, RenewalConfig, RenewalEvent, Renewer};
use spdy_acme::state_dir::StateDir;
use spdy_dns::zones::SharedZones;
use spdy_net::network::SystemNetwork;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::identities::{Fallback, Identities};
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::config::acme::{AcmeConfig, Challenge};
use spdy_proxy::sites::site_table::Sites;
use spdy_rewrite::rules::host_aliases::HostAlias;
use spdy_service::error::Usage;
use spdy_service::notice::Notices;
use spdy_service::random;
use tokio::sync::Notify;

use super::certificate_files::CertificateFiles;
use super::served_certificates::{self, ServedCertificates};
use super::time_text::{format_duration, format_time};

/// Maximum number of names in one certificate: the limit of Let's Encrypt.
const MAX_NAMES: usize = 100;

/// The certificates, with or without ACME.
pub(crate) struct Acme {
    /// The installed certificates.
    pub(crate) certificates: Certificates,
    /// Responses for http-01 challenges.
    pub(crate) tokens: Http01Tokens,
    /// The certificates from files.
    pub(crate) files: CertificateFiles,
    /// Notified when a certificate is issued.
    pub(crate) issued: Arc<Notify>,
    identities: Identities,
    zones: SharedZones,
    runtime: SharedRuntime,
    on_event: EventHandler,
    running: Option<(RenewerSettings, Renewer)>,
}

/// The settings that a renewer was started with.
#[derive(Debug, Eq, PartialEq)]
struct RenewerSettings {
    config: AcmeConfig,
    names: CertificateNames,
}

/// The names of certificates.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct CertificateNames {
    /// The names of each certificate.
    certificates: Vec<Vec<String>>,
    /// Aliases of other hosts: no site waits for them.
    foreign_names: BTreeSet<String>,
}

/// A checked change of certificates: applying it cannot fail.
pub(crate) struct CertificateUpdate {
    renewer: RenewerUpdate,
    rest: StaticCertificates,
}

/// What happens to the renewer on a reload.
enum RenewerUpdate {
    Stop,
    Keep,
    Start(Box<NewRenewer>),
}

/// A renewer that `commit` starts.
struct NewRenewer {
    settings: RenewerSettings,
    folder: StateDir,
    authority: Authority,
    seed: u64,
}

/// The certificates for names that have none issued by ACME.
pub(crate) struct StaticCertificates {
    fallback: Fallback,
    given: Vec<ExternalCertificate>,
    files: CertificateFiles,
}

/// The names of each certificate to order.
pub(crate) fn certificates(config: &Config, sites: &Sites) -> anyhow::Result<CertificateNames> {
    let certificates = match config.tls.acme {
        Some(_) => sites.certificate_names(),
        None => Vec::new(),
    };
    if let Some(names) = certificates.iter().find(|names| names.len() > MAX_NAMES) {
        let (first, found) = (&names[0], names.len());
        let reason = "tls.acme: expected at most";
        let reason =
            format!("{reason} {MAX_NAMES} names in the certificate of {first}, found {found}");
        return Err(Usage(reason).into());
    }
    Ok(CertificateNames {
        certificates,
        foreign_names: sites.alias_names().map(str::to_owned).collect(),
    })
}

/// Checks the files of `config` about the authority.
pub(crate) fn check_files(config: &Config) -> anyhow::Result<()> {
    config
        .tls
        .acme
        .as_ref()
        .map(AuthorityCredentials::of)
        .transpose()?;
    Ok(())
}

/// The TLS trust and the account for the authority, read from files.
struct AuthorityCredentials {
    tls: ClientTls,
    /// The ID of an external account, and its key.
    account: Option<(String, Vec<u8>)>,
}

impl AuthorityCredentials {
    fn of(acme: &AcmeConfig) -> anyhow::Result<Self> {
        let read = |path: &std::path::Path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let roots = match &acme.authority {
            Some(path) => {
                let (pem, what) = (read(path)?, path.display().to_string());
                Roots::SystemPlus(certificates_from_pem(&pem, &what)?)
            }
            None => Roots::System,
        };
        let trust = Trust {
            roots,
            ..Trust::default()
        };
        let account = acme.external_account.as_ref().map(|account| {
            let (text, path) = (read(&account.key_file)?, account.key_file.display());
            let key = BASE64URL_NOPAD.decode(text.trim_ascii());
            let key = key.map_err(|error| Usage(format!("{path}: expected base64url: {error}")))?;
            anyhow::Ok((account.id.clone(), key))
        });
        Ok(Self {
            tls: ClientTls::new(&trust, &TlsOptions::default())?,
            account: account.transpose()?,
        })
    }
}

impl Acme {
    /// Starts without certificates; issued ones are installed in `identities`.
    pub(crate) fn new(
        identities: &Identities,
        zones: &SharedZones,
        runtime: &SharedRuntime,
        notices: &Notices,
    ) -> Self {
        let notices = notices.clone();
        let issued = Arc::new(Notify::new());
        let notify = issued.clone();
        Self {
            certificates: Certificates::new(identities.clone()),
            tokens: Http01Tokens::default(),
            files: CertificateFiles::default(),
            issued,
            identities: identities.clone(),
            zones: zones.clone(),
            runtime: runtime.clone(),
            on_event: Arc::new(move |event: &RenewalEvent<'_>| {
                print_event(&notices, event);
                if matches!(event, RenewalEvent::Issued { .. }) {
                    notify.notify_one();
                }
            }),
            running: None,
        }
    }

    /// Does every step of `config` that can fail: a certificate for each of `names`, and `shown` for other names. A running renewal is not
    /// changed.
    pub(crate) fn prepare(
        &self,
        config: &Config,
        names: CertificateNames,
        shown: ServedCertificates,
    ) -> anyhow::Result<CertificateUpdate> {
        Ok(CertificateUpdate {
            renewer: self.prepare_renewer(config, names)?,
            rest: self.prepare_static(shown)?,
        })
    }

    /// Applies `prepared`. Unchanged settings keep their renewer.
    pub(crate) fn commit(&mut self, prepared: CertificateUpdate) {
        match prepared.renewer {
            RenewerUpdate::Keep => {}
            RenewerUpdate::Stop => {
                self.running = None;
                self.certificates.clear();
            }
            RenewerUpdate::Start(new_renewer) => {
                self.running = None; // before the next one starts with the same names
                let NewRenewer {
                    settings,
                    folder,
                    authority,
                    seed,
                } = *new_renewer;
                let renewer = Renewer::start(
                    &RenewalConfig {
                        certificates: settings.names.certificates.clone(),
                        optional_names: settings.names.foreign_names.clone(),
                        renew_at_percent_left: settings.config.renew_percent,
                        seed,
                    },
                    &self.certificates,
                    &folder,
                    Arc::new(authority),
                    (WallClock::System, &self.runtime),
                    &self.on_event,
                );
                self.running = Some((settings, renewer));
            }
        }
        self.install_static(prepared.rest);
    }

    /// Prepares `shown`. The expiry of certificates that are from files is reported.
    pub(crate) fn prepare_static(
        &self,
        shown: ServedCertificates,
    ) -> anyhow::Result<StaticCertificates> {
        let given: Result<_, _> = shown
            .of_files
            .pairs()
            .iter()
            .map(|pair| {
                self.certificates
                    .load_external(&pair.identity, pair.is_invalid)
            })
            .collect();
        let fallback = match &shown.fallback {
            served_certificates::Fallback::OfFile(identity) => {
                Fallback::One(self.identities.certify(identity)?)
            }
            served_certificates::Fallback::Local(local) => Fallback::Local(local.clone()),
        };
        Ok(StaticCertificates {
            fallback,
            given: given?,
            files: shown.of_files,
        })
    }

    /// Installs `rest`.
    pub(crate) fn install_static(&mut self, rest: StaticCertificates) {
        self.files = rest.files;
        self.identities.show_fallback(rest.fallback);
        self.certificates.set_external(rest.given);
    }

    /// The aliases of `sites` that browsers would refuse now: no installed certificate has them, so a self-signed one would be shown.
    pub(crate) fn uncertified(&self, sites: &Sites) -> BTreeSet<String> {
        if self.running.is_none() && self.files.pairs().is_empty() {
            return BTreeSet::new();
        }
        // If another program ends TLS, or none does, the certificates here do not decide which aliases pages use.
        let by_tls = sites
            .all()
            .filter(|site| site.rules.site().scheme() == "https");
        let named = by_tls.flat_map(|site| site.rules.aliases());
        let names = named.map(HostAlias::name);
        let refused = names.filter(|name| !self.certificates.has(name));
        refused.map(str::to_owned).collect()
    }

    fn prepare_renewer(
        &self,
        config: &Config,
        names: CertificateNames,
    ) -> anyhow::Result<RenewerUpdate> {
        let Some(acme) = &config.tls.acme else {
            return Ok(RenewerUpdate::Stop);
        };
        let settings = RenewerSettings {
            config: acme.clone(),
            names,
        };
        let running = self.running.as_ref();
        if running.is_some_and(|(started, _)| *started == settings) {
            return Ok(RenewerUpdate::Keep);
        }
        let folder = StateDir::open(&acme.folder, &acme.directory)
            .with_context(|| format!("tls.acme.folder {}", acme.folder.display()))?;
        Ok(RenewerUpdate::Start(Box::new(NewRenewer {
            authority: self.authority(acme, &folder)?,
            settings,
            folder,
            seed: u64::from_ne_bytes(random::bytes()?),
        })))
    }

    fn authority(&self, acme: &AcmeConfig, folder: &StateDir) -> anyhow::Result<Authority> {
        let AuthorityCredentials { tls, account } = AuthorityCredentials::of(acme)?;
        let settings = AcmeSettings {
            directory: acme.directory.clone(),
            contact: acme
                .contact
                .iter()
                .map(|address| format!("mailto:{address}"))
                .collect(),
            external_account: account,
            profile: acme.profile.clone(),
            way: match acme.challenge {
                Challenge::TlsAlpn01 => ChallengeMethod::TlsAlpn(self.identities.clone()),
                Challenge::Http01 => ChallengeMethod::Http(self.tokens.clone()),
                Challenge::Dns01 => ChallengeMethod::Dns(self.zones.clone()),
            },
        };
        Ok(Authority::new(
            settings,
            folder.clone(),
            tls,
            Arc::new(SystemNetwork),
            self.runtime.clone(),
        ))
    }
}

fn print_event(notices: &Notices, event: &RenewalEvent<'_>) {
    let names = |names: &[String]| names.join(", ");
    match event {
        RenewalEvent::Loaded {
            names: of,
            validity,
            due,
        } => notices.info(format_args!(
            "certificate for {}: valid until {}, renewal {}",
            names(of),
            format_time(validity.end),
            format_time(*due)
        )),
        RenewalEvent::Issued {
            names: of,
            validity,
            due,
        } => notices.highlight(
            "new certificate",
            format_args!(
                " for {}: valid until {}, renewal {}",
                names(of),
                format_time(validity.end),
                format_time(*due)
            ),
        ),
        RenewalEvent::Ordered {
            names: of,
            is_first,
        } => notices.info(format_args!(
            "ordering a certificate for {}{}",
            names(of),
            match is_first {
                true => "; until it is issued, a generated certificate is used",
                false => "",
            }
        )),
        RenewalEvent::Unusable { names: of, error } => notices.error(
            format_args!("the certificate for {} cannot be used", names(of)),
            format_args!(": {}", error_text(error)),
        ),
        RenewalEvent::SaveFailed { names: of, error } => notices.error(
            format_args!("cannot save the certificate for {}", names(of)),
            format_args!(
                ", so it is ordered again after a restart: {}",
                error_text(error)
            ),
        ),
        RenewalEvent::Failed {
            names: of,
            error,
            again,
            held,
        } => {
            let shown = match held {
                Some(until) => format!("the current one is valid until {}", format_time(*until)),
                None => "a generated one is used".to_owned(),
            };
            notices.error(
                format_args!("no certificate for {}", names(of)),
                format_args!(
                    ": {}; next attempt in {}; {shown}",
                    error_text(error),
                    format_duration(*again)
                ),
            );
        }
        other => tracing::debug!(?other, "certificate event"),
    }
}

/// The message on one line, without control characters: it contains text from the authority.
fn error_text(error: &AcmeError) -> String {
    error.to_string().replace(char::is_control, " ")
}
