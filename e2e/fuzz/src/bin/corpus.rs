//! Owns: writes the seeds of each target below a directory: `cargo run --bin corpus DIR`.
//! Never: removes what a fuzzer found.

use std::{env, fs, io, path::PathBuf};

use tributary_fuzz::{
    decoders::TARGETS,
    seeds::{kept, seeds},
};

fn main() -> io::Result<()> {
    let directory = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "corpus".into()));
    for (target, _) in TARGETS {
        let directory = directory.join(target);
        fs::create_dir_all(&directory)?;
        for (number, bytes) in seeds(target).into_iter().chain(kept(target)).enumerate() {
            fs::write(directory.join(format!("seed-{number}")), bytes)?;
        }
    }
    Ok(())
}
