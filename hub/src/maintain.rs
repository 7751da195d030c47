//! Owns: what is done to the log of a hub that is stopped: old history removed, a member evicted, a backup put back;
//! `command` asks for it, `figures` sums up its history. `backup` copies the log of a hub that runs, over gRPC.
//! Never: works beside a hub; the log has one owner.

mod backup;
pub mod command;
mod figures;

use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use shared::model::{ClusterId, Clusterset, Cursor, Epoch, UnixMillis};

use crate::snapshot;
use crate::{
    bounds::Bounds,
    effects,
    fold::Command,
    log::{self, Batch, Contents, CopyEnd, OpenError, Progress, Report, Retention, Stats},
    recall::DifferenceCheck,
    replay::replay,
    writer::{Core, Operated, Options, Reply, Request},
};

/// Most members that a refusal names.
const MEMBERS_NAMED_MAX: usize = 20;

/// Writes the state into a new segment, removes those that are not to be kept, and gives the figures of before and after.
pub fn compact(
    data: &Path,
    clusterset: &Clusterset,
    retention: Retention,
    now: UnixMillis,
) -> anyhow::Result<(Stats, Stats)> {
    // There is a log, which keeps its epoch.
    let mut log = log::open(data, clusterset, Epoch::default())?;
    let before = log.stats();
    let (state, _) = replay(&log.reader())?;
    log.seal_and_wait(now, Box::new(snapshot::rows(state)))?;
    log.retain_and_wait(retention, now);
    drop(log);
    let after = log::open(data, clusterset, Epoch::default())?.stats();
    Ok((before, after))
}

/// An operator ends a membership, as over gRPC; without `confirm` nothing is recorded.
pub fn evict(
    data: &Path,
    clusterset: &Clusterset,
    cluster: ClusterId,
    operator: &str,
    confirm: bool,
    now: UnixMillis,
) -> anyhow::Result<Operated> {
    let mut log = log::open(data, clusterset, Epoch::default())?;
    let (state, head) = replay(&log.reader())?;
    if state.current_member(&cluster).is_none() {
        // The refusal of a running hub names a command that asks it.
        let ids = state.members().keys();
        let members = ids.filter(|id| state.current_member(id).is_some());
        let named: Vec<&str> = members.take(MEMBERS_NAMED_MAX).map(ClusterId::as_str).collect();
        bail!(
            "cluster {cluster} is not a member of the clusterset {}; these are: {}",
            clusterset.name(),
            named.join(", ")
        );
    }
    let options = Options {
        hub: operator.into(),
        hub_version: env!("CARGO_PKG_VERSION").into(),
        adopt_epoch: false,
        bounds: Bounds::default(),
    };
    let recorded_at = state.recorded_at();
    let mut core = Core::new(state, head, recorded_at, options, 0);
    // As a hub that starts: what is recorded from here on follows its rules.
    core.adopt_rules(now);
    let operate = Request::Operate {
        token: 0,
        command: Command::Evict {
            cluster,
            operator: operator.into(),
        },
        confirm,
        describe: effects::of,
    };
    core.handle(operate, now, 0);
    let batch = core.take_batch();
    let operated = batch.replies.into_iter().find_map(|reply| match reply {
        Reply::Operated(_, outcome) => Some(outcome),
        _ => None,
    });
    let operated = operated.ok_or_else(|| anyhow!("the decision was not answered"))?;
    let operated = operated.map_err(|rejection| anyhow!("{rejection}"))?;
    if confirm && operated.revision.is_some() {
        let recorded = log.append_and_wait(Batch::chained(head, batch.events)?)?;
        ensure!(
            recorded == batch.head,
            "the log stands at {recorded}, not at {}",
            batch.head
        );
    }
    Ok(operated)
}

