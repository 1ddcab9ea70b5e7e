//! Chromium 49, the last browser with SPDY/3.1 that can be installed: one load by the program `interop/chromium49/chromium-49`.
//!
//! DevTools stays off, because it changes the requests of this version. So there is no log of bytes: the results are the page's own
//! Navigation Timing and Resource Timing. Resource Timing omits failed requests, and requests of frames.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

use crate::error::RecordError;

/// The name of the program.
pub const NAME: &str = "chromium-49";
/// Its folder in the repository.
const FOLDER: &str = "interop/chromium49";
/// Time beside the load: to start the display and the browser, until the page is quiet, to end.
const REST: Duration = Duration::from_secs(60);
/// Maximum bytes of its output. A resource needs about 150 bytes, and the program keeps 10,000.
const OUTPUT_BYTES: u64 = 16 << 20;

/// The protocol that the browser offers before HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Offer {
    /// HTTP/1.1 alone.
    Http1,
    /// SPDY/3.1.
    Spdy,
    /// HTTP/2.
    Http2,
}

impl Offer {
    const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "https",
            Self::Spdy => "spdy",
            Self::Http2 => "h2",
        }
    }
}

/// Times of a page in milliseconds since the start of the navigation. A time that did not occur is absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NavigationTiming {
    /// The browser begins to fetch a URL that redirects to the document.
    pub redirect_start: Option<f64>,
    /// It begins to fetch the document at its own URL, after redirects.
    pub fetch_start: Option<f64>,
    /// It begins to look up the name.
    pub domain_lookup_start: Option<f64>,
    /// The name is known.
    pub domain_lookup_end: Option<f64>,
    /// It begins to connect.
    pub connect_start: Option<f64>,
    /// The connection is open, with TLS.
    pub connect_end: Option<f64>,
    /// It sends the request.
    pub request_start: Option<f64>,
    /// First byte of the response.
    pub response_start: Option<f64>,
    /// Last byte of the response.
    pub response_end: Option<f64>,
    /// DOMContentLoaded.
    pub dom_content_loaded_event_start: Option<f64>,
    /// The load event.
    pub load_event_start: Option<f64>,
}

/// Times of a resource in milliseconds since the start of the navigation. `request` and `response` are 0 for another origin.
#[derive(Clone, Debug, Deserialize)]
pub struct ResourceTiming {
    /// Its URL.
    pub url: String,
    /// The page requests it.
    pub start: f64,
    /// The browser sends the request.
    pub request: f64,
    /// First byte of the response.
    pub response: f64,
    /// Last byte of the response.
    pub end: f64,
}

/// The page's own measurements of one load.
#[derive(Clone, Debug, Deserialize)]
pub struct PageTimings {
    /// Name and version of the browser.
    pub product: String,
    /// The URL of the page, after redirects.
    pub url: String,
    /// The start of the navigation, milliseconds since 1970.
    pub navigation_start_ms: f64,
    /// Times of the page.
    pub timing: NavigationTiming,
    /// Complete resources, in the order of their ends.
    pub resources: Vec<ResourceTiming>,
}

/// The results of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The page's own measurements.
    pub timings: PageTimings,
    /// The window when the page was quiet, as PNG, if it was requested.
    pub screenshot: Option<Vec<u8>>,
}

/// The program, if `browser` names it: a path that ends with its name, or the name alone, which is searched in PATH and in
/// `interop/chromium49`.
///
/// # Errors
///
/// [`RecordError::NoChromium49`] if the name alone is given, and the program is at neither place.
pub fn find(browser: &Path) -> Result<Option<PathBuf>, RecordError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(
        std::env::split_paths(&path).chain([PathBuf::from(FOLDER)]),
        browser,
    )
}

/// [`find`], with the folders in which the name alone is searched.
fn find_in(
    mut folders: impl Iterator<Item = PathBuf>,
    browser: &Path,
) -> Result<Option<PathBuf>, RecordError> {
    if browser.file_name().is_none_or(|name| name != NAME) {
        return Ok(None);
    }
    if browser.components().count() > 1 {
        return Ok(Some(browser.to_owned()));
    }
    let program = folders.find_map(|folder| {
        let program = folder.join(NAME);
        program.is_file().then_some(program)
    });
    program.map(Some).ok_or(RecordError::NoChromium49)
}

