//! What would be applied, as files: a namespace, Secrets, and values of the charts.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use anyhow::Context;
use serde_json::Value;

use super::cluster::{namespace, secret};

/// Writes all of it, and returns what to print.
pub(super) fn write(
    directory: &Path,
    place: &str,
    secrets: &[(&str, Vec<(&str, &str)>)],
    (chart, values): (&str, &Value),
) -> anyhow::Result<String> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let mut names = vec!["namespace.yaml".to_owned(), format!("values-{chart}.yaml")];
    file(directory, &names[0], &namespace(place))?;
    file(directory, &names[1], values)?;
    for (name, texts) in secrets {
        let path = format!("secret-{name}.yaml");
        file(directory, &path, &secret(place, name, texts))?;
        names.push(path);
    }
    Ok(format!(
        "Nothing was changed in a cluster. In {}: {}.\nSeal the Secrets, or keep them out of Git: whoever reads them can act \
         as the hub or join. The charts are tributary-crds and tributary-{chart} {}, namespace {place}.\n",
        directory.display(),
        names.join(", "),
        env!("CARGO_PKG_VERSION")
    ))
}

/// Writes a file that its owner may read only.
fn file(directory: &Path, name: &str, value: &Value) -> anyhow::Result<()> {
    let path = directory.join(name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&path).and_then(|mut file| {
        let text = serde_norway::to_string(value).map_err(std::io::Error::other)?;
        file.write_all(text.as_bytes())
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}
