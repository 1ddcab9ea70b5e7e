//! The hot paths whose instructions `scripts/bench-check` counts.
//!
//! ```text
//! cargo run --example instructions              names of the paths
//! cargo run --example instructions -- NAME      prepares the path and runs it once, then once more in `counted`
//! ```
//!
//! It prints how often `counted` ran the path, and what one time is. All input is fixed: no path uses a socket, a thread, the system's
//! clock or a seed that changes.
//!
//! codec.rs: bytes and frames; connections.rs: one end of a connection; accelerator.rs: hits and rewriting; page_load.rs: virtual time

mod accelerator;
mod codec;
mod connections;
mod page_load;

use std::hint::black_box;
use std::io::{self, Write};
use std::process::ExitCode;

use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;
use spdy_sim::options::RaceProtocol;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SPDY: Protocol = Protocol::Spdy(Version::V31);

/// A prepared path: each call of `work` does the same.
struct HotPath {
    work: Box<dyn FnMut()>,
    /// What `work` does once, and how often.
    unit: &'static str,
    times: f64,
}

impl HotPath {
    fn new(times: usize, unit: &'static str, work: impl FnMut() + 'static) -> Self {
        Self {
            work: Box::new(work),
            unit,
            times: times as f64,
        }
    }
}

type Prepare = fn() -> HotPath;

const PATHS: [(&str, Prepare); 21] = [
    ("frames/encode", codec::encode),
    ("frames/decode", codec::decode),
    ("header-blocks/compress", codec::compress),
    ("header-blocks/decompress", codec::decompress),
    ("server/spdy", || connections::server(SPDY)),
    ("server/h2", || connections::server(Protocol::Http2)),
    ("server/http", || connections::server(Protocol::Http1)),
    ("client/spdy", connections::spdy_client),
    ("exchange/spdy", || connections::exchange(SPDY)),
    ("exchange/h2", || connections::exchange(Protocol::Http2)),
    ("exchange/http", || connections::exchange(Protocol::Http1)),
    ("accelerator/hit-spdy", || accelerator::hit(SPDY)),
    ("accelerator/hit-h2", || accelerator::hit(Protocol::Http2)),
    ("accelerator/hit-http", || accelerator::hit(Protocol::Http1)),
    ("accelerator/rewrite", accelerator::rewrite),
    ("load/portal-http", || page_load::portal(RaceProtocol::Http)),
    ("load/portal-https", || {
        page_load::portal(RaceProtocol::Https)
    }),
    ("load/portal-spdy", || page_load::portal(RaceProtocol::Spdy)),
    ("load/portal-h2", || page_load::portal(RaceProtocol::H2)),
    ("load/portal-h3", || page_load::portal(RaceProtocol::H3)),
    ("load/flags-spdy", || page_load::flags(RaceProtocol::Spdy)),
];

/// Runs `work` in a function that a profiler finds by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    black_box(()); // so that the call above is not the last thing, which would make it a jump
}

fn main() -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in PATHS {
            writeln!(out, "{name}")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some((_, prepare)) = PATHS.iter().find(|(path, _)| *path == name) else {
        writeln!(
            io::stderr(),
            "unknown path {name}: run without an argument for a list"
        )?;
        return Ok(ExitCode::from(2));
    };
    let mut path = prepare();
    (path.work)();
    counted(&mut path.work);
    writeln!(out, "{}\t{}", path.times, path.unit)?;
    Ok(ExitCode::SUCCESS)
}
