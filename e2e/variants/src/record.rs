//! Owns: results of one run on disk, a line each as they come, so that an interrupted run can go on.
//! Never: judges them.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The first line: what the results are of.
#[derive(Serialize, Deserialize)]
struct Head {
    fingerprint: String,
}

/// A file that results are added to.
#[derive(Debug)]
pub struct Record(File);

impl Record {
    /// The record of what has this fingerprint. With `resume`, what an earlier run of the same found is kept and
    /// returned; else it begins anew.
    pub fn open<T: DeserializeOwned>(
        path: &Path,
        fingerprint: &str,
        resume: bool,
    ) -> anyhow::Result<(Self, Vec<T>)> {
        let known = fs::read_to_string(path).unwrap_or_default();
        // A line that was not written to its end is as good as none.
        let whole = known.rfind('\n').map_or("", |end| &known[..=end]);
        let mut lines = whole.lines();
        let head = lines
            .next()
            .and_then(|line| serde_json::from_str::<Head>(line).ok());
        let same = head.is_some_and(|head| head.fingerprint == fingerprint);
        let named = || format!("cannot write {}", path.display());
        if resume && same {
            let kept = lines.map(serde_json::from_str).collect::<Result<_, _>>();
            let kept = kept.with_context(|| format!("{} has another form", path.display()))?;
            fs::write(path, whole).with_context(named)?;
            let file = File::options().append(true).open(path).with_context(named)?;
            return Ok((Self(file), kept));
        }
        let mut new = Self(File::create(path).with_context(named)?);
        let fingerprint = fingerprint.to_owned();
        new.add(&Head { fingerprint })?;
        Ok((new, Vec::new()))
    }

    /// Adds a result.
    pub fn add(&mut self, result: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(result)?;
        line.push('\n');
        self.0
            .write_all(line.as_bytes())
            .context("cannot write down a result")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_the_same_goes_on_and_any_other_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record.jsonl");
        let open = |fingerprint, resume| Record::open::<u32>(&path, fingerprint, resume).unwrap();
        let (mut record, known) = open("a", true);
        assert!(known.is_empty());
        record.add(&7).unwrap();
        File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"8")
            .unwrap();
        let (mut record, known) = open("a", true);
        assert_eq!(known, [7], "a line that was cut off does not count");
        record.add(&9).unwrap();
        assert_eq!(open("a", true).1, [7, 9]);
        assert!(open("b", true).1.is_empty(), "another product");
        assert!(open("b", false).1.is_empty());
    }
}
