//! `EventLog/Backup`: a copy of the log as of one position, read in pages while the hub keeps running. The client
//! pulls: one that reads slowly costs one page of rows. It ends with the key and the connection of who asked.

use std::{collections::VecDeque, sync::Arc};

use proto::v1::{self, backup_part::Part};
use shared::{model::Cursor, tls::PeerIdentity};
use tokio::sync::OwnedSemaphorePermit;
use tokio_stream::Stream;
use tonic::Status;

use super::{BACKUPS_MAX, Inspection, log_status, watch::BUSY};
use crate::log::{BackupPage, BackupPlan, History, LogError, SegmentPlan};

/// Bytes of rows that are looked at for one message.
const PAGE_BYTES: usize = 512 * 1024;

/// One client's copy.
pub(super) struct Backup {
    inspection: Inspection,
    /// The caller.
    peer: Arc<PeerIdentity>,
    up_to: Cursor,
    /// The segments that are not done; the first one is the one that is read.
    segments: VecDeque<SegmentPlan>,
    next: Next,
    rows: u64,
    _place: OwnedSemaphorePermit,
}

/// The next message.
enum Next {
    Begin,
    Segment,
    /// Rows of the segment from a key on.
    Rows(Vec<u8>),
    Nothing,
}

impl Backup {
    /// Begins a copy, if none is being made.
    pub(super) async fn begin(inspection: &Inspection, peer: Arc<PeerIdentity>) -> Result<Self, Status> {
        let place = inspection.backups.clone().try_acquire_owned().map_err(|_| {
            Status::resource_exhausted(format!(
                "{BACKUPS_MAX} backup is being made, as many as may be at a time: try again when it is done"
            ))
        })?;
        let BackupPlan { up_to, segments } = ask(inspection, |history| history.backup()).await?;
        Ok(Self {
            inspection: inspection.clone(),
            peer,
            up_to,
            segments: segments.into(),
            next: Next::Begin,
            rows: 0,
            _place: place,
        })
    }

    /// The parts, made as they are read.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<v1::BackupPart, Status>> + Send {
        futures::stream::unfold(self, |mut backup| async move {
            if matches!(backup.next, Next::Nothing) {
                return None;
            }
            let (drain, lifetime) = (backup.inspection.drain.clone(), backup.peer.lifetime.clone());
            let part = tokio::select! {
                biased;
                () = drain.cancelled() => Err(Status::unavailable("the hub is shutting down: begin again")),
                ended = lifetime.ended() => Err(ended),
                part = backup.part() => part,
            };
            if part.is_err() {
                backup.next = Next::Nothing;
            }
            let said = part.transpose()?;
            Some((said.map(|part| v1::BackupPart { part: Some(part) }), backup))
        })
    }

    async fn part(&mut self) -> Result<Option<Part>, Status> {
        match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Begin => {
                self.next = Next::Segment;
                Ok(Some(Part::Begin(v1::BackupBegin {
                    clusterset: self.inspection.clusterset.to_string(),
                    epoch: self.up_to.epoch.to_string(),
                    revision: self.up_to.revision.0,
                    segments: u32::try_from(self.segments.len()).unwrap_or(u32::MAX),
                })))
            }
            Next::Segment => Ok(Some(match self.segments.front() {
                Some(segment) => {
                    self.next = Next::Rows(vec![0]);
                    let name = segment.name.clone();
                    Part::Segment(v1::BackupSegment { name })
                }
                None => Part::End(v1::BackupEnd { rows: self.rows }),
            })),
            Next::Rows(from) => self.page(from).await.map(Some),
            Next::Nothing => Ok(None),
        }
    }

    async fn page(&mut self, from: Vec<u8>) -> Result<Part, Status> {
        self.inspection.refuse_ended(None, self.peer.key_fingerprint)?;
        let (segment, up_to) = (self.segments[0].clone(), self.up_to);
        let read = move |history: &dyn History| history.backup_page(&segment, &from, up_to, PAGE_BYTES);
        let BackupPage { rows, next } = ask(&self.inspection, read).await?;
        self.next = next.map_or(Next::Segment, Next::Rows);
        if matches!(self.next, Next::Segment) {
            self.segments.pop_front();
        }
        self.rows += rows.len() as u64;
        let rows = rows.into_iter().map(|(key, value)| v1::BackupRow { key, value });
        let rows = rows.collect();
        Ok(Part::Rows(v1::BackupRows { rows }))
    }
}

/// Too many readers are no reason to end a copy: it tries again.
async fn ask<T: Send + 'static>(
    inspection: &Inspection,
    question: impl Fn(&dyn History) -> Result<T, LogError> + Clone + Send + 'static,
) -> Result<T, Status> {
    let mut busy = BUSY;
    loop {
        match inspection.reader.ask(question.clone()).await {
            Err(LogError::Busy) => tokio::time::sleep(busy.failed(rand::random())).await,
            answer => return answer.map_err(log_status),
        }
    }
}
