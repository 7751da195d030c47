//! Owns: everything that is published of one version, in one directory: layout, archives, lists, sums.
//! Never: leaves half of it there: the directory is made beside its place and moved.

use std::{fs, path::Path};

use anyhow::Context;

use crate::{
    architecture::Architecture,
    compile,
    layer::{self, Effort, File, Link},
    layout::{self, Layout, Runs},
    native::{self, Native},
    sbom,
    source::{NAMES, PROGRAMS, Source},
};

/// The file with the digests of all others.
const SUMS: &str = "SHA256SUMS";
/// Neither root nor any user that a machine knows.
const USER: &str = "65532:65532";
/// The pod's command names a program; without one the image says how it is used.
const COMMAND: [&str; 2] = ["/usr/local/bin/tributary-hub", "--help"];
/// Paths of the programs and the licence in an image.
const IN_IMAGE: [&str; 2] = ["usr/local/bin/", "usr/share/doc/tributary/"];
/// Compressed, one architecture stays below so many bytes.
const LAYER_BYTES_MAX: usize = 15_000_000;

/// Builds everything that is published into `out`; the text of SHA256SUMS.
pub(crate) fn published(
    source: &Source,
    architectures: &[Architecture],
    out: &Path,
) -> anyhow::Result<String> {
    if source.revision.ends_with("-dirty") {
        eprintln!("note: files differ from commit {}", source.revision);
    }
    let license = fs::read(source.root.join("LICENSE")).context("cannot read LICENSE")?;
    let mut layout = Layout::new(&source.version, Effort::Best);
    let mut files = Vec::new();
    for &architecture in architectures {
        let programs = compile::compile(source, architecture)?;
        let programs = fs::read(&programs).with_context(|| format!("cannot read {}", programs.display()))?;
        let archive = archive(source, IN_IMAGE, &programs, Some(&license), Vec::new())?;
        let bytes = layout.add(architecture, &archive, &runs(source))?;
        check_size(architecture, bytes)?;
        say_size(architecture, bytes);
        files.push(programs_alone(
            source,
            architecture,
            &programs,
            (Some(&license), Effort::Best),
        )?);
        files.push(file(
            format!("{}.cdx.json", named(source, architecture)),
            sbom::list(source, architecture)?,
        ));
    }
    write(source, layout, files, out)
}

fn named(source: &Source, architecture: Architecture) -> String {
    format!("tributary-{}-linux-{architecture}", source.version)
}

/// The programs without an image, in an archive.
fn programs_alone(
    source: &Source,
    architecture: Architecture,
    programs: &[u8],
    (license, effort): (Option<&[u8]>, Effort),
) -> anyhow::Result<File> {
    let name = named(source, architecture);
    let prefix = format!("{name}/");
    let archive = archive(source, [&prefix; 2], programs, license, Vec::new())?;
    Ok(file(
        format!("{name}.tar.gz"),
        layer::compressed(&archive, effort)?,
    ))
}

/// Puts an image of the programs as tests have them into `out`, and the programs as an archive; the text of SHA256SUMS.
pub(crate) fn for_tests(
    source: &Source,
    architectures: &[Architecture],
    out: &Path,
) -> anyhow::Result<String> {
    let mut layout = Layout::new(&source.version, Effort::Fast);
    let mut files = Vec::new();
    for &architecture in architectures {
        let Native { program, libraries } = native::build(source, architecture)?;
        let archive = archive(source, IN_IMAGE, &program, None, libraries)?;
        say_size(architecture, layout.add(architecture, &archive, &runs(source))?);
        files.push(programs_alone(
            source,
            architecture,
            &program,
            (None, Effort::Fast),
        )?);
    }
    write(source, layout, files, out)
}

/// Writes the layout, its archive and the other files, with the digest of each file but those of the layout.
fn write(source: &Source, layout: Layout, mut files: Vec<File>, out: &Path) -> anyhow::Result<String> {
    let layout = layout.into_files()?;
    files.push(file(
        format!("tributary-{}.oci.tar", source.version),
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

fn say_size(architecture: Architecture, bytes: usize) {
    eprintln!(
        "image for {architecture}: {:.1} MB compressed",
        bytes as f64 / 1e6
    );
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

/// An archive of the programs and the licence, below a prefix each, with the libraries that the programs ask for.
fn archive(
    source: &Source,
    [bin, doc]: [&str; 2],
    programs: &[u8],
    license: Option<&[u8]>,
    libraries: Vec<File>,
) -> anyhow::Result<Vec<u8>> {
    let mut files = vec![File {
        path: format!("{bin}{PROGRAMS}"),
        mode: 0o555,
        bytes: programs.to_vec(),
    }];
    files.extend(license.map(|license| file(format!("{doc}LICENSE"), license.to_vec())));
    files.extend(libraries);
    let links = NAMES.map(|name| Link {
        path: format!("{bin}{name}"),
        file: PROGRAMS,
    });
    layer::archive_with_links(&files, &links, source.created)
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
