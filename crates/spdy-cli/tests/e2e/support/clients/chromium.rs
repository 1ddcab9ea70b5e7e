//! A headless Chromium, controlled by the DevTools protocol: opens pages, evaluates scripts, records messages and fetches.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::support::program::{ReadyOn, RunningProgram};

/// Timeout for a reply. An idle machine needs less than a tenth of it.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Chromium {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    /// All events of the DevTools protocol.
    events: Vec<Value>,
    _process: RunningProgram,
    _profile: tempfile::TempDir,
}

/// Width and colour scheme of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewport {
    pub(crate) width: u32,
    pub(crate) dark: bool,
}

/// One resource that a page fetched.
#[derive(Clone, Debug)]
pub(crate) struct FetchedResource {
    pub(crate) url: String,
    pub(crate) body: Result<Vec<u8>, String>,
    /// Port of the server.
    pub(crate) port: u64,
    /// Chromium's ID of the connection.
    pub(crate) connection: u64,
    pub(crate) protocol: String,
}

/// A headless Chromium without background requests. Its home is `folder`, so it does not use files of the user that runs the tests.
pub(crate) fn chromium(folder: &Path) -> Command {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
    ]);
    command.args([
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        folder.join("profile").display()
    ));
    command.env("HOME", folder);
    for (variable, name) in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_DATA_HOME", "data"),
    ] {
        command.env(variable, folder.join(name));
    }
    command
}

impl Chromium {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with these additional arguments.
    pub(crate) fn start_with(arguments: &[String]) -> Self {
        Self::start_in(tempfile::tempdir(), arguments)
    }

