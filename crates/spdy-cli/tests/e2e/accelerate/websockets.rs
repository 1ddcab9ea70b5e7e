//! WebSockets from a page in Chromium to the site's own origin, which uses tungstenite: over TLS through two accelerators. The
//! second one is the origin of the first.

use std::path::Path;

use serde_json::json;
use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::origins::websocket::{ENOUGH, ENOUGH_CODE, SocketOrigin};
use crate::support::peers::{is_installed, peers_enabled, require};

const LOOK: Viewport = Viewport {
    width: 1000,
    dark: false,
};

/// Helpers with which pages use a WebSocket.
const SCRIPT: &str = "
    window.opened = (target, protocols) => new Promise((resolve, reject) => {
        const socket = new WebSocket('wss://www.site.test' + target, protocols);
        socket.binaryType = 'arraybuffer';
        socket.closed = new Promise(ended => {
            socket.onclose = event => {
                const end = [event.code, event.reason, event.wasClean];
                ended(end);
                reject(end);
            };
        });
        socket.answer = message => new Promise(answered => {
            socket.onmessage = event => answered(event.data);
            socket.send(message);
        });
        socket.onopen = () => resolve(socket);
    });
";

/// Starts the second accelerator, which is the origin of the first.
fn start_accelerator(origin: &SocketOrigin) -> Accelerator {
    Accelerator::start(&format!(
        "[listen]\ntls = ['127.0.0.1:0']\nplain = []\n[[site]]\nnames = ['origin.site.test']\norigin = 'http://{}'\n",
        origin.address
    ))
}

/// Starts the first accelerator, to which the browser connects.
fn start_in_front_of(second: &Accelerator, token: &Path) -> Accelerator {
    Accelerator::start(&format!(
        "[listen]\ntls = ['127.0.0.1:0']\nplain = []\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n\
         [upstream]\nauthorities = [{:?}]\n[[site]]\nnames = ['www.site.test']\norigin = 'https://origin.site.test:{}'\naddress = '127.0.0.1'\n",
        second.authority(),
        second.tls().port()
    ))
}

fn browser(first: &Accelerator) -> Chromium {
    let mut browser = Chromium::start_with(&[
        format!(
            "--host-resolver-rules=MAP www.site.test:443 {}",
            first.tls()
        ),
        "--ignore-certificate-errors".to_owned(),
        "--disable-quic".to_owned(),
    ]);
    browser.run_in_new_pages(SCRIPT);
    browser.open("https://www.site.test/", LOOK);
    browser
}

/// The metrics of WebSockets: how each ended, and how many are open.
fn websocket_metrics(program: &Accelerator) -> Vec<String> {
    let metrics = program.metrics();
    let lines = metrics.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("spdy_accelerator_websockets_"));
    lines.map(str::to_owned).collect()
}

#[test]
fn websockets_reach_the_origin_and_close_at_shutdown() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origin = SocketOrigin::start();
    let second = start_accelerator(&origin);
    let token = tempfile::NamedTempFile::new().expect("create the file");
    std::fs::write(&token, "a token of the operator").expect("write the file");
    let first = start_in_front_of(&second, token.path());
    let mut browser = browser(&first);
    let page = browser.fetched_resources().remove(0);
    assert_eq!(page.protocol, "h2", "the page was loaded over HTTP/2");

    let result = browser.evaluate(
        "(async () => {
            const socket = await opened('/echo', ['other', 'chat']);
            const long = new Uint8Array(1 << 20).map((_, at) => at >> 7);
            const back = new Uint8Array(await socket.answer(long));
            const result = {
                protocol: socket.protocol,
                text: await socket.answer('grüße'),
                same: back.length === long.length && back.every((byte, at) => byte === long[at]),
            };
            socket.close(4001, 'client is done');
            return { ...result, closed: await socket.closed };
        })()",
    );
    let expected = json!({
        "protocol": "chat", "text": "grüße", "same": true, "closed": [4001, "client is done", true],
    });
    assert_eq!(result, expected);

    let script = format!(
        "(async () => {{
            const socket = await opened('/echo');
            socket.send('{ENOUGH}');
            return [socket.protocol, await socket.closed];
        }})()"
    );
    let result = browser.evaluate(&script);
    assert_eq!(result, json!(["", [ENOUGH_CODE, "enough messages", true]]));
    let close_code = browser.evaluate("opened('/refused').catch(end => end[0])");
    assert_eq!(close_code, 1006, "no handshake");

    let requests = origin.requests_to("/echo");
    assert_eq!(requests.len(), 2);
    for (field, value) in [
        ("origin", "https://www.site.test"),
        ("x-forwarded-proto", "https"),
        ("via", "1.1 www.site.test, 1.1 origin.site.test"),
        ("upgrade", "websocket"),
    ] {
        assert_eq!(requests[0].values(field).join(", "), value, "{field}");
    }

    browser.evaluate("(async () => { window.last = await opened('/echo'); })()");
    // A page gets the close frame before its connection has ended.
    let expected = [
        "total{ended_by=\"client\"} 1",
        "total{ended_by=\"origin\"} 1",
        "open 1",
    ];
    until("two have ended, and the third is open", || {
        websocket_metrics(&first) == expected
    });
    // A page that gets close code 1001 can open another WebSocket, to the next process.
    first.end();
    assert_eq!(
        browser.evaluate("window.last.closed"),
        json!([1001, "", true])
    );
    assert_eq!(origin.requests_to("/echo").len(), 3);
}
