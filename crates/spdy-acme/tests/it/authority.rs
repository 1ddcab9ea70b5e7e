//! Authorities that refuse, send too much, never finish, or forgot our account. (One that signs: Pebble, in the program's end-to-end
//! tests.)

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{once, unfold};
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_acme::acme_client::{AcmeClient, AcmeSettings, Authority, ORDER_TIMEOUT, OrderFailure};
use spdy_acme::challenge::{ChallengeMethod, Http01Tokens};
use spdy_acme::error::AcmeError;
use spdy_acme::state_dir::StateDir;
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, TlsOptions};
use spdy_testkit::clock::Clock;
use tokio::task::JoinHandle;

const AT: &str = "http://acme.test";
const PENDING: &str = r#"{"status": "pending", "authorizations": ["http://acme.test/name"], "finalize": "http://acme.test/end"}"#;

/// Turns of all tasks in which the longest answer has come.
const LONG_ANSWER: usize = 10_000;

/// Path, status and text of one answer; `None`: as ever.
type Responses = dyn Fn(&str) -> Option<(u16, String)> + Send + Sync;

/// An authority that looks at no proof, and never sees one: orders stay as they are.
#[derive(Clone)]
struct Fake {
    otherwise: Arc<Responses>,
    requests: Arc<Mutex<Vec<String>>>,
    /// The response at this path arrives at one byte every 20 s, for ever.
    drips: Option<(&'static str, Clock)>,
    /// The first response at this path arrives when the latch is set.
    holds: Option<(&'static str, Latch)>,
}

impl Fake {
    fn responding_with(
        otherwise: impl Fn(&str) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        Self {
            otherwise: Arc::new(otherwise),
            requests: Arc::default(),
            drips: None,
            holds: None,
        }
    }

    fn request_count(&self, path: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|requested| *requested == path)
            .count()
    }
}

fn challenge(kind: &str, rest: &str) -> String {
    let url = format!("{AT}/challenge");
    format!(r#"{{"type": "{kind}", "url": "{url}", "token": "token", "status": "pending"{rest}}}"#)
}

fn authorization(status: &str, challenge: &str) -> String {
    let name = r#""identifier": {"type": "dns", "value": "a.test"}"#;
    format!(r#"{{{name}, "status": "{status}", "challenges": [{challenge}]}}"#)
}

fn problem(kind: &str) -> String {
    format!(r#"{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "so it is"}}"#)
}

/// A byte every 20 s, for ever.
fn dripping(clock: Clock) -> Body {
    Body::from_stream(unfold(clock, |clock| async move {
        clock
            .sleep_until(clock.now() + Duration::from_secs(20))
            .await;
        Some((Ok::<_, io::Error>(" ".into()), clock))
    }))
}

impl Handler for Fake {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let path = request.uri().path().to_owned();
        self.requests.lock().unwrap().push(path.clone());
        let (status, text) = (self.otherwise)(&path).unwrap_or_else(|| match path.as_str() {
            "/directory" => {
                let to = |name: &str| format!(r#""{name}": "{AT}/{name}""#);
                let all = ["newNonce", "newAccount", "newOrder"].map(to);
                (200, format!("{{{}}}", all.join(", ")))
            }
            "/newAccount" => (201, "{}".to_owned()),
            "/newOrder" => (201, PENDING.to_owned()),
            "/order" => (200, PENDING.to_owned()),
            "/name" => (200, authorization("pending", &challenge("http-01", ""))),
            "/challenge" => (200, challenge("http-01", "")),
            _ => (200, String::new()),
        });
        let location = match path.as_str() {
            "/newOrder" => "/order",
            _ => "/account",
        };
        let body = match (&self.drips, &self.holds) {
            (Some((at, clock)), _) if *at == path => dripping(clock.clone()),
            (_, Some((at, until))) if *at == path && self.request_count(at) == 1 => {
                let until = until.wait();
                Body::from_stream(Box::pin(once(async move {
                    until.await;
                    Ok::<_, io::Error>(text.into())
                })))
            }
            _ => Body::full(text),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in [
            ("replay-nonce", "nonce".to_owned()),
            ("location", format!("{AT}{location}")),
            ("retry-after", "3600".to_owned()),
        ] {
            let name: http::HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        Box::pin(std::future::ready(response))
    }
}

/// Every connection leads to it.
struct ToFake(Fake, SharedRuntime);

impl Network for ToFake {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![[127, 0, 0, 1].into()]) })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let (fake, runtime) = (self.0.clone(), self.1.clone());
        tokio::spawn(async move {
            let (options, stop) = (ServerOptions::default(), Latch::new());
            let protocols = [Protocol::Http1];
            let far = Box::new(far);
            serve_connection(
                far,
                Arc::new(fake),
                &protocols,
                None,
                &options,
                &runtime,
                &stop,
            )
            .await
        });
        Box::pin(async { Ok(Box::new(near) as BoxIo) })
    }
}

struct Shop {
    clock: Clock,
    fake: Fake,
    acme: AcmeClient,
    folder: StateDir,
    tokens: Http01Tokens,
    _dir: tempfile::TempDir,
}

impl Shop {
    fn with_authority(fake: Fake) -> Self {
        Self::at(Clock::default(), fake)
    }

    fn at(clock: Clock, fake: Fake) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = SharedRuntime::new(clock.clone());
        let tokens = Http01Tokens::default();
        let directory: url::Url = format!("{AT}/directory").parse().unwrap();
        let folder = StateDir::open(dir.path(), &directory).unwrap();
        let settings = AcmeSettings {
            directory,
            contact: Vec::new(),
            external_account: None,
            profile: None,
            way: ChallengeMethod::Http(tokens.clone()),
        };
        let mut options = TlsOptions::default();
        options.key_log = KeyLogTarget::Disabled;
        let tls = ClientTls::new(&Trust::default(), &options).unwrap();
        let network = Arc::new(ToFake(fake.clone(), runtime.clone()));
        Self {
            acme: AcmeClient::new(settings, folder.clone(), tls, network, runtime),
            clock,
            fake,
            folder,
            tokens,
            _dir: dir,
        }
    }

    /// Begins an order, and lets it come as far as it does by itself.
    async fn begin(&self) -> JoinHandle<Result<Identity, OrderFailure>> {
        let ordered = tokio::spawn(self.acme.order(vec!["a.test".to_owned()], None));
        for _ in 0..LONG_ANSWER {
            if ordered.is_finished() {
                break;
            }
            tokio::task::yield_now().await;
        }
        ordered
    }

    /// The result of an order, with a timeout that is long enough for every order.
    async fn order(&self) -> OrderFailure {
        let ordered = self.begin().await;
        self.clock.advance(ORDER_TIMEOUT).await;
        ordered.await.unwrap().expect_err("nothing is signed here")
    }
}

#[tokio::test]
async fn unfinished_order_times_out_and_removes_challenge() {
    let shop = Shop::with_authority(Fake::responding_with(|_| None));
    let ordered = tokio::spawn(shop.acme.order(vec!["a.test".to_owned()], None));
    shop.clock
        .advance(ORDER_TIMEOUT - Duration::from_secs(1))
        .await;
    let authorization = shop.tokens.authorization("token").expect("it is shown");
    assert!(authorization.starts_with("token."), "{authorization}");
    assert_eq!(
        shop.fake.request_count("/challenge"),
        1,
        "it was told to look"
    );
    let looks = shop.fake.request_count("/order");
    assert!((20..40).contains(&looks), "{looks} looks in three minutes");
    shop.clock.advance(Duration::from_secs(1)).await;
    let failure = ordered.await.unwrap().expect_err("nothing is signed here");
    assert!(
        matches!(failure.error, AcmeError::Timeout(ORDER_TIMEOUT)),
        "{failure:?}"
    );
    assert_eq!(shop.tokens.authorization("token"), None);
}

#[tokio::test]
async fn response_size_is_limited() {
    let error_text = |len: usize| {
        let shop = Shop::with_authority(Fake::responding_with(move |path| {
            (path == "/directory").then(|| (200, " ".repeat(len)))
        }));
        async move { shop.order().await.error.to_string() }
    };
    let at_limit = error_text(1 << 20).await;
    assert!(at_limit.contains("JSON"), "{at_limit}");
    let past_limit = error_text((1 << 20) + 1).await;
    assert!(!past_limit.contains("JSON"), "{past_limit}");
}

#[tokio::test]
async fn rate_limit_error_has_retry_after() {
    let shop = Shop::with_authority(Fake::responding_with(|path| {
        (path == "/newOrder").then(|| (429, problem("rateLimited")))
    }));
    let OrderFailure { error, rest } = shop.order().await;
    assert_eq!(rest, Some(Duration::from_secs(3600)));
    let message = error.to_string();
    assert!(
        message.starts_with("http://acme.test/directory: a new order: "),
        "{message}"
    );
    assert!(message.contains("so it is"), "{message}");
}

#[tokio::test]
async fn unknown_account_is_set_aside_and_recreated() {
    let shop = Shop::with_authority(Fake::responding_with(|path| {
        (path == "/newOrder").then(|| (400, problem("accountDoesNotExist")))
    }));
    for accounts in 1..=2 {
        let OrderFailure { error, rest } = shop.order().await;
        assert!(matches!(error, AcmeError::Account { .. }), "{error}");
        assert_eq!(rest, None);
        assert_eq!(shop.fake.request_count("/newAccount"), accounts);
        assert!(shop.folder.load_account().unwrap().is_none());
    }
}

/// An authority that refuses the first two orders with `status` and `kind`, and reports it to the first when the latch is set.
fn refusing_two(kinds: [(u16, &'static str); 2]) -> (Shop, Latch) {
    let refusals = Mutex::new(kinds.into_iter());
    let mut fake = Fake::responding_with(move |path| {
        let refusal = (path == "/newOrder").then(|| refusals.lock().unwrap().next());
        let (status, kind) = refusal.flatten()?;
        Some((status, problem(kind)))
    });
    let release = Latch::new();
    fake.holds = Some(("/newOrder", release.clone()));
    (Shop::with_authority(fake), release)
}

/// Both put an account aside: the second that which had been made since.
#[tokio::test]
async fn concurrent_account_loss_keeps_the_new_account() {
    let (shop, release) = refusing_two([(400, "accountDoesNotExist"); 2]);
    let first = shop.begin().await;
    let second = shop.begin().await.await.unwrap().unwrap_err();
    assert!(
        matches!(second.error, AcmeError::Account { .. }),
        "{second:?}"
    );
    let third = shop.begin().await;
    let account = shop
        .folder
        .load_account()
        .unwrap()
        .expect("another was made");
    release.set();
    let first = first.await.unwrap().unwrap_err();
    assert!(
        matches!(first.error, AcmeError::Account { .. }),
        "{first:?}"
    );
    assert_eq!(shop.folder.load_account().unwrap(), Some(account));
    assert!(!third.is_finished(), "it goes on");
    assert_eq!(shop.fake.request_count("/newAccount"), 2);
}

/// The authority's answer to one order was lost, or used for another, when they ran concurrently.
#[tokio::test]
async fn retry_after_is_per_order() {
    let (shop, release) = refusing_two([(429, "rateLimited"), (400, "malformed")]);
    let limited = shop.begin().await;
    let error = shop.begin().await.await.unwrap().unwrap_err();
    assert_eq!(error.rest, None, "{error:?}");
    release.set();
    let limited = limited.await.unwrap().unwrap_err();
    assert_eq!(limited.rest, Some(Duration::from_secs(3600)), "{limited:?}");
}

#[tokio::test]
async fn failed_challenge_error_has_the_authority_message() {
    let error_field = format!(r#", "error": {}"#, problem("connection"));
    let shop = Shop::with_authority(Fake::responding_with(move |path| match path {
        "/order" => Some((200, PENDING.replace("pending", "invalid"))),
        "/name" => Some((
            200,
            authorization("pending", &challenge("http-01", &error_field)),
        )),
        _ => None,
    }));
    let message = shop.order().await.error.to_string();
    let expected = "a.test: the authority rejected the proof (http-01): ";
    assert!(
        message.starts_with(expected) && message.contains("so it is"),
        "{message}"
    );
}

#[tokio::test]
async fn unoffered_challenge_is_an_error() {
    let shop = Shop::with_authority(Fake::responding_with(|path| {
        (path == "/name").then(|| (200, authorization("pending", &challenge("dns-01", ""))))
    }));
    let message = shop.order().await.error.to_string();
    assert!(
        message.contains("expected the challenge http-01"),
        "{message}"
    );
    assert!(message.contains("found dns-01"), "{message}");
}

#[tokio::test]
async fn slow_response_times_out() {
    let clock = Clock::default();
    let mut fake = Fake::responding_with(|_| None);
    fake.drips = Some(("/directory", clock.clone()));
    let message = Shop::at(clock, fake).order().await.error.to_string();
    assert!(message.contains("incomplete after 120 s"), "{message}");
}

#[tokio::test]
async fn url_with_other_scheme_is_refused() {
    let shop = Shop::with_authority(Fake::responding_with(|path| {
        let https_order = || PENDING.replace("http://acme.test/name", "https://acme.test/name");
        (path == "/newOrder").then(|| (201, https_order()))
    }));
    let message = shop.order().await.error.to_string();
    let expected = "expected a URL of http like the directory, found https://acme.test/name";
    assert!(message.contains(expected), "{message}");
    assert_eq!(shop.fake.request_count("/name"), 0);
}

#[tokio::test]
async fn unordered_name_is_not_validated() {
    let shop = Shop::with_authority(Fake::responding_with(|path| {
        let other_authorization =
            || authorization("pending", &challenge("http-01", "")).replace("a.test", "b.test");
        (path == "/name").then(|| (200, other_authorization()))
    }));
    let error = shop.order().await.error;
    assert!(
        matches!(&error, AcmeError::UnexpectedName(name) if name == "b.test"),
        "{error}"
    );
    assert_eq!(shop.fake.request_count("/challenge"), 0);
    assert_eq!(shop.tokens.authorization("token"), None);
}
