//! A copy takes the place of a replica's log only as a whole, and what the shared log never had is kept.

use model::{Epoch, UnixMillis};
use tempfile::TempDir;

use super::*;
use crate::{Batch, History, Log, Replica, open_replica};

fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").unwrap()
}

fn epoch() -> Epoch {
    Epoch {
        created_at: UnixMillis(1),
        random: 7,
    }
}

fn open(dir: &Path) -> Box<dyn Replica> {
    open_replica(dir, &clusterset(), epoch()).unwrap()
}

fn apply(replica: &mut dyn Replica, texts: &[&str]) -> Cursor {
    let payloads = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let batch = Batch::new(replica.head(), payloads).unwrap();
    replica.apply(batch).unwrap()
}

/// A log of three segments.
fn leader(dir: &Path) -> (Box<dyn Replica>, Cursor) {
    let mut log = open(dir);
    for texts in [["a", "b"], ["c", "d"]] {
        apply(&mut *log, &texts);
        let rows = Box::new(std::iter::once(b"state".to_vec()));
        log.seal_and_wait(UnixMillis(5), rows).unwrap();
    }
    let head = apply(&mut *log, &["e"]);
    (log, head)
}

/// Copies a log without its last `missing` pages of rows.
fn copy(log: &dyn Log, data_dir: &Path, missing: usize) -> Result<u64, IncompleteCopy> {
    let plan = log
        .reader()
        .wait(|history: &dyn History| history.backup())
        .unwrap();
    let up_to = plan.up_to;
    let begin = CopyBegin {
        end: CopyEnd::at(&clusterset(), up_to),
        segments: plan.segments.len() as u32,
    };
    let mut pages = Vec::new();
    for segment in plan.segments {
        let mut next = Some(vec![0]);
        while let Some(from) = next {
            let asked = segment.clone();
            let page = move |history: &dyn History| history.backup_page(&asked, &from, up_to, 1_000);
            let page = log.reader().wait(page).unwrap();
            next = page.next;
            pages.push((segment.name.clone(), page.rows));
        }
    }
    let sent = pages.iter().map(|(_, rows)| rows.len() as u64).sum();
    let dir = copying_dir(data_dir).unwrap();
    let mut receiving = Receiving::begin(&dir, &clusterset(), begin)?;
    let (count, mut last) = (pages.len() - missing, None);
    for (name, rows) in pages.into_iter().take(count) {
        if last.as_ref() != Some(&name) {
            receiving.segment(&name)?;
        }
        receiving.rows(rows)?;
        last = Some(name);
    }
    receiving.finish((missing == 0).then_some(sent))
}

#[test]
fn a_copy_replaces_an_older_log_and_follows_on() {
    let (there, here) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (mut log, head) = leader(there.path());
    let mut old = open(here.path());
    apply(&mut *old, &["a"]);
    copy(&*log, here.path(), 0).unwrap();
    drop(old);
    replace(here.path(), &clusterset(), None).unwrap();
    let mut replica = open(here.path());
    assert_eq!((replica.head(), replica.stats().segments), (head, 3));
    assert_eq!(apply(&mut *replica, &["f"]), apply(&mut *log, &["f"]));
    let left = fs::read_dir(here.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter()
            .all(|name| name != COPYING && !name.to_string_lossy().starts_with(DIVERGED))
    );
}

#[test]
fn a_copy_that_was_cut_short_replaces_nothing() {
    let (there, here) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (log, _) = leader(there.path());
    let mut old = open(here.path());
    let head = apply(&mut *old, &["a"]);
    drop(old);
    let cut = copy(&*log, here.path(), 1);
    assert!(matches!(cut, Err(IncompleteCopy::CutShort { .. })), "{cut:?}");
    replace(here.path(), &clusterset(), None).unwrap_err();
    assert_eq!(open(here.path()).head(), head);
}

#[test]
fn a_log_that_diverged_is_kept_aside() {
    let (there, here) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (log, head) = leader(there.path());
    let mut other = open(here.path());
    let diverged = apply(&mut *other, &["never", "shared"]);
    drop(other);
    copy(&*log, here.path(), 0).unwrap();
    replace(here.path(), &clusterset(), Some(diverged)).unwrap();
    assert_eq!(open(here.path()).head(), head);
    let aside = here
        .path()
        .join(format!("{DIVERGED}-{}-{}", diverged.epoch, diverged.revision));
    assert_eq!(open(&aside).head(), diverged);
}

#[test]
fn a_replacement_that_was_interrupted_leaves_the_beginning_of_the_copy() {
    let (there, here) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (log, head) = leader(there.path());
    copy(&*log, here.path(), 0).unwrap();
    let names = directory::names(&here.path().join(COPYING)).unwrap();
    assert_eq!(names.len(), 3);
    for name in &names[..2] {
        let name = name.to_string();
        fs::rename(here.path().join(COPYING).join(&name), here.path().join(&name)).unwrap();
    }
    let mut replica = open(here.path());
    assert_eq!(replica.head().revision, model::Revision(4));
    assert_eq!(apply(&mut *replica, &["e"]), head);
}
