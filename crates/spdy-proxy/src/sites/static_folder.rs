//! A folder of files that takes the place of an origin for some paths of a site.
//!
//! ```text
//!  /static/a%20b.css ──▶ segments, decoded ──▶ folder/a b.css, symbolic links resolved ──▶ in the folder? ──▶ a file
//!                          no `..`, no name that begins with a dot                              │    ──▶ index.html of a folder
//!                                                                                             404
//! ```
//!
//! The response is handled like one of an origin: pages are rewritten, and headers of the path are set. It is not stored, because the file
//! is as near as the cache. This is not `ServeDir` of tower-http, which sends no `ETag`, follows symbolic links out of the folder, and serves
//! hidden files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use spdy::body::{Body, BoxError};
use spdy::runtime::BoxFuture;
use spdy_cache::conditions::{conditional_response, range_holds, single_range};
use spdy_server::media_types;

/// Bytes that are read at once. A shorter file is read as a whole.
const CHUNK_BYTES: u64 = 64 * 1024;
/// The least time between two lines of the log about files that cannot be read.
const BETWEEN_LOGS: Duration = Duration::from_secs(60);
/// The file of a folder.
pub(crate) const INDEX: &str = "index.html";
/// Codings of files beside a file, the preferred first, with their extensions.
const CODINGS: [(&str, &str); 2] = [("br", "br"), ("gzip", "gz")];

/// A folder of files for the paths that begin with a path.
#[derive(Clone, Debug)]
pub(crate) struct StaticFolder {
    /// Its symbolic links are resolved for each request, because releases are often exchanged by a link.
    root: PathBuf,
    /// The path, with its final slash.
    path: String,
    /// When a failure was logged last.
    logged: Arc<Mutex<Option<SystemTime>>>,
}

/// Why a file that may exist cannot be read.
struct Unreadable(PathBuf, io::Error);

/// The source of a response.
enum Found {
    File(OpenFile),
    /// A folder that was requested without its final slash.
    Folder,
    Missing,
}

/// A file that is sent.
struct OpenFile {
    file: File,
    len: u64,
    modified: SystemTime,
    media_type: &'static str,
    coding: Option<&'static str>,
    /// There are files with a coding beside it.
    varies: bool,
}

impl StaticFolder {
    /// The folder `root` for the paths that begin with `path`.
    ///
    /// # Errors
    ///
    /// There is no such folder.
    pub(crate) fn open(root: &Path, path: &str) -> io::Result<Self> {
        if !root.canonicalize()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            root: root.to_owned(),
            path: path.to_owned(),
            logged: Arc::default(),
        })
    }

    /// The response to a request of `method` for `target`, with these fields.
    pub(crate) async fn respond(
        &self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Response<Body> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "expected GET or HEAD\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allowed);
            return response;
        }
        let path = target.split('?').next().unwrap_or_default();
        let Some(relative) = path.strip_prefix(&self.path).and_then(relative_path) else {
            return missing();
        };
        let wants_range = headers.contains_key(header::RANGE);
        let accepted = CODINGS.map(|(coding, _)| !wants_range && accepts(headers, coding));
        let (root, ends_in_slash) = (self.root.clone(), path.ends_with('/'));
        let found = blocking(move || {
            let mut unreadable = None;
            let found = match root.canonicalize() {
                Ok(root) => find(&root, &relative, ends_in_slash, accepted, &mut unreadable),
                Err(error) => {
                    unreadable = Some(Unreadable(root, error));
                    Found::Missing
                }
            };
            Ok((found, unreadable))
        });
        let found = found.await.map(|(found, unreadable)| {
            if let Some(unreadable) = unreadable {
                self.log(&unreadable, now);
            }
            found
        });
        match found {
            Ok(Found::File(file)) => file.respond(method, headers, now).await,
            Ok(Found::Folder) => {
                let query = target.strip_prefix(path).unwrap_or_default();
                let mut response = plain(StatusCode::MOVED_PERMANENTLY, "");
                if let Ok(location) = HeaderValue::try_from(format!("{path}/{query}")) {
                    response.headers_mut().insert(header::LOCATION, location);
                }
                response
            }
            Ok(Found::Missing) => missing(),
            Err(error) => failed(&error),
        }
    }

    /// Logs why a file cannot be read, at most once in [`BETWEEN_LOGS`].
    fn log(&self, Unreadable(path, error): &Unreadable, now: SystemTime) {
        let mut logged = self.logged.lock();
        let is_due = logged.is_none_or(|logged| {
            now.duration_since(logged)
                .map_or(true, |since| since >= BETWEEN_LOGS)
        });
        if is_due {
            *logged = Some(now);
            let path = path.display();
            tracing::error!(%path, %error, "cannot read a file or folder of site.paths.folder: clients get 404");
        }
    }
}

