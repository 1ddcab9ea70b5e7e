//! One file of the disk tier: recognizes its name, and reads and writes the object in it ([`object_file`](spdy_cache::object_file)).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use spdy_cache::body::{Body, BodyBuilder};
use spdy_cache::object_file::{Encoder, Layout, OpenObject, PREFIX_BYTES, file_name};
use spdy_cache::policy::Policy;

/// Whether a file has a name of this tier. Other files are not touched, so a wrong folder in the configuration loses nothing.
pub(crate) fn is_store_file(path: &Path) -> bool {
    let is_new = path.extension().is_none_or(|extension| extension == "new");
    let stem = path.file_stem();
    is_new && path.is_file() && stem.is_some_and(|stem| is_hexadecimal(stem, 64))
}

/// Whether the file was removed after it was listed.
pub(crate) fn is_not_found(path: &Path) -> bool {
    let metadata = fs::symlink_metadata(path);
    metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

pub(crate) fn is_hexadecimal(name: &OsStr, len: usize) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == len
        && name
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The head of a file, with the file's name. The head must be valid and match the name.
pub(crate) fn read_valid_head(path: &Path, policy: &Policy) -> io::Result<(String, OpenObject)> {
    let (object, _) = open(path, policy)?;
    let name = file_name(&object.key, &object.stored);
    match path.file_name().is_some_and(|is| *is == *name) {
        true => Ok((name, object)),
        false => Err(io::Error::other("another object's name")),
    }
}

/// Writes an object to a new file at `path`, and syncs it to the disk.
pub(crate) fn write_new(
    path: &Path,
    start: &[u8],
    mut encoder: Encoder,
    body: &Body,
) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(path)?);
    file.write_all(start)?;
    for chunk in body.chunks() {
        file.write_all(chunk)?;
        file.write_all(&encoder.chunk_digest(chunk))?;
    }
    file.into_inner()?.sync_data()
}

/// Reads the head of a file. The file position is then at the body.
pub(crate) fn open(path: &Path, policy: &Policy) -> io::Result<(OpenObject, File)> {
    let mut file = File::open(path)?;
    let mut start = vec![0; PREFIX_BYTES];
    file.read_exact(&mut start)?;
    let layout = Layout::decode(&start).map_err(io::Error::other)?;
    let (expected, found) = (layout.file_len(), file.metadata()?.len());
    if expected != found {
        return Err(io::Error::other(format!(
            "found {found} bytes, expected {expected}"
        )));
    }
    // The layout has checked the length of the head.
    start.resize(
        usize::try_from(layout.body_start()).map_err(io::Error::other)?,
        0,
    );
    file.read_exact(&mut start[PREFIX_BYTES..])?;
    let object = OpenObject::decode(policy, &start).map_err(io::Error::other)?;
    Ok((object, file))
}

/// Reads the body of `object` from a file that is positioned there, and checks each chunk.
pub(crate) fn read_body(object: &OpenObject, mut file: File) -> io::Result<Body> {
    let mut body = BodyBuilder::new(object.layout.body_len());
    let mut buffer = Vec::new();
    for index in 0..object.layout.chunks() {
        let range = object.layout.chunk(index);
        buffer.resize(
            usize::try_from(range.end - range.start).map_err(io::Error::other)?,
            0,
        );
        file.read_exact(&mut buffer)?;
        let chunk = object
            .check_chunk(index, &buffer)
            .map_err(io::Error::other)?;
        body.push(chunk).map_err(io::Error::other)?;
    }
    Ok(body.finish())
}
