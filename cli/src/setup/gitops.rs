//! Writes what would be applied as files: a namespace, Secrets, and values of the charts.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, anyhow};
use serde_json::Value;
use tempfile::NamedTempFile;

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
    let mut texts = Vec::new();
    for (name, data) in secrets {
        let file = format!("secret-{name}.yaml");
        texts.push((directory.join(&file), yaml(&secret(place, name, data))?));
        names.push(file);
    }
    // Nothing is written if a Secret was sealed since.
    let wanted: Vec<_> = texts
        .into_iter()
        .map(|(path, text)| Ok((is_there(&path, &text)?, path, text)))
        .collect::<anyhow::Result<_>>()?;
    replace(directory, &names[0], &yaml(&namespace(place))?)?;
    replace(directory, &names[1], &yaml(values)?)?;
    for (_, path, text) in wanted.iter().filter(|(is_there, ..)| !is_there) {
        create(path, text)?;
    }
    Ok(format!(
        "Nothing was changed in a cluster. In {}: {}.\nSeal the Secrets, or keep them out of Git: whoever reads them can act \
         as the hub or join. The charts are tributary-crds and tributary-{chart} {}, namespace {place}.\n",
        directory.display(),
        names.join(", "),
        env!("CARGO_PKG_VERSION")
    ))
}

fn yaml(value: &Value) -> anyhow::Result<String> {
    serde_norway::to_string(value).context("cannot write YAML")
}

/// True if the file has this text already.
///
/// # Errors
///
/// It has another text: a person may have sealed it, or put a join string into it.
fn is_there(path: &Path, text: &str) -> anyhow::Result<bool> {
    match fs::read_to_string(path) {
        Ok(there) if there == text => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() != io::ErrorKind::InvalidData => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        _ => Err(is_other(path)),
    }
}

fn is_other(path: &Path) -> anyhow::Error {
    anyhow!(
        "{} exists, perhaps sealed: move it away, or name another directory",
        path.display()
    )
}

/// Makes a file that its owner may read only, from its first byte on.
fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
    {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(is_other(path)),
        written => written.with_context(|| format!("cannot write {}", path.display())),
    }
}

/// Makes a file that its owner may read only, or replaces it as a whole.
fn replace(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    let cannot = || format!("cannot write {}", path.display());
    let mut file = NamedTempFile::new_in(directory).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.persist(&path).with_context(cannot)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn print(directory: &Path, values: &Value) -> anyhow::Result<String> {
        let secrets = [("tributary-join", vec![("join", "a reference")])];
        write(directory, "ns", &secrets, ("agent", values))
    }

    #[test]
    fn a_secret_is_its_owners_and_is_never_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let into = directory.path().join("out");
        print(&into, &json!({"a": 1})).expect("written");
        let secret = into.join("secret-tributary-join.yaml");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&secret).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        // Values follow the flags; what was not touched is no hindrance.
        let values = || fs::read_to_string(into.join("values-agent.yaml")).expect("read");
        print(&into, &json!({"a": 2})).expect("written again");
        assert_eq!(values(), "a: 2\n");
        fs::write(&secret, "sealed").expect("written");
        let why = print(&into, &json!({"a": 3}))
            .expect_err("it is sealed")
            .to_string();
        assert!(why.contains("perhaps sealed: move it away"), "{why}");
        assert_eq!(fs::read_to_string(&secret).expect("read"), "sealed");
        assert_eq!(values(), "a: 2\n", "nothing is written");
        // Nor is a file that came between the look and the write.
        create(&secret, "a key").expect_err("it is there");
        fs::write(&secret, [0xff]).expect("written");
        print(&into, &json!({})).expect_err("it is no text");
    }
}
