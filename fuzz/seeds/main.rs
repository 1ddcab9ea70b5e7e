//! Where fuzzing begins: the vectors of the tree, as inputs of the doors. `seeds DIR` writes a folder for each.
//!
//! Nothing of this is stored in files: a vector that changes changes its seeds. The tests here hold every seed to
//! the laws of its target without any fuzzer.

mod cache;
mod capture;
mod dns;
mod http3;
mod page;
mod rewrite;
#[expect(dead_code, reason = "those tests use all of it, the seeds some")]
mod support;
mod text;
mod wire;

use std::path::PathBuf;

use spdy_fuzz::TARGETS;

fn main() -> std::io::Result<()> {
    let root = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("seeds"), PathBuf::from);
    for (
        number,
        Seed {
            target: door,
            bytes,
            ..
        },
    ) in all().into_iter().enumerate()
    {
        let folder = root.join(door);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{number:05}")), bytes)?;
    }
    Ok(())
}

/// An input to begin with.
struct Seed {
    /// The door that it is for.
    target: &'static str,
    /// What it was made of.
    #[cfg_attr(not(test), expect(dead_code, reason = "a failing test tells it"))]
    name: String,
    /// The input.
    bytes: Vec<u8>,
}

/// All seeds of all doors.
fn all() -> Vec<Seed> {
    let mut seeds = Seeds(Vec::new());
    wire::frames(&mut seeds);
    wire::header_blocks(&mut seeds);
    wire::sessions(&mut seeds);
    text::http(&mut seeds);
    http3::streams(&mut seeds);
    text::upgrades(&mut seeds);
    text::tunnels(&mut seeds);
    text::channels(&mut seeds);
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

/// Seeds as they are gathered.
struct Seeds(Vec<Seed>);

impl Seeds {
    fn push(&mut self, door: &'static str, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        assert!(
            TARGETS.iter().any(|known| known.name == door),
            "no door {door}"
        );
        let (name, bytes) = (name.into(), bytes.into());
        self.0.push(Seed {
            target: door,
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
            target: door,
            name,
            bytes,
        } in all()
        {
            let check = TARGETS
                .iter()
                .find(|known| known.name == door)
                .unwrap()
                .check;
            let kept = std::panic::catch_unwind(|| check(&bytes));
            assert!(kept.is_ok(), "{door}: {name}");
        }
    }

    #[test]
    fn every_target_has_seeds_and_a_libfuzzer_binary() {
        let seeds = all();
        for door in TARGETS {
            assert!(
                seeds.iter().any(|seed| seed.target == door.name),
                "{}",
                door.name
            );
            let target = format!("{}/targets/{}.rs", env!("CARGO_MANIFEST_DIR"), door.name);
            assert!(std::path::Path::new(&target).exists(), "{target}");
        }
    }
}
