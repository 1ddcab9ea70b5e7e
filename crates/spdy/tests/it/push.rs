//! Pushes, from both ends.

use http::{Request, Response};
use spdy::server::PushForm;
use spdy::{Body, Error, Priority, RstStatus, Version, client, server};

use crate::support::{bytes_of, connect_to_service, get, pipe, runtime};

fn pushed(path: &str) -> Request<()> {
    Request::get(format!("http://example.org{path}"))
        .body(())
        .expect("valid")
}

#[tokio::test]
async fn a_push_is_announced_before_its_page() {
    for version in Version::ALL {
        for form in [PushForm::TwoBlocks, PushForm::VersionTwice] {
            push_before_the_page(version, form).await;
        }
    }
}

async fn push_before_the_page(version: Version, form: PushForm) {
    {
        let (near, far) = pipe();
        let runtime = runtime();
        let builder = server::Builder::new(version).push_form(form);
        let (mut accept, server_connection) = builder.handshake(far, runtime.clone());
        server_connection.spawn();
        let server = tokio::spawn(async move {
            let (request, responder) = accept
                .next()
                .await
                .expect("a stream")
                .into_request()
                .expect("a request");
            assert_eq!(request.uri().path(), "/page");
            let push = responder
                .push(&pushed("/style.css"), Priority::new(1))
                .expect("a push");
            let empty_push = responder
                .push(&pushed("/empty"), Priority::new(2))
                .expect("a push");
            assert!(matches!(
                push.push(&pushed("/deeper"), Priority::LOWEST),
                Err(Error::PushRefused { .. })
            ));
            responder
                .respond(Response::new(Body::full("page")))
                .await
                .expect("sent");
            let style = Response::builder().header("content-type", "text/css");
            push.respond(style.body(Body::full("body {}")).expect("valid"))
                .await
                .expect("sent");
            empty_push
                .respond(
                    Response::builder()
                        .status(204)
                        .body(Body::empty())
                        .expect("valid"),
                )
                .await
                .expect("sent");
            assert!(accept.next().await.is_none());
        });
        let builder = client::Builder::new(version);
        let (session, mut pushes, connection) = builder.handshake_with_pushes(near, runtime);
        connection.spawn();
        let page = session
            .request(get("/page"), Priority::HIGHEST)
            .await
            .expect("a response");
        let style = pushes.next().await.expect("announced before the page");
        assert_eq!(style.request().uri, "http://example.org/style.css");
        assert_eq!(style.associated_to().value(), 1);
        assert_eq!(style.id().value(), 2);
        assert_eq!(bytes_of(page).await, "page");
        let style = style.response().await.expect("a response");
        assert_eq!(style.headers()["content-type"], "text/css");
        assert_eq!(bytes_of(style).await, "body {}");
        let empty = pushes
            .next()
            .await
            .expect("a push")
            .response()
            .await
            .expect("a response");
        assert_eq!(empty.status(), 204);
        assert_eq!(bytes_of(empty).await, "");
        assert_eq!(session.active_streams(), 0, "{version}");
        drop(session);
        assert!(pushes.next().await.is_none());
        server.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_client_without_push_sends_a_limit_of_0() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            let pusher = request
                .extensions()
                .get::<server::Pusher>()
                .expect("a pusher");
            let error = pusher
                .push(&pushed("/style.css"), Priority::LOWEST)
                .expect_err("no push is allowed");
            assert!(
                matches!(error, Error::TooManyStreams { limit: 0 }),
                "{error}"
            );
            Response::new(Body::full("page"))
        });
    let page = session
        .request(get("/page"), Priority::HIGHEST)
        .await
        .expect("a response");
    assert_eq!(bytes_of(page).await, "page");
}

#[tokio::test]
async fn pushes_of_another_origin_are_refused_on_both_sides() {
    let (near, far) = pipe();
    let runtime = runtime();
    let builder = server::Builder::new(Version::V31).push_form(PushForm::TwoBlocks);
    let (mut accept, server_connection) = builder.handshake(far, runtime.clone());
    server_connection.spawn();
    let (session, mut pushes, connection) =
        client::Builder::new(Version::V31).handshake_with_pushes(near, runtime);
    connection.spawn();
    let request = session.request(get("/page"), Priority::HIGHEST);
    let (_, responder) = accept
        .next()
        .await
        .expect("a stream")
        .into_request()
        .expect("a request");
    for url in [
        "http://example.com/x",
        "https://example.org/x",
        "http://example.org:8080/x",
    ] {
        let foreign_request = Request::get(url).body(()).expect("valid");
        assert!(
            matches!(
                responder.push(&foreign_request, Priority::LOWEST),
                Err(Error::PushRefused { .. })
            ),
            "{url}"
        );
    }
    let later = responder
        .push(&pushed("/mine"), Priority::LOWEST)
        .expect("the same origin");
    responder
        .respond(Response::new(Body::empty()))
        .await
        .expect("sent");
    request.await.expect("a response");
    let push = pushes.next().await.expect("the push of the same origin");
    assert_eq!(push.request().uri.path(), "/mine");
    // Dropped untaken, it is cancelled, and the server's answer has no receiver.
    drop(push);
    let mut later = later;
    assert_eq!(
        later.wait_for_reset().await.reset_status(),
        Some(RstStatus::CANCEL)
    );
}

#[tokio::test]
async fn a_one_block_push_is_sent_before_the_page_ends() {
    for version in Version::ALL {
        let (near, far) = pipe();
        let runtime = runtime();
        let builder = server::Builder::new(version).push_form(PushForm::OneBlock);
        let (mut accept, server_connection) = builder.handshake(far, runtime.clone());
        server_connection.spawn();
        let (session, mut pushes, connection) =
            client::Builder::new(version).handshake_with_pushes(near, runtime);
        connection.spawn();
        let page = session.request(get("/page"), Priority::HIGHEST);
        let (request, responder) = accept.next().await.unwrap().into_request().unwrap();
        let dropped_push = responder.push(&pushed("/never"), Priority::LOWEST).unwrap();
        let late_push = responder.push(&pushed("/late"), Priority::LOWEST).unwrap();
        assert!(dropped_push.id().is_zero());
        drop(dropped_push); // it was never there
        let pusher = request.extensions().get::<server::Pusher>().unwrap();
        for (path, body) in [("/style.css", "body {}"), ("/empty", "")] {
            let response = Response::builder().header("content-type", "text/css");
            let response = response.body(Body::full(body)).unwrap();
            let rest = pusher.push_response(&pushed(path), Priority::new(2), response);
            rest.expect("a push").await.expect("sent");
        }
        responder
            .respond(Response::new(Body::full("page")))
            .await
            .unwrap();
        let result = late_push.respond(Response::new(Body::empty())).await;
        assert!(
            matches!(result, Err(Error::PushRefused { .. })),
            "{result:?}"
        );

        assert_eq!(bytes_of(page.await.unwrap()).await, "page");
        for (path, body) in [("/style.css", "body {}"), ("/empty", "")] {
            let push = pushes.next().await.expect("a push");
            assert_eq!(
                (push.request().uri.path(), push.associated_to().value()),
                (path, 1)
            );
            let response = push.response().await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/css");
            assert_eq!(bytes_of(response).await, body, "{version}");
        }
        assert_eq!(session.active_streams(), 0, "{version}");
    }
}
