//! Writes the seed inputs of all targets, made from the test vectors. `seeds DIR` writes one folder per target.
//!
//! The seeds are not stored in the repository: a changed vector changes its seeds. The tests check every seed against
//! the properties of its target, without a fuzzer.

mod cache;
mod capture;
mod dns;
mod http3;
mod page;
mod qpack;
mod rewrite;
#[expect(dead_code, reason = "the tests use all of it, the seeds only a part")]
mod support;
mod text;
mod wire;

use std::path::PathBuf;

use libfuzzer_sys as _; // where coverage counters report, if `scripts/fuzz` built this with them
use spdy_fuzz::TARGETS;

fn main() -> std::io::Result<()> {
    let root = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("seeds"), PathBuf::from);
    for (number, Seed { target, bytes, .. }) in all().into_iter().enumerate() {
        let folder = root.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{number:05}")), bytes)?;
    }
    Ok(())
}

/// A seed input.
struct Seed {
    /// The name of its target.
    target: &'static str,
    /// The source of the seed.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "used in the failure message of a test")
    )]
    name: String,
    /// The input.
    bytes: Vec<u8>,
}

/// All seeds of all targets.
fn all() -> Vec<Seed> {
    let mut seeds = Seeds(Vec::new());
    wire::frames(&mut seeds);
    wire::header_blocks(&mut seeds);
    wire::sessions(&mut seeds);
    text::http(&mut seeds);
    http3::streams(&mut seeds);
    qpack::machines(&mut seeds);
    text::upgrades(&mut seeds);
    text::tunnels(&mut seeds);
    text::channels(&mut seeds);
    text::pod_urls(&mut seeds);
    text::profiles(&mut seeds);
    page::recordings(&mut seeds);
    page::texts(&mut seeds);
    page::logs(&mut seeds);
    page::folders(&mut seeds);
    rewrite::proxied_urls(&mut seeds);
    rewrite::pages(&mut seeds);
    capture::files(&mut seeds);
    capture::sealed(&mut seeds);
    capture::streams(&mut seeds);
    dns::queries(&mut seeds);
    cache::heads(&mut seeds);
    seeds.0
}

/// The collected seeds.
struct Seeds(Vec<Seed>);

impl Seeds {
    fn push(&mut self, target: &'static str, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        assert!(
            TARGETS.iter().any(|existing| existing.name == target),
            "unknown target {target}"
        );
        let (name, bytes) = (name.into(), bytes.into());
        self.0.push(Seed {
            target,
            name,
            bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_passes_its_target() {
        for Seed {
            target,
            name,
            bytes,
        } in all()
        {
            let check = TARGETS
                .iter()
                .find(|existing| existing.name == target)
                .unwrap()
                .check;
            let result = std::panic::catch_unwind(|| check(&bytes));
            assert!(result.is_ok(), "{target}: {name}");
        }
    }

    #[test]
    fn every_target_has_seeds_and_a_libfuzzer_binary() {
        let seeds = all();
        for target in TARGETS {
            assert!(
                seeds.iter().any(|seed| seed.target == target.name),
                "{}",
                target.name
            );
            let file = format!("{}/targets/{}.rs", env!("CARGO_MANIFEST_DIR"), target.name);
            assert!(std::path::Path::new(&file).exists(), "{file}");
        }
    }
}
