//! Builds the request that a browser will send for a resource of a page: the same headers as for the page, without the cookies.

use std::sync::Arc;

use http::uri::Authority;
use http::{HeaderValue, Request, Uri, header, request};
use spdy_net::handler::RequestInfo;
use spdy_page::replica::Kind as PageKind;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::rules::host_aliases::HostAlias;

use crate::prefetch::accept_history::AcceptHistory;
use crate::request::client_origin::request_authority;
use crate::request::proxy_request::ProxyRequest;
use crate::sites::site::Site;

/// How a page loads a resource.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct LoadHints {
    /// The kind that the page states; `None` if it is derived from the path.
    pub(super) kind: Option<Kind>,
    pub(super) by_cors: bool,
    pub(super) referrer_scope: ReferrerScope,
}

impl LoadHints {
    /// From what the page states about the resource.
    pub(crate) fn from_page(kind: Option<PageKind>, by_cors: bool) -> Self {
        let kind = match kind {
            Some(PageKind::Stylesheet) => Some(Kind::Style),
            Some(PageKind::Script) => Some(Kind::Script),
            Some(PageKind::Font) => Some(Kind::Font),
            Some(PageKind::Image) => Some(Kind::Image),
            Some(PageKind::Media) => Some(Kind::Media),
            Some(PageKind::Document | PageKind::Fetch | PageKind::Other) | None => None,
        };
        Self {
            kind,
            by_cors,
            ..Self::default()
        }
    }
}

/// The request for `uri` that the client will send for the page that it requested as `page`.
pub(super) fn subresource_request(
    accept_history: &AcceptHistory,
    site: &Arc<Site>,
    page: &request::Parts,
    uri: &Uri,
    load: LoadHints,
) -> Option<ProxyRequest> {
    let target = uri.path_and_query()?.as_str();
    if site.paths.is_restricted(target) || site.paths.is_unstored(target) {
        return None; // not for every client, or useless before a client requests it
    }
    let mut head = Request::new(()).into_parts().0;
    head.uri.clone_from(uri);
    head.version = page.version;
    let page_origin = PrefetchOrigin::of(site, page, uri);
    if let Some(arrival) = page.extensions.get::<RequestInfo>() {
        head.extensions.insert(*arrival);
    }
    for name in [
        header::ACCEPT_ENCODING,
        header::ACCEPT_LANGUAGE,
        header::USER_AGENT,
    ] {
        if let Some(value) = page.headers.get(&name) {
            head.headers.insert(name, value.clone());
        }
    }
    let kind = load.kind.unwrap_or_else(|| kind_by_path(uri.path()));
    if let Some(accept) = accept_history.lookup(&page.headers, kind) {
        head.headers.insert(header::ACCEPT, accept);
    }
    let sends_referrer = match load.referrer_scope {
        ReferrerScope::None => false,
        ReferrerScope::SameSite => {
            !site.rules.is_proxied_target(uri.path()) && !page_origin.is_cross_origin
        }
        ReferrerScope::All => true,
    };
    if sends_referrer {
        let referer = HeaderValue::from_str(&format!("{}/", page_origin.origin)).ok()?;
        head.headers.insert(header::REFERER, referer);
    }
    let by_cors = load.by_cors || kind == Kind::Font;
    if by_cors && page_origin.is_cross_origin {
        let origin = HeaderValue::from_str(page_origin.origin).ok()?;
        head.headers.insert(header::ORIGIN, origin);
    }
    if page.headers.contains_key("sec-fetch-dest") {
        let destination = match kind {
            Kind::Style => "style",
            Kind::Script => "script",
            Kind::Font => "font",
            Kind::Image => "image",
            Kind::Media => "video",
            Kind::Document => "iframe",
            Kind::Worker => "worker",
        };
        let mode = match by_cors {
            true => "cors",
            false => "no-cors",
        };
        let headers = &mut head.headers;
        headers.insert("sec-fetch-dest", HeaderValue::from_static(destination));
        headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
        let site_relation = match page_origin.is_cross_origin {
            true => "cross-site",
            false => "same-origin",
        };
        headers.insert("sec-fetch-site", HeaderValue::from_static(site_relation));
    }
    ProxyRequest::read(site.clone(), page_origin.authority.to_owned(), head).ok()
}

/// How a browser requests a resource of a page.
struct PrefetchOrigin<'a> {
    /// The host that it contacts.
    authority: &'a str,
    /// The origin of the page.
    origin: &'a str,
    /// The page's origin differs from that of the resource.
    is_cross_origin: bool,
}

impl<'a> PrefetchOrigin<'a> {
    /// For `uri`, which the page that was requested as `page` references.
    fn of(site: &'a Site, page: &'a request::Parts, uri: &'a Uri) -> Self {
        let page_host = request_authority(page).unwrap_or(&site.name);
        let page_alias = site.named(page_host).map(HostAlias::origin);
        let authority = uri.authority().map(Authority::as_str);
        let alias = authority.and_then(|authority| Some((authority, site.named(authority)?)));
        Self {
            authority: alias.map_or(page_host, |(authority, _)| authority),
            origin: page_alias.unwrap_or(site.rules.site_origin()),
            is_cross_origin: alias.is_some_and(|(_, alias)| page_alias != Some(alias.origin())),
        }
    }
}

/// The kind by the path of a proxied resource, if nothing else states it.
pub(super) fn kind_by_path(path: &str) -> Kind {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "css" => Kind::Style,
        "js" | "mjs" => Kind::Script,
        "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
        "mp4" | "webm" | "mp3" | "ogg" => Kind::Media,
        _ => Kind::Image,
    }
}