/// Verifies everything below a data directory: rows, the chain, and where each difference leads.
pub fn verify(data: &Path, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Report, OpenError> {
    log::verify_payloads(data, progress, &mut DifferenceCheck::default())
}

/// Puts a verified backup into a data directory that holds no log, and begins an epoch above the one in it: every
/// member receives everything anew, and nobody takes the old history for the present. Gives its head. With `wanted` it
/// is the log of that clusterset or stays where it is.
pub fn restore(
    backup: &Path,
    data: &Path,
    wanted: Option<&Clusterset>,
    now: UnixMillis,
    random: u64,
) -> anyhow::Result<Vec<Cursor>> {
    let end = CopyEnd::read(backup).with_context(|| {
        format!(
            "{} is no whole backup: what says up to where it reaches cannot be read",
            backup.display()
        )
    })?;
    let mut heads = Vec::new();
    log::restore(backup, data, |restoring| {
        // The store writes where it reads, so that the copy is verified and the backup may be read-only.
        check(backup, &verify(restoring, &mut |_| {})?, wanted, end.as_ref())?;
        for Contents { clusterset, .. } in log::contents(restoring)? {
            heads.push(begin_epoch(restoring, &clusterset, now, random)?);
        }
        anyhow::Ok(())
    })?;
    Ok(heads)
}

/// Refuses what is no whole backup, and one of another clusterset.
fn check(
    backup: &Path,
    report: &Report,
    wanted: Option<&Clusterset>,
    end: Option<&CopyEnd>,
) -> anyhow::Result<()> {
    if let Some(wanted) = wanted
        && let Some(other) = report
            .logs
            .iter()
            .find(|log| log.clusterset != wanted.to_string())
    {
        bail!(
            "{} is a backup of clusterset {}, not of {wanted}: nothing was restored",
            backup.display(),
            other.clusterset
        );
    }
    let damaged = report.logs.iter().find(|log| !log.corruptions.is_empty());
    if let Some(first) = damaged.and_then(|log| log.corruptions.first()) {
        bail!("{} is no whole backup: {first}", backup.display());
    }
    if let Some(end) = end.filter(|end| !end.is_reached(report)) {
        bail!(
            "{} is no whole backup: it is to reach revision {} of epoch {}, and ends before that. Take another one",
            backup.display(),
            end.revision,
            end.epoch
        );
    }
    Ok(())
}

fn begin_epoch(data: &Path, clusterset: &Clusterset, now: UnixMillis, random: u64) -> anyhow::Result<Cursor> {
    let mut log = log::open(data, clusterset, Epoch::default())?;
    let (mut state, head) = replay(&log.reader())?;
    state.begin_epoch();
    let rows = Box::new(snapshot::rows(state));
    Ok(log.begin_epoch(head.epoch.next(now, random), rows)?)
}

#[cfg(test)]
mod tests {
    use shared::model::{KeyFingerprint, Revision};

    use super::*;
    use crate::fold::{self, DraftFact, State};

    const KEEP_NOTHING: Retention = Retention {
        age_millis: 0,
        bytes: 0,
    };

    fn clusterset() -> Clusterset {
        Clusterset::new("example.org", "default").expect("a clusterset")
    }

    fn east() -> ClusterId {
        ClusterId::new("east").expect("a cluster id")
    }

    fn admit() -> Command {
        Command::Admit {
            cluster: east(),
            key: KeyFingerprint([7; 32]),
            cluster_fingerprint: "uid-of-east".into(),
            presented: Default::default(),
        }
    }

    /// A data directory whose log knows the member east.
    fn with_a_member() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        let mut log = log::open(dir.path(), &clusterset(), epoch).expect("it opens");
        let mut state = State::new();
        let mut payloads = Vec::new();
        let from = state.fold_version();
        for command in [Command::AdoptFoldVersion { from }, admit()] {
            for draft in fold::decide(&state, &command).expect("it is admitted") {
                let fact = match &draft.fact {
                    DraftFact::Encoded(fact) => fact.clone(),
                    DraftFact::Decided(fact) => shared::wire::encode_fact(fact),
                };
                let event = draft.event(&state, fact, UnixMillis(2_000));
                fold::apply(&mut state, &event);
                payloads.push(shared::wire::encode_event(&event));
            }
        }
        let batch = Batch::new(log.head(), payloads).expect("a batch");
        log.append_and_wait(batch).expect("it is durable");
        dir
    }

    #[test]
    fn an_evicted_member_is_evicted_once_and_its_key_outlives_the_history() {
        let dir = with_a_member();
        let evict = |confirm| {
            evict(
                dir.path(),
                &clusterset(),
                east(),
                "alice",
                confirm,
                UnixMillis(3_000),
            )
        };
        let tried = evict(false).expect("it is a member");
        assert_eq!((tried.revision, tried.kinds), (None, vec!["member_evicted"]));
        assert!(!tried.effects.is_empty());
        let done = evict(true).expect("it is a member");
        assert!(done.revision.is_some());
        compact(dir.path(), &clusterset(), KEEP_NOTHING, UnixMillis(4_000)).expect("it is compacted");
        // The refused key is in the state, not only in the event that is gone.
        let log = log::open(dir.path(), &clusterset(), Epoch::default()).expect("it opens");
        let (state, _) = replay(&log.reader()).expect("it is whole");
        drop(log);
        assert!(
            fold::decide(&state, &admit()).is_err(),
            "the key is admitted again"
        );
        assert!(state.current_member(&east()).is_none());
    }

    #[test]
    fn who_is_no_member_of_a_stopped_hub_is_told_who_is() {
        let dir = with_a_member();
        let nobody = ClusterId::new("nobody").expect("an id");
        let refused = evict(
            dir.path(),
            &clusterset(),
            nobody,
            "alice",
            false,
            UnixMillis(3_000),
        );
        let refusal = refused.expect_err("it is no member").to_string();
        assert!(refusal.ends_with("these are: east"), "{refusal}");
        assert!(
            !refusal.contains("member list"),
            "no hub runs that answers: {refusal}"
        );
    }

    #[test]
    fn compacting_twice_changes_nothing_more_and_the_state_stays() {
        let dir = with_a_member();
        let state = || {
            let log = log::open(dir.path(), &clusterset(), Epoch::default()).expect("it opens");
            replay(&log.reader()).expect("it is whole")
        };
        let before = state();
        let compact = || compact(dir.path(), &clusterset(), KEEP_NOTHING, UnixMillis(4_000)).expect("done");
        let (was, now) = compact();
        assert_eq!((was.segments, was.oldest_revision), (1, Revision(1)));
        assert_eq!((now.segments, now.oldest_revision), (1, before.1.revision.next()));
        assert_eq!(state(), before);
        let (was, again) = compact();
        assert_eq!(
            (was.segment_start, again.segment_start),
            (now.segment_start, now.segment_start)
        );
        assert_eq!(state(), before);
    }
}
