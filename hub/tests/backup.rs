//! Copies of a log that grows while it is copied, copies that are not whole, and the way back; and both as they are typed,
//! against a hub over real mutual TLS.

mod support;

use std::{fs, path::Path};

use clap::Parser;
use hub::{
    args::{Cli, Command},
    certs::{CertificateAuthority, Subject, Validity},
    log::{self, BackupPlan, Batch, CopyEnd, Log, LogCopy, OpenError},
    maintain,
};
use shared::model::{ClusterId, Clusterset, Cursor, Epoch, Revision, UnixMillis};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use support::clusterset;

const PAGE_BYTES: usize = 4_000;

fn open(dir: &Path) -> Box<dyn Log> {
    log::open(dir, &clusterset(), Epoch::default().next(UnixMillis(1), 1)).expect("opened")
}

/// So many events in batches of three, a segment sealed after each second one.
fn grow(log: &mut dyn Log, batches: u64) {
    for number in 0..batches {
        let events = (0..3).map(|event| vec![7; 300 + event]).collect();
        let batch = Batch::new(log.head(), events).expect("within bounds");
        log.append_and_wait(batch).expect("durable");
        if number % 2 == 1 {
            seal(log);
        }
    }
}

fn seal(log: &mut dyn Log) {
    let state = log.head().revision.0.to_be_bytes().to_vec();
    let rows = Box::new(std::iter::once(state));
    log.seal_and_wait(UnixMillis(2), rows).expect("sealed");
}

fn next_epoch(log: &mut dyn Log) {
    let rows = Box::new(std::iter::once(b"state".to_vec()));
    let epoch = log.head().epoch.next(UnixMillis(3), 2);
    log.begin_epoch(epoch, rows).expect("begun");
}

/// Copies what is planned; `meanwhile` is called before every page, `take` says which pages are written.
fn copy(
    log: &mut dyn Log,
    to: &Path,
    mut meanwhile: impl FnMut(&mut dyn Log),
    take: impl Fn(usize) -> bool,
) -> Cursor {
    let reader = log.reader();
    let BackupPlan { up_to, segments } = reader.wait(|history| history.backup()).expect("planned");
    let mut copy = LogCopy::begin(to, &clusterset()).expect("begun");
    let mut pages = 0;
    for segment in segments {
        copy.segment(&segment.name).expect("made");
        let mut next = Some(vec![0]);
        while let Some(from) = next {
            meanwhile(log);
            let segment = segment.clone();
            let read =
                move |history: &dyn log::History| history.backup_page(&segment, &from, up_to, PAGE_BYTES);
            let page = reader.wait(read).expect("read");
            next = page.next;
            if take(pages) {
                copy.rows(page.rows).expect("written");
            }
            pages += 1;
        }
    }
    copy.finish(&CopyEnd::at(&clusterset(), up_to)).expect("durable");
    assert!(
        pages > 5,
        "{pages} pages are not enough for anything to happen between them"
    );
    up_to
}

fn everything(log: &dyn Log, up_to: Cursor) -> Vec<(Epoch, Revision, Vec<u8>)> {
    let read = move |history: &dyn log::History| {
        let mut found = Vec::new();
        for epoch in history
            .epochs()?
            .into_iter()
            .filter(|epoch| *epoch <= up_to.epoch)
        {
            let page = history.read(epoch, Revision(0), log::Budget::default())?;
            found.extend(
                page.events
                    .into_iter()
                    .map(|event| (epoch, event.revision, event.payload)),
            );
        }
        found.retain(|(epoch, revision, _)| (*epoch, *revision) <= (up_to.epoch, up_to.revision));
        Ok(found)
    };
    log.reader().wait(read).expect("read")
}

