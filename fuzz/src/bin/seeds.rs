//! Writes the seeds of every door into a folder for each: `seeds DIR`.

use std::path::PathBuf;

use spdy_fuzz::seeds::{Seed, all};

fn main() -> std::io::Result<()> {
    let root = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("seeds"), PathBuf::from);
    for (number, Seed { door, bytes, .. }) in all().into_iter().enumerate() {
        let folder = root.join(door);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("{number:05}")), bytes)?;
    }
    Ok(())
}
