//! Owns: answers in pages: all pages of one answer are of the revision of the first, which is kept as long as somebody asks.
//! Never: lets the writer know.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prost::Message as _;
use proto::v1;
use shared::model::{Cursor, sync::MESSAGE_BYTES_MAX};
use tonic::Status;

use super::{
    Inspection, Sight, convert,
    page::{Last, Page, PageToken},
    pins::{ForWhom, PINNED_FOR_MEMBERS_MAX, PINNED_FOR_PEOPLE_MAX, PINNED_MILLIS, Pins},
    query::{self, Seen, Selection},
};
use crate::{clock::Clock, writer::Published};

/// Interval of dropping revisions that nobody uses any more.
const LET_GO_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of an answer beside its objects.
const ANSWER_FRAME_BYTES: usize = 4 * 1024;

/// The revisions whose pages are still asked for. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Pinned(Arc<Mutex<Pins>>);

impl Pinned {
    fn lock(&self) -> MutexGuard<'_, Pins> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what nobody asks for any more, for ever.
    pub async fn let_go(&self, clock: Clock) {
        loop {
            tokio::time::sleep(LET_GO_INTERVAL).await;
            self.lock().let_go(clock.now());
        }
    }
}

/// A request for a page.
pub(super) struct Asked<'a> {
    pub(super) method: &'static str,
    pub(super) selection: Selection,
    pub(super) size: u32,
    pub(super) token: &'a str,
}

/// The state that a page is of.
enum Kept {
    /// The newest; it is not pinned yet.
    Present(Arc<Published>),
    /// One that is kept, and for how long it was not the newest any more when it was asked for, in milliseconds.
    Pinned(Arc<Published>, u64),
}

/// The fill of a page, with the last object shown.
enum Filled {
    /// There is no more room in it.
    Page(Last),
    /// Nothing is left to show.
    Whole,
}

/// The content of a page.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) head: Cursor,
    /// Time since it was the newest revision, in milliseconds.
    pub(super) age_millis: u64,
    pub(super) members: Vec<v1::MemberState>,
    pub(super) revoked_keys: Vec<v1::RevokedKey>,
    pub(super) exports: Vec<v1::RecordedExport>,
    pub(super) imports: Vec<v1::RecordedImport>,
    pub(super) profiles: Vec<v1::Profile>,
    /// The policy on lost members.
    pub(super) loss: v1::LossSettings,
    /// The policy on mass withdrawals.
    pub(super) brake: v1::BrakeSettings,
    /// Asks for the next page; empty: there is none.
    pub(super) next: String,
}

impl Inspection {
    /// Waits for the revision that the first page is to show. Later pages are of the revision of the first. Called
    /// before a turn is taken: a waiting caller delays no other answer.
    pub(super) async fn first_page_at(&self, token: &str, revision: u64) -> Result<(), Status> {
        if token.is_empty() {
            self.at_least(revision).await?;
        }
        Ok(())
    }

    /// A page of what is selected: the first is of the present, the others are of the revision of the first.
    pub(super) async fn page(&self, asked: Asked<'_>) -> Result<Shown, Status> {
        let question = asked.selection.question(asked.method);
        let (kept, last) = if asked.token.is_empty() {
            (Kept::Present(self.present()?), None)
        } else {
            let token: PageToken = asked.token.parse().map_err(|_| no_token())?;
            if token.question != question {
                return Err(another_question());
            }
            (self.kept(&token)?, Some(token.last))
        };
        let (published, age_millis) = match &kept {
            Kept::Present(published) => (published, 0),
            Kept::Pinned(published, age_millis) => (published, *age_millis),
        };
        let sight = asked.selection.sight.clone();
        let fill = {
            let (inspection, published) = (self.clone(), published.clone());
            let (selection, size) = (asked.selection, asked.size);
            move || inspection.fill(&published, &selection, size, last)
        };
        let (mut shown, filled) = self.beside.done(fill).await??;
        shown.age_millis = age_millis;
        let Filled::Page(last) = filled else {
            return Ok(shown);
        };
        let Cursor { epoch, revision, .. } = published.head;
        let token = PageToken {
            epoch,
            revision,
            question,
            last,
        };
        shown.next = token.to_string();
        if let Kept::Present(published) = kept {
            let for_whom = match sight {
                Sight::Of(_) => ForWhom::Members,
                Sight::Everything => ForWhom::People,
            };
            self.pinned.lock().pin(published, for_whom, self.clock.now());
        }
        Ok(shown)
    }