impl OpenFile {
    async fn respond(
        mut self,
        method: &Method,
        request: &HeaderMap,
        now: SystemTime,
    ) -> Response<Body> {
        let headers = self.headers();
        let condition = conditional_response(request, StatusCode::OK, &headers, now);
        if let Some(head) = condition {
            return Response::from_parts(head, Body::empty());
        }
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = headers;
        let range = single_range(request).filter(|_| *method == Method::GET);
        let range = range.filter(|_| range_holds(request, response.headers(), now));
        let range = range.as_ref().and_then(|range| range.to_str().ok());
        let (start, len) = match range.map(|range| part(range, self.len)) {
            None => (0, self.len),
            Some(Some((start, len))) => {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                let last = start + len - 1;
                set_range(&mut response, &format!("bytes {start}-{last}/{}", self.len));
                (start, len)
            }
            Some(None) => {
                let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE, "");
                set_range(&mut response, &format!("bytes */{}", self.len));
                return response;
            }
        };
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, len.into());
        if *method == Method::HEAD {
            return response;
        }
        let first = blocking(move || {
            self.file.seek(SeekFrom::Start(start))?;
            read(self.file, len)
        });
        match first.await {
            Ok((_, first)) if first.len() as u64 == len => response.map(|_| Body::full(first)),
            Ok((file, first)) => response.map(|_| {
                Body::wrap(FileBody {
                    remaining: len,
                    next: Some(Box::pin(std::future::ready(Ok((file, first))))),
                })
            }),
            Err(error) => failed(&error),
        }
    }

    /// The fields of a response with all of it, without its length.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let media_type = HeaderValue::from_static(self.media_type);
        headers.insert(header::CONTENT_TYPE, media_type);
        let bytes = HeaderValue::from_static("bytes");
        headers.insert(header::ACCEPT_RANGES, bytes);
        let since = self.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let coding = self.coding.unwrap_or_default();
        let tag = format!("\"{:x}-{:x}{coding}\"", since.as_nanos(), self.len);
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(header::ETAG, tag);
        }
        let date = spdy_cache::date::to_value(self.modified);
        headers.insert(header::LAST_MODIFIED, date);
        if let Some(coding) = self.coding {
            let coding = HeaderValue::from_static(coding);
            headers.insert(header::CONTENT_ENCODING, coding);
        }
        if self.varies {
            let name = HeaderValue::from_static("accept-encoding");
            headers.insert(header::VARY, name);
        }
        headers
    }
}

/// The file at `relative` in `root`, with one of the codings that are `accepted`.
///
/// A file that cannot be read is missing for clients, and the reason is in `unreadable`.
fn find(
    root: &Path,
    relative: &Path,
    ends_in_slash: bool,
    accepted: [bool; 2],
    unreadable: &mut Option<Unreadable>,
) -> Found {
    let requested = root.join(relative);
    let mut path = match requested.canonicalize() {
        Ok(path) if path.starts_with(root) => path,
        Ok(_) => return Found::Missing,
        Err(error) => {
            note(unreadable, &requested, error);
            return Found::Missing;
        }
    };
    match (path.is_dir(), ends_in_slash) {
        (true, false) => return Found::Folder,
        (true, true) => match within(root, &path.join(INDEX)) {
            Some(index) => path = index,
            None => return Found::Missing,
        },
        (false, true) => return Found::Missing,
        (false, false) if is_coded_form(root, &requested) => return Found::Missing,
        (false, false) => {}
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let media_type = media_types::of(&name);
    let coded = CODINGS.map(|(_, extension)| {
        let beside = path.with_file_name(format!("{name}.{extension}"));
        within(root, &beside).filter(|beside| beside.is_file())
    });
    let varies = coded.iter().any(Option::is_some);
    let candidates = CODINGS.iter().zip(coded).zip(accepted);
    let candidates = candidates
        .filter(|(_, is_accepted)| *is_accepted)
        .filter_map(|(((coding, _), path), _)| Some((Some(*coding), path?)));
    for (coding, path) in candidates.chain([(None, path.clone())]) {
        // Opening a pipe would wait for its writer.
        if !path.is_file() {
            continue;
        }
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        match opened {
            Ok((metadata, file)) if metadata.is_file() => {
                return Found::File(OpenFile {
                    file,
                    len: metadata.len(),
                    modified: metadata.modified().unwrap_or(UNIX_EPOCH),
                    media_type,
                    coding,
                    varies,
                });
            }
            Ok(_) => {}
            Err(error) => note(unreadable, &path, error),
        }
    }
    Found::Missing
}

/// Records that `path` cannot be read because of `error`, unless there is no such file.
fn note(unreadable: &mut Option<Unreadable>, path: &Path, error: io::Error) {
    let is_missing = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    );
    if !is_missing {
        *unreadable = Some(Unreadable(path.to_owned(), error));
    }
}

/// Whether `path` is a form of another file in `root`, with a coding. Rules for the path of that file would not apply to it.
fn is_coded_form(root: &Path, path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    CODINGS.iter().any(|(_, coded)| extension == *coded)
        && within(root, &path.with_extension("")).is_some_and(|plain| plain.is_file())
}

