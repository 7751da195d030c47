//! The Helm charts of this version, inside a program, and the rights that CoreDNS needs.
//! It unpacks them; it knows nothing of what is in them.

use std::{fs, io, path::Path};

/// Paths below `deploy`, and contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Writes the charts below a directory: `charts/crds`, `charts/hub`, `charts/agent`.
pub fn unpack(into: &Path) -> io::Result<()> {
    for (name, content) in FILES {
        let path = into.join(name);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, content)?;
    }
    Ok(())
}

/// The manifest (YAML) with which CoreDNS may read ServiceImports.
pub fn coredns_rights() -> &'static str {
    include_str!("../../coredns/rbac.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chart_is_unpacked_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        unpack(directory.path()).expect("written");
        for chart in ["crds", "hub", "agent"] {
            let chart = directory.path().join("charts").join(chart);
            for file in [
                "Chart.yaml",
                "values.yaml",
                "values.schema.json",
                "templates/_helpers.tpl",
            ] {
                assert!(chart.join(file).is_file(), "{}/{file}", chart.display());
            }
        }
        let version = fs::read_to_string(directory.path().join("charts/hub/Chart.yaml")).expect("read");
        assert!(
            version.contains(concat!("version: ", env!("CARGO_PKG_VERSION"))),
            "{version}"
        );
    }
}
