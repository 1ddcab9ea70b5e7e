//! URLs for exec: which requests get one, and how often and how long its token is valid.

use std::sync::atomic::Ordering;

use spdy::upgrade::UpgradeError;
use spdy_cri::client::{self, Options};
use spdy_cri::{ClientError, Config, RequestError, StreamOptions};

use crate::support::{PIPES, TERMINAL, dial, exec, fake_runtime, post, runtime};

#[tokio::test]
async fn a_token_is_valid_once_and_for_one_verb() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let connect = |url: String| {
        let io = dial(&server);
        async move { client::exec(io, &post(&url), PIPES, Options::default(), runtime()).await }
    };
    connect(url.clone()).await.expect("the first time");
    let fresh = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let wrong_verb = fresh.replace("/exec/", "/attach/");
    for url in [
        url,
        wrong_verb,
        fresh,
        "http://runtime:1234/exec/guess".into(),
        "http://runtime:1234/".into(),
    ] {
        match connect(url.clone()).await {
            Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => {
                assert_eq!(status, 404, "{url}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
    assert_eq!(server.handler().started_count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    tokio::time::advance(Config::default().token_lifetime).await;
    let result = client::exec(
        dial(&server),
        &post(&url),
        PIPES,
        Options::default(),
        runtime(),
    )
    .await;
    assert!(
        matches!(
            result,
            Err(ClientError::Upgrade(UpgradeError::Refused { .. }))
        ),
        "{result:?}"
    );
}

#[tokio::test]
async fn invalid_or_too_many_requests_get_no_url() {
    let mut config = Config::default();
    config.max_tokens = 2;
    let server = fake_runtime(config);
    let none = StreamOptions::default();
    let both = StreamOptions {
        stderr: true,
        ..TERMINAL
    };
    assert_eq!(
        server.exec_url(exec(&["x"], none)),
        Err(RequestError::NoStreams)
    );
    assert_eq!(
        server.exec_url(exec(&["x"], both)),
        Err(RequestError::TerminalWithStderr)
    );
    assert_eq!(
        server.exec_url(exec(&[], PIPES)),
        Err(RequestError::NoCommand)
    );
    let mut nameless = exec(&["x"], PIPES);
    nameless.container.clear();
    assert_eq!(server.exec_url(nameless), Err(RequestError::MissingTarget));
    for _ in 0..2 {
        server.exec_url(exec(&["x"], PIPES)).expect("room");
    }
    assert_eq!(
        server.exec_url(exec(&["x"], PIPES)),
        Err(RequestError::TooMany { limit: 2 })
    );
}
