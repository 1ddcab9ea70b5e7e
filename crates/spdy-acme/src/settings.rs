//! The settings of an ACME authority and account, and the errors of its responses.

use instant_acme::Error;
use url::Url;

use crate::challenge::ChallengeMethod;
use crate::error::AcmeError;

/// The settings of an authority, and of our account there. The caller has read the authority's terms, and agreed.
#[derive(Clone)]
pub struct AcmeSettings {
    /// URL of its directory (RFC 8555 §7.1.1).
    pub directory: Url,
    /// Contact addresses, as URLs (`mailto:`); sent only when the account is created.
    pub contact: Vec<String>,
    /// Key ID and key of an existing account outside ACME (external account binding, §7.3.4).
    pub external_account: Option<(String, Vec<u8>)>,
    /// The certificate profile, if the authority has several.
    pub profile: Option<String>,
    /// How names are proven.
    pub way: ChallengeMethod,
}

impl std::fmt::Debug for AcmeSettings {
    /// Formats without the key of the account.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let account = self.external_account.as_ref().map(|(id, _)| id);
        f.debug_struct("Settings")
            .field("directory", &self.directory.as_str())
            .field("contact", &self.contact)
            .field("external_account", &account)
            .field("profile", &self.profile)
            .field("way", &self.way)
            .finish()
    }
}

/// The error of a failed request for `what`.
pub(crate) fn authority_error(
    settings: &AcmeSettings,
    what: &'static str,
    source: Error,
) -> AcmeError {
    let directory = settings.directory.to_string();
    match is_problem(&source, "accountDoesNotExist") {
        true => AcmeError::Account { directory },
        false => AcmeError::Authority {
            directory,
            what,
            source,
        },
    }
}

/// True if `error` is a problem of this kind (RFC 8555 §6.7).
pub(crate) fn is_problem(error: &Error, kind: &str) -> bool {
    let Error::Api(problem) = error else {
        return false;
    };
    let problem_type = problem.r#type.as_deref().unwrap_or_default();
    problem_type.strip_prefix("urn:ietf:params:acme:error:") == Some(kind)
}