#[test]
fn a_copy_of_a_log_that_grows_ends_where_it_was_begun() {
    let (dir, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut log = open(dir.path());
    grow(&mut *log, 7);
    next_epoch(&mut *log);
    grow(&mut *log, 7);
    let mut happened = 0;
    let meanwhile = |log: &mut dyn Log| {
        happened += 1;
        match happened {
            2 => next_epoch(log),
            3 => seal(log),
            _ => grow(log, 1),
        }
    };
    let up_to = copy(&mut *log, to.path(), meanwhile, |_| true);
    assert_ne!(log.head(), up_to);
    let report = log::verify(to.path(), &mut |_| {}).expect("readable");
    assert!(report.is_good() && report.logs.len() == 1, "{report:?}");
    let copied = open(to.path());
    assert_eq!(copied.head(), up_to);
    let events = everything(&*copied, up_to);
    assert_eq!(events.len(), 42);
    assert_eq!(events, everything(&*log, up_to));
}

#[test]
fn a_copy_that_lacks_a_page_is_no_backup_and_nothing_is_put_anywhere() {
    let (dir, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut log = open(dir.path());
    grow(&mut *log, 13);
    let mut pages = 0;
    copy(
        &mut *log,
        TempDir::new().unwrap().path(),
        |_| pages += 1,
        |_| true,
    );
    // Without its last page it is a whole log, of a moment before.
    for missing in 0..pages {
        let to = TempDir::new().unwrap();
        copy(&mut *log, to.path(), |_| {}, |page| page != missing);
        let error = maintain::restore(to.path(), data.path(), None, UnixMillis(5), 5).expect_err("not whole");
        assert!(error.to_string().contains("is no whole backup"), "{error:#}");
        assert!(matches!(
            log::contents(data.path()),
            Err(OpenError::Missing { .. })
        ));
    }
}

/// A hub on loopback, and certificates to ask it with.
struct RunningHub {
    files: TempDir,
    address: String,
    _runtime: Runtime,
}

impl RunningHub {
    fn new() -> Self {
        let files = TempDir::new().expect("a directory");
        let authority = support::authority();
        issue(
            files.path(),
            &authority,
            "alice",
            &Subject::Operator("alice".to_owned()),
        );
        let east = Subject::Member(ClusterId::new("east").expect("valid"));
        issue(files.path(), &authority, "east", &east);
        fs::write(files.path().join("ca.crt"), authority.certificate_pem()).expect("written");
        let runtime = Runtime::new().expect("a runtime");
        let port = runtime.block_on(support::serve(&authority));
        Self {
            files,
            address: format!("https://127.0.0.1:{port}"),
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn as_whom(&self, who: &str, words: &[&str]) -> Result<(), String> {
        let (cert, key) = (self.path(&format!("{who}.crt")), self.path(&format!("{who}.key")));
        let ca = self.path("ca.crt");
        let flags = [
            "--hub",
            &self.address,
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
            "--tls-ca",
            &ca,
        ];
        log_command(&[words, &flags].concat())
    }
}

fn log_command(words: &[&str]) -> Result<(), String> {
    let cli = Cli::try_parse_from(["tributary-hub", "log"].iter().chain(words))
        .map_err(|error| error.to_string())?;
    let Command::Log(args) = cli.command else {
        panic!("another command")
    };
    maintain::command::run(args).map_err(|error| format!("{error:#}"))
}

fn issue(directory: &Path, authority: &CertificateAuthority, name: &str, subject: &Subject) {
    let issued = authority
        .issue(subject, Validity::days_from_now(1))
        .expect("issued");
    fs::write(directory.join(format!("{name}.crt")), &issued.certificate_pem).expect("written");
    fs::write(directory.join(format!("{name}.key")), &issued.key_pem).expect("written");
}

#[test]
fn a_backup_is_made_of_a_running_hub_and_put_back_where_no_log_is() {
    let running = RunningHub::new();
    let (backup, data) = (running.path("backup"), running.path("data"));
    let said = running
        .as_whom("east", &["backup", &backup])
        .expect_err("refused");
    assert!(said.contains("only an operator copies the log"), "{said}");
    running.as_whom("alice", &["backup", &backup]).expect("copied");
    let said = running
        .as_whom("alice", &["backup", &backup])
        .expect_err("it is there");
    assert!(said.contains("is there already"), "{said}");

    // An interrupted restore leaves no log, and is repeated.
    fs::create_dir_all(Path::new(&data).join("restoring")).expect("made");
    let said = log::open(Path::new(&data), &clusterset(), Epoch::default()).err();
    assert!(matches!(said, Some(OpenError::Restoring { .. })), "{said:?}");
    let of_another = [
        "restore",
        &backup,
        "--data",
        &data,
        "--clusterset",
        "example.org/other",
    ];
    let said = log_command(&of_another).expect_err("of another clusterset");
    assert!(said.contains("not of example.org/other"), "{said}");
    assert!(matches!(
        log::contents(Path::new(&data)),
        Err(OpenError::Restoring { .. } | OpenError::Missing { .. })
    ));
    let ours = [
        "restore",
        &backup,
        "--data",
        &data,
        "--clusterset",
        "example.org/default",
    ];
    log_command(&ours).expect("restored");
    let other = Clusterset::new("example.org", "other").expect("valid");
    let said = log::open(Path::new(&data), &other, Epoch::default()).err();
    assert!(matches!(said, Some(OpenError::NotOurs { .. })), "{said:?}");
    let restored = open(Path::new(&data));
    let original = open(Path::new(&backup)).head();
    assert!(restored.head().epoch > original.epoch && restored.head().revision == Revision(0));
    drop(restored);
    let said = log_command(&["restore", &backup, "--data", &data]).expect_err("there is a log");
    assert!(said.contains("holds an event log already"), "{said}");
}