    /// Starts it with these preferences in its profile.
    pub(crate) fn start_with_preferences(preferences: &Value, arguments: &[String]) -> Self {
        let profile = tempfile::tempdir().expect("create a folder");
        let folder = profile.path().join("profile/Default");
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join("Preferences"), preferences.to_string()))
            .expect("write the file");
        Self::start_in(Ok(profile), arguments)
    }

    fn start_in(profile: std::io::Result<tempfile::TempDir>, arguments: &[String]) -> Self {
        let profile = profile.expect("create a folder");
        let mut command = chromium(profile.path());
        command.args(["--hide-scrollbars", "--remote-debugging-port=0"]);
        command.args(arguments);
        let (process, url) = RunningProgram::start(command, ReadyOn::Stderr, |line| {
            line.strip_prefix("DevTools listening on ")
                .map(str::to_owned)
        });
        let address = url
            .strip_prefix("ws://")
            .and_then(|rest| rest.split('/').next())
            .expect("a WebSocket's URL");
        let stream = TcpStream::connect(address).expect("connect");
        stream
            .set_read_timeout(Some(REPLY_TIMEOUT))
            .expect("set the option");
        let (socket, _) = tungstenite::client(&url, stream).expect("a WebSocket handshake");
        let mut chromium = Self {
            socket,
            session: None,
            calls: 0,
            events: Vec::new(),
            _process: process,
            _profile: profile,
        };
        let deny = json!({"behavior": "deny", "eventsEnabled": true});
        chromium.call("Browser.setDownloadBehavior", &deny);
        let target = chromium.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = chromium.call("Target.attachToTarget", &attach);
        chromium.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(&format!("{domain}.enable"), &json!({}));
        }
        chromium
    }

    /// Opens `url` and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str, viewport: Viewport) {
        let media = json!([{
            "name": "prefers-color-scheme",
            "value": if viewport.dark { "dark" } else { "light" },
        }]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": media}));
        let metrics = json!({
            "width": viewport.width,
            "height": 900,
            "deviceScaleFactor": 1,
            "mobile": viewport.width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        self.events.clear();
        self.call("Page.navigate", &json!({"url": url}));
        self.until(|event| event["method"] == "Page.loadEventFired");
    }

    /// Waits for the first event since the page was opened for which `is_match` is true.
    pub(crate) fn until(&mut self, is_match: impl Fn(&Value) -> bool) -> Value {
        if let Some(event) = self.events.iter().find(|event| is_match(event)) {
            return event.clone();
        }
        loop {
            let message = self.message();
            self.events.push(message.clone());
            if is_match(&message) {
                return message;
            }
        }
    }

    /// Runs `script` in every page that is opened later, before the page's own scripts.
    pub(crate) fn run_in_new_pages(&mut self, script: &str) {
        let params = json!({"source": script});
        self.call("Page.addScriptToEvaluateOnNewDocument", &params);
    }

    /// Clears the browser's cache.
    pub(crate) fn clear_cache(&mut self) {
        self.call("Network.clearBrowserCache", &json!({}));
    }

    /// Clears all cookies.
    pub(crate) fn clear_cookies(&mut self) {
        self.call("Network.clearBrowserCookies", &json!({}));
    }

    /// All cookies, as domain and name.
    pub(crate) fn cookies(&mut self) -> Vec<(String, String)> {
        let all = self.call("Network.getAllCookies", &json!({}));
        let all = all["cookies"].as_array().cloned().unwrap_or_default();
        let text =
            |cookie: &Value, name: &str| cookie[name].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<_> = all
            .iter()
            .map(|cookie| (text(cookie, "domain"), text(cookie, "name")))
            .collect();
        all.sort();
        all
    }

    /// All resources fetched since the page was opened. Waits until each response is complete. A failed fetch has its error.
    pub(crate) fn fetched_resources(&mut self) -> Vec<FetchedResource> {
        let named = |events: &[Value], method: &str| -> Vec<Value> {
            let matching = events.iter().filter(|event| event["method"] == method);
            matching.map(|event| event["params"].clone()).collect()
        };
        let mut resources = Vec::new();
        let requests = named(&self.events, "Network.requestWillBeSent");
        for request in requests {
            let url = request["request"]["url"].as_str().unwrap_or_default();
            if url.starts_with("data:") {
                continue;
            }
            let id = request["requestId"].clone();
            let end = self.until(|event| {
                let ends = ["Network.loadingFinished", "Network.loadingFailed"];
                event["params"]["requestId"] == id && ends.iter().any(|end| event["method"] == *end)
            });
            let responses = named(&self.events, "Network.responseReceived");
            let response = responses
                .iter()
                .find(|response| response["requestId"] == id);
            let response = response.map(|response| response["response"].clone());
            let body = match end["params"]["errorText"].as_str() {
                Some(error) => Err(error.to_owned()),
                None => {
                    let body = self.call("Network.getResponseBody", &json!({"requestId": id}));
                    let text = body["body"].as_str().unwrap_or_default();
                    Ok(match body["base64Encoded"].as_bool() {
                        Some(true) => data_encoding::BASE64
                            .decode(text.as_bytes())
                            .expect("base64"),
                        _ => text.as_bytes().to_vec(),
                    })
                }
            };
            let response = response.unwrap_or_default();
            resources.push(FetchedResource {
                url: url.to_owned(),
                body,
                port: response["remotePort"].as_u64().unwrap_or(0),
                connection: response["connectionId"].as_u64().unwrap_or(0),
                protocol: response["protocol"].as_str().unwrap_or_default().to_owned(),
            });
        }
        resources
    }

    /// Evaluates an expression in the page; waits for a promise.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let evaluate = json!({
            "expression": expression,
            "returnByValue": true,
            "awaitPromise": true,
        });
        let result = self.call("Runtime.evaluate", &evaluate);
        assert!(result.get("exceptionDetails").is_none(), "{result}");
        result["result"]["value"].clone()
    }

    /// Presses a key of the keyboard: its name, and the text that it enters.
    pub(crate) fn press(&mut self, key: &str, code: u32, text: &str) {
        for event in ["keyDown", "keyUp"] {
            let params = json!({
                "type": event,
                "key": key,
                "windowsVirtualKeyCode": code,
                "text": if event == "keyDown" { text } else { "" },
            });
            self.call("Input.dispatchKeyEvent", &params);
        }
    }

    /// URLs of every request since the page was opened.
    pub(crate) fn requests(&self) -> Vec<&str> {
        let is_request = |event: &&Value| event["method"] == "Network.requestWillBeSent";
        let requests = self.events.iter().filter(is_request);
        requests
            .filter_map(|event| event["params"]["request"]["url"].as_str())
            .collect()
    }

    /// The console messages of the page and the browser since the page was opened.
    pub(crate) fn console_messages(&self) -> Vec<&Value> {
        let console_methods = [
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
        ];
        let is_console = |event: &&Value| {
            console_methods
                .iter()
                .any(|method| event["method"] == *method)
        };
        self.events.iter().filter(is_console).collect()
    }

    /// Saves a screenshot of the whole page in the folder SPDY_SCREENSHOTS, if that is set.
    pub(crate) fn save_screenshot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SPDY_SCREENSHOTS") else {
            return;
        };
        let capture = json!({"captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", &capture);
        let data = picture["data"].as_str().expect("base64");
        let bytes = data_encoding::BASE64.decode(data.as_bytes());
        let path = Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, bytes.expect("base64")).expect("write the file");
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        let result = self.socket.send(Message::text(call.to_string()));
        result.unwrap_or_else(|error| panic!("{method}: {error}"));
        loop {
            let message = self.message();
            if message["id"] == self.calls {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    fn message(&mut self) -> Value {
        loop {
            let message = self.socket.read().expect("a reply from Chromium");
            if let Message::Text(text) = message {
                return serde_json::from_str(&text).expect("JSON");
            }
        }
    }
}