/// Loads `url` in a separate browser with a fresh profile. The page is quiet when no resource was completed for `settle`; measurements
/// until `limit` are returned in any case. Any certificate is accepted.
///
/// # Errors
///
/// [`RecordError`]: no browser, or no page.
pub async fn load(
    program: &Path,
    url: &Url,
    offer: Offer,
    limit: Duration,
    settle: Duration,
    screenshot: bool,
) -> Result<Load, RecordError> {
    let fault = |cause| RecordError::Start {
        program: program.display().to_string(),
        cause,
    };
    let profile = tempfile::Builder::new().prefix("spdy-record-").tempdir();
    let profile = profile.map_err(fault)?;
    let png = profile.path().join("window.png");
    let mut command = Command::new(program);
    command
        .args(["--protocol", offer.name(), "--profile"])
        .arg(profile.path())
        .arg(format!("--timeout={}", limit.as_secs_f64()))
        .arg(format!("--settle={}", settle.as_secs_f64()));
    if screenshot {
        command.arg("--png").arg(&png);
    }
    let mut child = command
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Not affected by Ctrl-C, and killed with its display and its helpers.
        .process_group(0)
        .spawn()
        .map_err(fault)?;
    let _group = Group(child.id().and_then(|id| i32::try_from(id).ok()));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let outputs = async {
        let outputs = tokio::join!(read(stdout), read(stderr));
        (outputs, child.wait().await)
    };
    let Ok(((stdout, stderr), status)) = timeout(limit + REST, outputs).await else {
        return Err(RecordError::Timeout {
            during: "the page load",
            seconds: (limit + REST).as_secs(),
        });
    };
    let exited = |last_stderr_line: String| RecordError::BrowserExited {
        during: "the page load",
        last_stderr_line,
    };
    if !status.is_ok_and(|status| status.success()) {
        let stderr = String::from_utf8_lossy(&stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(exited(last.unwrap_or("no output on stderr").to_owned()));
    }
    let timings: PageTimings =
        serde_json::from_slice(&stdout).map_err(|fault| exited(fault.to_string()))?;
    if !timings.url.starts_with("http") {
        return Err(RecordError::Navigation {
            url: url.to_string(),
            reason: "the browser shows an error page".to_owned(),
        });
    }
    let screenshot = match screenshot {
        true => std::fs::read(&png).ok().filter(|png| !png.is_empty()),
        false => None,
    };
    Ok(Load {
        timings,
        screenshot,
    })
}

/// Everything from a pipe, up to the limit.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // Output that cannot be read is incomplete, which its user detects.
        let _ = pipe.take(OUTPUT_BYTES).read_to_end(&mut bytes).await;
    }
    bytes
}

/// A process group, which is killed at the end.
struct Group(Option<i32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // No process of it may be left.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_name_at_the_end_of_a_path_is_chromium_49() {
        for other in ["chromium", "/usr/bin/chromium", "chromium-49/chrome"] {
            assert!(matches!(find(Path::new(other)), Ok(None)), "{other}");
        }
        let path = Path::new("/a/chromium-49");
        assert_eq!(find(path).expect("a path").as_deref(), Some(path));
    }

    #[test]
    fn timings_have_the_names_of_navigation_timing() {
        let line = r#"{"product": "Chrome/49.0", "url": "https://a.test/", "navigation_start_ms": 1e12, "resources": [], "timing": {
            "fetchStart": 5, "domainLookupStart": 20, "domainLookupEnd": 50, "connectStart": 51, "connectEnd": 110, "requestStart": 111}}"#;
        let timing = serde_json::from_str::<PageTimings>(line)
            .expect("valid timings")
            .timing;
        let times = [
            timing.fetch_start,
            timing.domain_lookup_start,
            timing.domain_lookup_end,
            timing.connect_start,
            timing.connect_end,
            timing.request_start,
        ];
        assert_eq!(times, [5.0, 20.0, 50.0, 51.0, 110.0, 111.0].map(Some));
    }

    #[test]
    fn its_name_alone_is_searched_in_the_folders_in_order() {
        let folders = [(); 3].map(|()| tempfile::tempdir().expect("create a folder"));
        let find = || {
            let folders = folders.iter().map(|folder| folder.path().to_owned());
            find_in(folders, Path::new(NAME))
        };
        let found = find();
        assert!(matches!(found, Err(RecordError::NoChromium49)), "{found:?}");
        // A folder of that name is not the program.
        std::fs::create_dir(folders[0].path().join(NAME)).expect("create a folder");
        for number in [2, 1] {
            let program = folders[number].path().join(NAME);
            std::fs::write(&program, "").expect("write the file");
            assert_eq!(find().expect("a program"), Some(program));
        }
    }
}
