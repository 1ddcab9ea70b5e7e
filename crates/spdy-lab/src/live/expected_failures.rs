//! Requests of a page that failed when it was recorded. They fail again behind the link, and do not make a load invalid.

use std::collections::BTreeSet;

use http::Uri;
use spdy_page::head;
use spdy_page::observation::Failure;
use spdy_page::replica::Replica;
use url::Url;

/// Chromium's error for a name without an address.
const UNRESOLVED: &str = "net::ERR_NAME_NOT_RESOLVED";

/// The failures in a replica. Schemes are not compared, because a load by `https` changes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedFailures {
    /// Method, authority and target.
    requests: BTreeSet<(String, String, String)>,
    /// Names without an address and without a recorded exchange.
    unresolved_names: BTreeSet<String>,
}

impl ExpectedFailures {
    pub(crate) fn of(replica: &Replica) -> Self {
        let failures = replica.failures.iter();
        let failures = failures.filter_map(|it| Some((it, Url::parse(&it.url).ok()?)));
        let mut expected = Self::default();
        for (failure, url) in failures {
            if let Some(name) = url.domain().filter(|_| failure.error == UNRESOLVED) {
                expected.unresolved_names.insert(name.to_owned());
            }
            let request = (
                failure.method.clone(),
                head::authority(&url),
                head::target(&url),
            );
            expected.requests.insert(request);
        }
        for exchange in &replica.exchanges {
            if let Some(name) = exchange.url.domain() {
                expected.unresolved_names.remove(name);
            }
        }
        expected
    }

    /// True if `failure` is expected: the same request, or another for a name without an address (scripts create URLs with the
    /// current time).
    pub(crate) fn has(&self, failure: &Failure) -> bool {
        let Ok(url) = Url::parse(&failure.url) else {
            return false;
        };
        let is_dead = || {
            url.domain()
                .is_some_and(|it| self.unresolved_names.contains(it))
        };
        self.has_request(&failure.method, head::authority(&url), head::target(&url))
            || failure.error == UNRESOLVED && is_dead()
    }

    /// True if a request for `uri`, which a server received, had no response in the recording.
    pub(crate) fn has_uri(&self, method: &http::Method, uri: &Uri) -> bool {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        self.has_request(method.as_str(), authority.to_owned(), target.to_owned())
    }

    fn has_request(&self, method: &str, authority: String, target: String) -> bool {
        self.requests
            .contains(&(method.to_owned(), authority, target))
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;

    fn failure(method: &str, url: &str, error: &str) -> Failure {
        Failure {
            method: method.to_owned(),
            url: url.to_owned(),
            error: error.to_owned(),
            started: None,
        }
    }

    #[test]
    fn only_recorded_failures_are_expected() {
        let mut replica = builtin::portal();
        let refused = "net::ERR_CONNECTION_REFUSED";
        replica.failures = vec![
            failure("GET", "http://dead.test/x.js?1", UNRESOLVED),
            failure("GET", "http://www.portal.test/refused?a#b", refused),
            failure("GET", "http://www.portal.test/once", UNRESOLVED),
        ];
        let expected = ExpectedFailures::of(&replica);
        for (method, url, error, is_expected) in [
            ("GET", "http://dead.test/x.js?1", UNRESOLVED, true),
            ("GET", "https://dead.test/x.js?1", refused, true),
            ("GET", "https://dead.test/x.js?2", UNRESOLVED, true),
            ("POST", "https://dead.test/", UNRESOLVED, true),
            ("GET", "https://dead.test/x.js?2", refused, false),
            ("GET", "http://other.test/x.js?1", UNRESOLVED, false),
            ("GET", "https://www.portal.test/refused?a", refused, true),
            ("POST", "https://www.portal.test/refused?a", refused, false),
            ("GET", "https://www.portal.test/refused", refused, false),
            ("GET", "http://www.portal.test/logo", UNRESOLVED, false),
            ("GET", "no URL", UNRESOLVED, false),
        ] {
            assert_eq!(
                expected.has(&failure(method, url, error)),
                is_expected,
                "{method} {url} {error}"
            );
        }
        let fails =
            |uri: &'static str| expected.has_uri(&http::Method::GET, &Uri::from_static(uri));
        assert!(fails("https://www.portal.test/refused?a"));
        assert!(!fails("https://www.portal.test/refused"));
        assert!(!fails("/refused?a"), "the URL has a host");
    }
}
