//! Owns: everything that is published of one version, in one directory: layout, archives, lists, sums.
//! Never: leaves half of it there: the directory is made beside its place and moved.

use std::{fs, path::Path};

use anyhow::Context;

use crate::{
    architecture::Architecture,
    compile::{self, Profile},
    layer::{self, File, Link},
    layout::{self, Layout, Runs},
    sbom,
    source::{NAMES, PROGRAMS, Source},
};

/// The file with the digests of all others.
const SUMS: &str = "SHA256SUMS";
/// Neither root nor any user that a machine knows.
const USER: &str = "65532:65532";
/// The pod's command names a program; without one the image says how it is used.
const COMMAND: [&str; 2] = ["/usr/local/bin/tributary-hub", "--help"];
/// Compressed, one architecture stays below so many bytes.
const LAYER_BYTES_MAX: usize = 15_000_000;

/// Builds everything into `out`; the text of SHA256SUMS.
pub(crate) fn package(
    source: &Source,
    architectures: &[Architecture],
    profile: Profile,
    out: &Path,
) -> anyhow::Result<String> {
    if source.revision.ends_with("-dirty") {
        eprintln!("note: files differ from commit {}", source.revision);
    }
    let name = format!("tributary-{}", source.version);
    let license = fs::read(source.root.join("LICENSE")).context("cannot read LICENSE")?;
    let mut layout = Layout::new(&source.version);
    let mut files = Vec::new();
    for &architecture in architectures {
        let programs = compile::compile(source, architecture, profile)?;
        let programs = fs::read(&programs).with_context(|| format!("cannot read {}", programs.display()))?;
        let archive = archive(
            source,
            "usr/local/bin/",
            "usr/share/doc/tributary/",
            &programs,
            &license,
        )?;
        let bytes = layout.add(architecture, &archive, &runs(source))?;
        if profile == Profile::Published {
            check_size(architecture, bytes)?;
        }
        eprintln!(
            "image for {architecture}: {:.1} MB compressed",
            bytes as f64 / 1e6
        );
        let of_architecture = format!("{name}-linux-{architecture}");
        let prefix = format!("{of_architecture}/");
        let archive = self::archive(source, &prefix, &prefix, &programs, &license)?;
        files.push(file(
            format!("{of_architecture}.tar.gz"),
            layer::compressed(&archive)?,
        ));
        files.push(file(
            format!("{of_architecture}.cdx.json"),
            sbom::list(source, architecture)?,
        ));
    }
    let layout = layout.into_files()?;
    files.push(file(
        format!("{name}.oci.tar"),
        layer::archive(&layout, source.created)?,
    ));
    let sums: String = files
        .iter()
        .map(|File { path, bytes, .. }| format!("{}  {path}\n", layout::hexadecimal(bytes)))
        .collect();
    files.push(file(SUMS.into(), sums.clone().into_bytes()));
    files.extend(layout.into_iter().map(|blob| File {
        path: format!("oci/{}", blob.path),
        ..blob
    }));
    replace(out, &files)?;
    Ok(sums)
}

fn check_size(architecture: Architecture, bytes: usize) -> anyhow::Result<()> {
    anyhow::ensure!(
        bytes <= LAYER_BYTES_MAX,
        "the image of {architecture} has {bytes} bytes compressed; at most {LAYER_BYTES_MAX} are wanted"
    );
    Ok(())
}

fn runs(source: &Source) -> Runs {
    let labels = [
        ("title", "tributary"),
        ("version", &source.version),
        ("revision", &source.revision),
        ("licenses", "Apache-2.0"),
    ];
    let labels = labels.map(|(name, value)| (format!("org.opencontainers.image.{name}"), value.to_owned()));
    Runs {
        user: Some(USER),
        command: COMMAND.map(String::from).to_vec(),
        labels: labels.to_vec(),
        ..Runs::default()
    }
}

fn file(path: String, bytes: Vec<u8>) -> File {
    File {
        path,
        mode: 0o644,
        bytes,
    }
}

/// An archive of the programs and the licence, each below a prefix.
fn archive(
    source: &Source,
    bin: &str,
    doc: &str,
    programs: &[u8],
    license: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let programs = File {
        path: format!("{bin}{PROGRAMS}"),
        mode: 0o555,
        bytes: programs.to_vec(),
    };
    let license = file(format!("{doc}LICENSE"), license.to_vec());
    let links = NAMES.map(|name| Link {
        path: format!("{bin}{name}"),
        file: PROGRAMS,
    });
    layer::archive_with_links(&[programs, license], &links, source.created)
}

/// Puts the files where a directory is, all at once.
fn replace(out: &Path, files: &[File]) -> anyhow::Result<()> {
    let parent = out.parent().context("--out names no directory")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let fresh = tempfile::tempdir_in(parent)?;
    layout::write(files, fresh.path())?;
    if out.exists() {
        let ours = out.join(SUMS).is_file() || out.read_dir()?.next().is_none();
        anyhow::ensure!(
            ours,
            "{} has files that are not of an image: name another directory",
            out.display()
        );
        fs::remove_dir_all(out)?;
    }
    let fresh = fresh.keep();
    fs::rename(&fresh, out).with_context(|| format!("cannot create {}", out.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_run_as_nobody_that_a_machine_knows() {
        let runs = runs(&Source::of_this_workspace().unwrap());
        let (user, group) = runs.user.and_then(|user| user.split_once(':')).unwrap();
        // A kubelet can judge a number alone, and 0 is root.
        assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    }

    #[test]
    fn what_is_too_large_is_no_image() {
        check_size(Architecture::Amd64, LAYER_BYTES_MAX).unwrap();
        let error = check_size(Architecture::Amd64, LAYER_BYTES_MAX + 1).unwrap_err();
        assert!(error.to_string().starts_with("the image of amd64 has"), "{error}");
    }
}
