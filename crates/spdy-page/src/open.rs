//! Opens a replica by shipped name, or from a file of any supported format.
//!
//! The first bytes of a file decide its format, not its name:
//!
//! | first bytes | format |
//! | --- | --- |
//! | `1f 8b` | gzip: decompressed, then detected again |
//! | `WARC/` | a replica if its first record has the field `replica`, else any WARC |
//! | `{"constants"` | a NetLog of Chromium |
//! | `{` | other JSON: a HAR if it has `log`, a speedreport if it has `assets` |
//!
//! A folder is a recording of mahimahi. [`read`] and [`read_folder`] are pure and take bytes; [`open`] and [`file()`] read the disk.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;

use crate::builtin;
use crate::coding::{self, CodingError};
use crate::import::har::import;
use crate::import::{mahimahi, netlog, speedreport, warc};
use crate::limits::Limits;
use crate::replica::archive;
use crate::replica::warc_record::{self, WarcRecord};

pub use crate::error::OpenError;
pub use crate::import::result::{ImportOptions, OpenedReplica};

/// Pages without a document that are omitted; each costs another reading of the file.
const MAX_OMITTED_PAGES: usize = 16;

/// Opens a shipped replica by its name, or the file or folder at that path.
///
/// # Errors
///
/// [`OpenError`] if there is no such name or file, or the file has no page load.
pub fn open(name_or_path: &str) -> Result<OpenedReplica, OpenError> {
    open_with(name_or_path, &ImportOptions::default())
}

/// Like [`open`], with a page number and other limits.
///
/// # Errors
///
/// Like [`open`].
pub fn open_with(name_or_path: &str, options: &ImportOptions) -> Result<OpenedReplica, OpenError> {
    if let Some(bytes) = builtin::bytes(name_or_path) {
        return read(Bytes::from_static(bytes), name_or_path, options);
    }
    let read_fault = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => OpenError::NotFound {
            name: name_or_path.to_owned(),
            shipped: &builtin::NAMES,
        },
        _ => OpenError::Read {
            path: name_or_path.to_owned(),
            cause,
        },
    };
    let path = Path::new(name_or_path);
    if std::fs::metadata(path).map_err(read_fault)?.is_dir() {
        let files = files_in(path, &options.limits)?;
        return read_folder(files, name_or_path, options);
    }
    read(
        whole_file(path, &options.limits, &read_fault)?,
        name_or_path,
        options,
    )
}

/// Opens every page of a recording with several, in their order, at most `most`. Pages without a document are omitted.
///
/// # Errors
///
/// Like [`open`], if no page has a document. [`OpenError::Limit`] if there are more than `most`, or too many without a document.
pub fn open_pages(name_or_path: &str, most: usize) -> Result<Vec<OpenedReplica>, OpenError> {
    let mut pages = Vec::new();
    let mut first_fault = None;
    let limit = most + MAX_OMITTED_PAGES;
    for number in 1..=limit {
        let options = ImportOptions {
            page: Some(number),
            ..ImportOptions::default()
        };
        match open_with(name_or_path, &options) {
            Ok(_) if pages.len() == most => break,
            Ok(opened) => pages.push(opened),
            Err(fault @ OpenError::NoPageLoad { .. }) => {
                first_fault.get_or_insert(fault);
            }
            Err(OpenError::NoSuchPage { .. }) if number > 1 => {
                return match (pages.is_empty(), first_fault) {
                    (true, Some(fault)) => Err(fault),
                    _ => Ok(pages),
                };
            }
            Err(error) => return Err(error),
        }
    }
    Err(OpenError::Limit {
        what: "pages in the recording",
        limit: most,
    })
}

/// Reads the file at `path`, or the target of that link, for [`read`].
///
/// # Errors
///
/// [`OpenError::NotAFile`] if it is a folder, a device, a socket or a FIFO: none is waited for. [`OpenError::Limit`] if it has more
/// than [`Limits::file_bytes`], even if it grows during reading. [`OpenError::Read`].
pub fn file(path: &Path, limits: &Limits) -> Result<Bytes, OpenError> {
    let read_fault = |cause| OpenError::Read {
        path: path.display().to_string(),
        cause,
    };
    whole_file(path, limits, &read_fault)
}

fn whole_file(
    path: &Path,
    limits: &Limits,
    read_fault: &dyn Fn(std::io::Error) -> OpenError,
) -> Result<Bytes, OpenError> {
    let limit = limits.file_bytes;
    let bytes = read_file(path, limit, read_fault)?;
    bytes.map(Bytes::from).ok_or(OpenError::Limit {
        what: "bytes in the file",
        limit,
    })
}

/// The bytes of a file; `None` if it has more than `most`, even if it grows during reading.
fn read_file(
    path: &Path,
    most: usize,
    read_fault: &dyn Fn(std::io::Error) -> OpenError,
) -> Result<Option<Vec<u8>>, OpenError> {
    let no_file = || OpenError::NotAFile {
        path: path.display().to_string(),
    };
    // Opening a FIFO blocks until it has a writer. So the type is checked before opening, and again afterwards.
    if !std::fs::metadata(path).map_err(read_fault)?.is_file() {
        return Err(no_file());
    }
    let file = File::open(path).map_err(read_fault)?;
    let about = file.metadata().map_err(read_fault)?;
    if !about.is_file() {
        return Err(no_file());
    }
    let one_past = (most as u64).saturating_add(1);
    let mut bytes = Vec::with_capacity(about.len().min(one_past) as usize);
    let mut file = file.take(one_past);
    file.read_to_end(&mut bytes).map_err(read_fault)?;
    Ok((bytes.len() <= most).then_some(bytes))
}

