//! Lists the files of the charts, so that the compiler puts them into the program.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// The directories that go into the program, below `deploy`.
const DIRECTORIES: [&str; 4] = ["charts/crds", "charts/hub", "charts/agent", "coredns"];

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(io::Error::other);
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let deploy = manifest.parent().unwrap_or(&manifest);
    let mut files = Vec::new();
    for directory in DIRECTORIES {
        let directory = deploy.join(directory);
        println!("cargo::rerun-if-changed={}", directory.display());
        collect(&directory, &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(deploy).map_err(io::Error::other)?;
        writeln!(
            list,
            "    ({:?}, include_bytes!({:?})),",
            name.display().to_string(),
            file.display().to_string()
        )
        .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("files.rs"), list)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
