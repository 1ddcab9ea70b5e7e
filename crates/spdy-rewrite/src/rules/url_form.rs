//! How moved URLs are written, before the path of what they lead to.
//!
//! ```text
//!  full      /.spdy/1/<cap>/<s|p>/<host>[~<port>]/<path>     urls/proxied_url.rs
//!  literal   /<host>/<path>                                  as in the paper that this follows (Mineki and others)
//! ```
//!
//! The literal form is for laboratories, where one is held against the other. It says neither scheme nor port, so these are those of
//! the entry that has the host, the first of several; it has no room for capabilities, so nothing is moved that needs one; and what the
//! site itself has below `/<host>/` is out of reach. What a request may have is judged alike in both.

use crate::rules::Rules;
use crate::rules::config::Scheme;
use crate::rules::error::RulesError;
use crate::urls::proxied_url::VERSION;

/// What stands for a capability where the host is listed.
pub(crate) const LISTED: &str = "-";

/// How moved URLs are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum UrlForm {
    #[default]
    Full,
    Literal,
}

impl Rules {
    /// The same with URLs in the literal form. Those in the full form are opened as before.
    ///
    /// # Errors
    ///
    /// [`RulesError::Literal`]: unlisted hosts are moved under capabilities.
    pub fn with_literal_urls(self) -> Result<Self, RulesError> {
        if self.discovers() {
            return Err(RulesError::Literal);
        }
        let tag = [self.tag(), "-literal"].concat();
        Ok(self.with_form(UrlForm::Literal, tag))
    }

    /// The part before the path of resources there under `capability`; `None` if the form cannot express it.
    pub(crate) fn head(
        &self,
        capability: &str,
        scheme: Scheme,
        host: &str,
        port: u16,
    ) -> Option<String> {
        match self.form {
            UrlForm::Full => {
                let (prefix, letter) = (self.prefix(), scheme.letter());
                let port = match port == scheme.default_port() {
                    true => String::new(),
                    false => format!("~{port}"),
                };
                Some(format!(
                    "{prefix}{VERSION}/{capability}/{letter}/{host}{port}"
                ))
            }
            UrlForm::Literal => {
                let is_said =
                    capability == LISTED && self.scheme_and_port(host) == Some((scheme, port));
                is_said.then(|| format!("/{host}"))
            }
        }
    }

    /// Host and target of a path and query in the literal form, if that is spoken and the host is listed.
    pub(crate) fn literal<'t>(&self, target: &'t str) -> Option<(&'t str, &'t str)> {
        let rest = target
            .strip_prefix('/')
            .filter(|_| self.form == UrlForm::Literal)?;
        let (host, target) = rest.split_at(rest.find('/')?);
        self.scheme_and_port(host).map(|_| (host, target))
    }

    /// The scheme and port of a listed host, for a URL without them.
    pub(crate) fn scheme_and_port(&self, host: &str) -> Option<(Scheme, u16)> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| !entry.is_alias() && entry.pattern.matches(host))?;
        Some((entry.scheme, entry.port))
    }
}