/// The files of a folder with their names. Links are followed; subfolders are ignored.
fn files_in(folder: &Path, limits: &Limits) -> Result<Vec<(String, Bytes)>, OpenError> {
    let fault_of = |path: &Path| {
        let path = path.display().to_string();
        move |cause| OpenError::Read {
            path: path.clone(),
            cause,
        }
    };
    let folder_fault = fault_of(folder);
    let mut files = Vec::new();
    let mut remaining_bytes = limits.file_bytes;
    for entry in std::fs::read_dir(folder).map_err(&folder_fault)? {
        let entry = entry.map_err(&folder_fault)?;
        let path = entry.path();
        let read_fault = fault_of(&path);
        if !std::fs::metadata(&path).map_err(&read_fault)?.is_file() {
            continue;
        }
        if files.len() == limits.records {
            return Err(OpenError::Limit {
                what: "files in the folder",
                limit: limits.records,
            });
        }
        let bytes = read_file(&path, remaining_bytes, &read_fault)?.ok_or(OpenError::Limit {
            what: "bytes in the folder",
            limit: limits.file_bytes,
        })?;
        remaining_bytes -= bytes.len();
        files.push((
            entry.file_name().to_string_lossy().into_owned(),
            bytes.into(),
        ));
    }
    Ok(files)
}

/// Opens a replica in a folder of these files, each with its name: a recording of mahimahi.
///
/// # Errors
///
/// Like [`read`].
pub fn read_folder(
    files: Vec<(String, Bytes)>,
    hint: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    mahimahi::import(files, stem(hint.trim_end_matches('/')), options)
}

/// Opens a replica in the bytes of a file; `hint` (a path or a name) names it if the file does not.
///
/// # Errors
///
/// [`OpenError`], like [`open`], but none of the disk.
pub fn read(file: Bytes, hint: &str, options: &ImportOptions) -> Result<OpenedReplica, OpenError> {
    let limits = &options.limits;
    if file.len() > limits.file_bytes {
        return Err(OpenError::Limit {
            what: "bytes in the file",
            limit: limits.file_bytes,
        });
    }
    let file = if file.starts_with(&[0x1f, 0x8b]) {
        inflate(&file, limits)?
    } else {
        file
    };
    let text = file
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(&file)
        .trim_ascii_start();
    if file.starts_with(b"WARC/") {
        let records = warc_record::read_all(&file, limits)?;
        if archive::is_replica(&records) {
            return read_archive(&records, options);
        }
        return warc::import(&records, stem(hint), options);
    }
    if is_netlog(text) {
        return netlog::import(text, stem(hint), options);
    }
    if text.starts_with(b"{") {
        return read_json(text, stem(hint), options);
    }
    let seen = String::from_utf8_lossy(&text[..text.len().min(24)]).into_owned();
    Err(OpenError::Unrecognised { seen })
}

/// Decodes the requested page of `records`, a replica.
fn read_archive(
    records: &[WarcRecord],
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    let pages = archive::pages(records);
    let number = options.page.unwrap_or(1);
    let page = number.checked_sub(1).and_then(|index| pages.get(index));
    let page = page.ok_or(OpenError::NoSuchPage {
        page: number,
        pages: pages.len(),
    })?;
    let mut opened = OpenedReplica::whole(archive::decode(page, &options.limits)?);
    opened.notes.pages = pages.len();
    if pages.len() > 1 {
        let count = pages.len();
        opened
            .notes
            .remark(format!("page {number} of {count} opened"));
    }
    Ok(opened)
}

/// True if `text` begins like Chromium's logs: they may be cut off, so they are not parsed here.
fn is_netlog(text: &[u8]) -> bool {
    let first = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    first.is_some_and(|first| first.starts_with(b"\"constants\""))
}

/// Parses JSON by the format that its top-level fields show.
fn read_json(text: &[u8], name: &str, options: &ImportOptions) -> Result<OpenedReplica, OpenError> {
    #[derive(serde::Deserialize)]
    struct Top {
        log: Option<serde::de::IgnoredAny>,
        assets: Option<serde::de::IgnoredAny>,
    }
    let top = serde_json::Deserializer::from_slice(text)
        .into_iter::<Top>()
        .next();
    match top {
        Some(Ok(Top {
            log: None,
            assets: Some(_),
        })) => speedreport::import(text, name, options),
        Some(Ok(Top {
            log: None,
            assets: None,
        })) => {
            let what = "found neither the field log of a HAR nor the field assets of a speedreport"
                .to_owned();
            Err(OpenError::Json { form: "JSON", what })
        }
        // The importer reports faults in the text, and corrects those that it can.
        _ => import::import(text, name, options),
    }
}

fn inflate(file: &[u8], limits: &Limits) -> Result<Bytes, OpenError> {
    match coding::gunzip(file, limits.inflated_bytes) {
        Ok(text) => Ok(text.into()),
        Err(CodingError::TooLong { limit }) => Err(OpenError::Limit {
            what: "bytes of decompressed data",
            limit,
        }),
        Err(fault) => Err(OpenError::Gzip(fault)),
    }
}

/// The name of a file without its folders and known endings.
fn stem(hint: &str) -> &str {
    let mut stem = hint.rsplit(['/', '\\']).next().unwrap_or(hint);
    for ending in [".gz", ".warc", ".har", ".json"] {
        stem = stem
            .strip_suffix(ending)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(stem);
    }
    stem
}