/// `path` without symbolic links, if it exists and is in `root`.
fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    path.starts_with(root).then_some(path)
}

/// The path in the folder for the rest of a target; `None` if it may lead elsewhere, or to a hidden file.
fn relative_path(rest: &str) -> Option<PathBuf> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let mut path = PathBuf::new();
    if rest.is_empty() {
        return Some(path);
    }
    for segment in rest.split('/') {
        let segment = percent_decode_str(segment).decode_utf8().ok()?;
        let is_hidden = segment.starts_with('.') && segment != ".well-known";
        if segment.is_empty() || is_hidden || segment.contains(['/', '\\', '\0', ':']) {
            return None;
        }
        path.push(&*segment);
    }
    Some(path)
}

/// Whether the request accepts `coding`. The proxy has normalized the field.
fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|member| member.trim() == coding)
}

/// The start and the length of `range`, a normalized one, of `len` bytes; `None` if there are no such bytes.
fn part(range: &str, len: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (start, end) = match (first.parse::<u64>().ok(), last.parse::<u64>().ok()) {
        (Some(first), Some(last)) => (first, last.saturating_add(1).min(len)),
        (Some(first), None) => (first, len),
        (None, Some(suffix)) => (len.saturating_sub(suffix), len),
        (None, None) => return None,
    };
    (start < end).then(|| (start, end - start))
}

fn set_range(response: &mut Response<Body>, range: &str) {
    if let Ok(range) = HeaderValue::try_from(range) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
}

/// Up to [`CHUNK_BYTES`] of `file`, and no more than `most`.
fn read(mut file: File, most: u64) -> io::Result<(File, Bytes)> {
    let most = most.min(CHUNK_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(most).unwrap_or_default());
    let mut chunk = (&mut file).take(most);
    chunk.read_to_end(&mut bytes)?;
    Ok((file, bytes.into()))
}

/// The result of `work`, which waits for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

/// The rest of a file.
struct FileBody {
    remaining: u64,
    /// The next piece, until the end or an error.
    next: Option<BoxFuture<io::Result<(File, Bytes)>>>,
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let piece = ready!(next.as_mut().poll(cx));
        self.next = None;
        let (file, bytes) = piece?;
        if bytes.is_empty() {
            return Poll::Ready(Some(Err(io::Error::from(
                io::ErrorKind::UnexpectedEof, // it was shortened meanwhile
            )
            .into())));
        }
        self.remaining = self.remaining.saturating_sub(bytes.len() as u64);
        if self.remaining > 0 {
            let remaining = self.remaining;
            self.next = Some(Box::pin(blocking(move || read(file, remaining))));
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// The response that leads to another path for now.
pub(crate) fn redirect(to: &str) -> Response<Body> {
    let mut response = plain(StatusCode::TEMPORARY_REDIRECT, "");
    if let Ok(location) = HeaderValue::try_from(to) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// The response without a file.
pub(crate) fn missing() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "no such file\n")
}

fn failed(error: &io::Error) -> Response<Body> {
    tracing::error!(%error, "cannot read a file of site.paths.folder");
    plain(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the file\n")
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    if !text.is_empty() {
        let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, media_type);
        headers.insert(header::CONTENT_LENGTH, text.len().into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_folder() {
        for (rest, expected) in [
            ("", Some("")),
            ("a/b.css", Some("a/b.css")),
            ("a/", Some("a")),
            ("a%20b.css", Some("a b.css")),
            (".well-known/x", Some(".well-known/x")),
            ("../a", None),
            ("a/../b", None),
            ("%2e%2e/a", None),
            ("a%2f..%2fb", None),
            ("a//b", None),
            ("/a", None),
            (".git/config", None),
            ("a/.htpasswd", None),
            ("a%00", None),
            ("a\\b", None),
            ("%ff", None),
        ] {
            assert_eq!(relative_path(rest), expected.map(PathBuf::from), "{rest}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_noted_and_a_missing_one_is_not() {
        let mut unreadable = None;
        note(
            &mut unreadable,
            Path::new("a"),
            io::ErrorKind::NotFound.into(),
        );
        assert!(unreadable.is_none());
        let denied = io::ErrorKind::PermissionDenied;
        note(&mut unreadable, Path::new("a"), denied.into());
        let Unreadable(path, error) = unreadable.expect("a reason");
        assert_eq!((path, error.kind()), (PathBuf::from("a"), denied));
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        for (range, expected) in [
            ("bytes=0-", Some((0, 10))),
            ("bytes=2-4", Some((2, 3))),
            ("bytes=2-99", Some((2, 8))),
            ("bytes=-3", Some((7, 3))),
            ("bytes=-99", Some((0, 10))),
            ("bytes=10-", None),
            ("bytes=-0", None),
        ] {
            assert_eq!(part(range, 10), expected, "{range}");
        }
    }
}
