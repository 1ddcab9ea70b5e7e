//! Where fuzzing begins: the vectors of the tree, as inputs of the doors.
//!
//! Nothing of this is kept in files: a vector that changes changes its seeds. They are read by the targets, and
//! by the tests here, which hold every seed to the laws without any fuzzer.

mod wire;

use crate::DOORS;

/// An input to begin with.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The door that it is for.
    pub door: &'static str,
    /// What it was made of.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// All seeds of all doors.
#[must_use]
pub fn all() -> Vec<Seed> {
    let mut seeds = Seeds(Vec::new());
    wire::frames(&mut seeds);
    wire::header_blocks(&mut seeds);
    wire::sessions(&mut seeds);
    wire::profiles(&mut seeds);
    seeds.0
}

/// Seeds as they are gathered.
struct Seeds(Vec<Seed>);

impl Seeds {
    fn push(&mut self, door: &'static str, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        assert!(
            DOORS.iter().any(|known| known.name == door),
            "no door {door}"
        );
        let (name, bytes) = (name.into(), bytes.into());
        self.0.push(Seed { door, name, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_keeps_the_laws_of_its_door() {
        for Seed { door, name, bytes } in all() {
            let check = DOORS.iter().find(|known| known.name == door).unwrap().check;
            let kept = std::panic::catch_unwind(|| check(&bytes));
            assert!(kept.is_ok(), "{door}: {name}");
        }
    }

    #[test]
    fn every_door_has_seeds_and_a_target() {
        let seeds = all();
        for door in DOORS {
            assert!(
                seeds.iter().any(|seed| seed.door == door.name),
                "{}",
                door.name
            );
            let target = format!("{}/targets/{}.rs", env!("CARGO_MANIFEST_DIR"), door.name);
            assert!(std::path::Path::new(&target).exists(), "{target}");
        }
    }
}
