//! Stored pages whose policy, URL or resources change: which are fetched again, purged or removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use spdy_proxy::cache::purge::PurgeRequest;

use crate::support::cdn_site::{before, changing, html, other, own};
use crate::support::fields::FRESH;
use crate::support::{Origin, get, respond, send_request, until};

/// The body that the old policy had made went out under the new one.
#[tokio::test]
async fn policy_changed_by_304_triggers_refetch() {
    let other = other();
    let policies: [&[(&str, &str)]; 3] = [
        &[(
            "content-security-policy",
            "img-src 'self'; style-src 'self'",
        )],
        &[("cache-control", "max-age=0, no-transform")],
        &[("content-security-policy", "sandbox")],
    ];
    for policy in policies {
        let new = policy.to_vec();
        let own = changing(html(&other), move |nth| match nth {
            0 => vec![("cache-control", "max-age=0")],
            _ => new.clone(),
        });
        let proxy = before(&own, &other, "");
        let old = get(&proxy, "/", &[]).await;
        assert!(old.text().contains("/.spdy/1/"), "{}", old.text());
        until("it is kept", || proxy.cache.usage().2 > 0).await;
        let new = get(&proxy, "/", &[]).await;
        assert_eq!(new.status, StatusCode::OK);
        assert!(
            !new.text().contains("/.spdy/1/"),
            "{policy:?}: {}",
            new.text()
        );
        assert_eq!(own.times("/"), 3, "as it is known, and all of it");
    }
}

/// A 200 to HEAD under another policy made the page fresh that the old policy had made.
#[tokio::test]
async fn policy_changed_by_head_triggers_refetch() {
    let other = other();
    let own = changing(html(&other), |nth| match nth {
        0 => vec![("cache-control", "max-age=0")],
        _ => vec![FRESH, ("content-security-policy", "sandbox")],
    });
    let proxy = before(&own, &other, "");
    let old = get(&proxy, "/", &[]).await;
    assert!(old.text().contains("/.spdy/1/"), "{}", old.text());
    until("it is kept", || proxy.cache.usage().2 > 0).await;
    let head = send_request(&proxy, Method::HEAD, "/", &[], "").await;
    assert_eq!(head.field("content-security-policy"), "sandbox");
    let new = get(&proxy, "/", &[]).await;
    assert_eq!(new.field("content-security-policy"), "sandbox");
    assert!(!new.text().contains("/.spdy/1/"), "{}", new.text());
}

/// Regression: a purge by the URL that browsers see matched nothing, and reported success.
#[tokio::test]
async fn purge_by_original_url_removes_proxied_entry() {
    let (other, own) = (other(), own(String::new()));
    let proxy = before(&own, &other, "");
    let port = other.address.port();
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{port}/b.png");
    let purge = |wish: PurgeRequest| proxy.purge(&wish);
    let of = |target: &str| Some(format!("https://www.site.test{target}"));
    let wishes = [
        PurgeRequest {
            url: of(&proxied_path),
            ..Default::default()
        },
        PurgeRequest {
            prefix: of(&format!("/.spdy/1/-/p/cdn.test~{port}/")),
            ..Default::default()
        },
        PurgeRequest {
            url: Some(format!("http://cdn.test:{port}/b.png")),
            ..Default::default()
        },
    ];
    for (round, wish) in wishes.into_iter().enumerate() {
        get(&proxy, &proxied_path, &[]).await;
        until("it is kept", || proxy.cache.usage().2 == 1).await;
        assert_eq!(other.times("/b.png"), round + 1);
        purge(wish).expect("a valid value");
        assert_eq!(proxy.cache.usage().2, 0);
    }
    let own_unrewritten = PurgeRequest {
        url: of("/a.css?spdy=off"),
        ..Default::default()
    };
    get(&proxy, "/a.css", &[]).await;
    until("it is kept", || proxy.cache.usage().2 == 1).await;
    purge(own_unrewritten).expect("a valid value");
    assert_eq!(proxy.cache.usage().2, 0);
    for target in ["/.spdy/", "/.spdy/1/-/p/unlisted.test/b.png"] {
        let wish = PurgeRequest {
            prefix: of(target),
            ..Default::default()
        };
        let Err(reason) = purge(wish) else {
            panic!("{target} means nothing");
        };
        assert!(
            reason.contains("expected the URL of the host itself"),
            "{reason}"
        );
    }
}

/// It was served on, since what is not served of another host was not taken for its word.
#[tokio::test]
async fn third_party_404_removes_stored_response() {
    let count = Arc::new(AtomicUsize::new(0));
    let other = Origin::start(move |_| {
        let control = ("cache-control", "max-age=0, stale-while-revalidate=600");
        let mut picture = respond(&[("content-type", "image/png"), control], "a picture");
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            *picture.status_mut() = StatusCode::NOT_FOUND;
        }
        std::future::ready(picture)
    });
    let own = own(String::new());
    let proxy = before(&own, &other, "");
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{}/b.png", other.address.port());
    assert_eq!(get(&proxy, &proxied_path, &[]).await.text(), "a picture");
    until("it is kept", || proxy.cache.usage().2 == 1).await;
    get(&proxy, &proxied_path, &[]).await;
    until("its host's word is taken", || proxy.cache.usage().2 == 0).await;
    let response = get(&proxy, &proxied_path, &[]).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}