    /// The state of the revision that a token names.
    fn kept(&self, token: &PageToken) -> Result<Kept, Status> {
        let now = self.clock.now();
        let pinned = self.pinned.lock().find(token.epoch, token.revision, now);
        let present = self.present()?;
        let is_present = (present.head.epoch, present.head.revision) == (token.epoch, token.revision);
        match pinned {
            Some((pinned, _)) if is_present => return Ok(Kept::Pinned(pinned, 0)),
            Some((pinned, since)) => return Ok(Kept::Pinned(pinned, now.saturating_sub(since))),
            None if is_present => return Ok(Kept::Present(present)),
            None => {}
        }
        Err(Status::aborted(format!(
            "the pages before this one are of revision {} of epoch {}, which the hub does not keep any more. It keeps \
             {PINNED_FOR_PEOPLE_MAX} revisions for operators and readers and {PINNED_FOR_MEMBERS_MAX} for members, each for {} s \
             after its last page. Start again, without page_token",
            token.revision,
            token.epoch,
            PINNED_MILLIS / 1_000
        )))
    }

    /// Shows what comes next and has room in a page.
    fn fill(
        &self,
        published: &Published,
        selection: &Selection,
        size: u32,
        after: Option<Last>,
    ) -> Result<(Shown, Filled), Status> {
        let mut shown = Shown {
            head: published.head,
            loss: convert::loss(&published.state),
            brake: convert::brake(&published.state),
            ..Shown::default()
        };
        let mut page = Page::of(size);
        let mut last = None;
        for seen in query::objects(published, selection, after.as_ref()) {
            let of_seen = seen.last();
            let object = self.object(seen, published);
            let bytes = object.bytes();
            if bytes > MESSAGE_BYTES_MAX - ANSWER_FRAME_BYTES {
                return Err(too_large(&of_seen, bytes));
            }
            if !page.takes(bytes) {
                let filled = last.or_else(|| after.clone()).map_or(Filled::Whole, Filled::Page);
                return Ok((shown, filled));
            }
            object.show(&mut shown);
            last = Some(of_seen);
        }
        Ok((shown, Filled::Whole))
    }

    fn object(&self, seen: Seen, published: &Published) -> Object {
        match seen {
            Seen::Member(seen) => {
                let report = self.reports.of(&seen.cluster);
                Object::Member(Box::new(convert::member(*seen, report, self.reports.now())))
            }
            Seen::RevokedKey(key, revoked) => Object::RevokedKey(convert::revoked_key(key, revoked)),
            Seen::Export(seen) => {
                let arrival = query::arrival(published, &self.reports.words(), &seen);
                Object::Export(Box::new(convert::export(seen, arrival.as_ref())))
            }
            Seen::Import(seen) => Object::Import(Box::new(convert::import(seen))),
            Seen::Profile(_, profile) => Object::Profile(convert::profile(&profile)),
        }
    }
}

/// One object as a message.
enum Object {
    Member(Box<v1::MemberState>),
    RevokedKey(v1::RevokedKey),
    Export(Box<v1::RecordedExport>),
    Import(Box<v1::RecordedImport>),
    Profile(v1::Profile),
}

impl Object {
    fn bytes(&self) -> usize {
        match self {
            Self::Member(member) => member.encoded_len(),
            Self::RevokedKey(key) => key.encoded_len(),
            Self::Export(export) => export.encoded_len(),
            Self::Import(import) => import.encoded_len(),
            Self::Profile(profile) => profile.encoded_len(),
        }
    }

    fn show(self, shown: &mut Shown) {
        match self {
            Self::Member(member) => shown.members.push(*member),
            Self::RevokedKey(key) => shown.revoked_keys.push(key),
            Self::Export(export) => shown.exports.push(*export),
            Self::Import(import) => shown.imports.push(*import),
            Self::Profile(profile) => shown.profiles.push(profile),
        }
    }
}

fn no_token() -> Status {
    Status::invalid_argument(
        "page_token is no token of this hub: leave it empty, or repeat the next_page_token of the answer before, letter by \
         letter",
    )
}

fn another_question() -> Status {
    Status::invalid_argument(
        "page_token belongs to another request: ask for the next page as for the first one, with the same cluster, \
         namespace and parts, or leave page_token empty",
    )
}

fn too_large(what: &Last, bytes: usize) -> Status {
    Status::resource_exhausted(format!(
        "{what} alone has {bytes} bytes, and a message holds {MESSAGE_BYTES_MAX}: ask for the other parts, or for other \
         clusters and namespaces; EventLog/List shows what it was recorded from"
    ))
}
