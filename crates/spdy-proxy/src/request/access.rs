//! Whether a client may make a request at all: over TLS only, from some addresses, at a limited rate, with a password. Checked before the
//! lookup in the cache.

use std::net::IpAddr;
use std::sync::Arc;

use http::request;
use spdy_clock::Instant;
use spdy_net::handler::RequestInfo;

use crate::passwords::basic_credentials::BasicCredentials;
use crate::passwords::password_file::PasswordFile;
use crate::request::client_origin::request_target;
use crate::request::rejection::RequestRejection;
use crate::sites::path_rules::Passwords;
use crate::sites::site::Site;

/// Checks the request with `head` for `authority`, which `client` made at `now`.
///
/// # Errors
///
/// The site is served over TLS only, or a rule of the path denies the request.
pub(crate) fn check(
    site: &Site,
    authority: &str,
    head: &request::Parts,
    client: Option<IpAddr>,
    now: Instant,
) -> Result<(), RequestRejection> {
    let target = request_target(head);
    let arrival = head.extensions.get::<RequestInfo>();
    if arrival.is_some_and(|arrival| !arrival.secure)
        && let Some(to) = site.https_url(authority, target)
    {
        return Err(RequestRejection::Insecure { to });
    }
    if site.named(authority).is_some() {
        return Ok(()); // an alias of another host has no paths of the site
    }
    site.paths.check_access(target, client, now)?;
    Ok(())
}

/// In the extensions of a request: its path needs a password, which is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeedsPassword;

/// The credentials that a client sent, and the files in which they must be right.
#[derive(Debug)]
pub(crate) struct CredentialCheck {
    pub(crate) credentials: BasicCredentials,
    pub(crate) files: Vec<Arc<PasswordFile>>,
    pub(crate) realm: String,
    /// Whether the origin gets them.
    pub(crate) is_forwarded: bool,
}

impl CredentialCheck {
    /// Whether they were verified before in each file.
    pub(crate) fn is_known(&self) -> bool {
        self.files.iter().all(|file| file.knows(&self.credentials))
    }
}

/// The credentials that the request with `head` for `authority` needs; `None` if it needs none.
///
/// # Errors
///
/// The request has none.
pub(crate) fn credentials(
    site: &Site,
    authority: &str,
    head: &request::Parts,
) -> Result<Option<CredentialCheck>, RequestRejection> {
    if site.named(authority).is_some() {
        return Ok(None); // as in `check`
    }
    let needed: Vec<Passwords> = site.paths.passwords(request_target(head));
    let Some(first) = needed.first() else {
        return Ok(None);
    };
    let realm = first.realm.clone().unwrap_or_else(|| site.name.clone());
    let Some(credentials) = BasicCredentials::of(&head.headers) else {
        return Err(RequestRejection::Credentials { realm });
    };
    Ok(Some(CredentialCheck {
        credentials,
        is_forwarded: needed.iter().all(|passwords| passwords.is_forwarded),
        files: needed.into_iter().map(|passwords| passwords.file).collect(),
        realm,
    }))
}
