//! Requests of the log as transactions of etcd. Every change compares the head's value in the same transaction.

use replication::engine::{Beat, Commit, HUBS_MAX, Head, HubRow, KeyRange, Keys, Position, READ_BATCHES_MAX};

use crate::rpc::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    range_request::SortOrder,
    request_op::Request,
};

/// Reads head, pulse, the newest base and some batches, in this order, as of one moment.
pub(crate) fn read(keys: &Keys, from: Option<Position>) -> TxnRequest {
    let bases = RangeRequest {
        limit: 1,
        sort_order: SortOrder::Descend.into(),
        ..range(&keys.bases())
    };
    let mut success = vec![get(keys.head()), get(keys.pulse()), Request::RequestRange(bases)];
    success.extend(from.map(|Position { epoch, revision }| {
        Request::RequestRange(RangeRequest {
            limit: READ_BATCHES_MAX as i64,
            ..range(&keys.batches_from(epoch, revision))
        })
    }));
    TxnRequest {
        success: operations(success),
        ..TxnRequest::default()
    }
}

/// Moves the head, and puts what the new head names.
pub(crate) fn commit(keys: &Keys, commit: &Commit) -> TxnRequest {
    let batch = commit.batch.as_ref().map(|batch| {
        let before = batch.before();
        let key = keys.batch(before.epoch, before.revision.next());
        put(key, batch.encoded().to_vec(), 0)
    });
    let base = commit
        .base
        .map(|base| put(keys.base(base.epoch), base.encode().into(), 0));
    let head = put(keys.head(), commit.next.encode().into(), 0);
    let puts = batch.into_iter().chain(base).chain([head]);
    if_head(keys, commit.expected.as_ref(), puts.collect())
}

/// Puts the pulse.
pub(crate) fn pulse(keys: &Keys, head: &Head, beat: &Beat) -> TxnRequest {
    if_head(keys, Some(head), vec![put(keys.pulse(), beat.encode().into(), 0)])
}

/// Deletes the batches before a position.
pub(crate) fn trim(keys: &Keys, head: &Head, below: Position) -> TxnRequest {
    let KeyRange { from, to } = keys.batches_below(below.epoch, below.revision);
    let delete = Request::RequestDeleteRange(DeleteRangeRequest {
        key: from.into(),
        range_end: to.into(),
    });
    if_head(keys, Some(head), vec![delete])
}

/// Puts a hub's announcement under a lease, and reads all.
pub(crate) fn announce(keys: &Keys, row: &HubRow, lease: i64) -> TxnRequest {
    let row = put(keys.hub(&row.replica), row.encode().into(), lease);
    let hubs = RangeRequest {
        limit: HUBS_MAX as i64,
        ..range(&keys.hubs())
    };
    TxnRequest {
        success: operations(vec![row, Request::RequestRange(hubs)]),
        ..TxnRequest::default()
    }
}

/// Does this if the head's value is exactly the expected one, and reads the head if it is not.
fn if_head(keys: &Keys, expected: Option<&Head>, then: Vec<Request>) -> TxnRequest {
    let (target, union) = match expected {
        Some(head) => (CompareTarget::Value, TargetUnion::Value(head.encode().into())),
        // A key that is not there has version 0.
        None => (CompareTarget::Version, TargetUnion::Version(0)),
    };
    let compare = Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: keys.head().into(),
        target_union: Some(union),
    };
    TxnRequest {
        compare: vec![compare],
        success: operations(then),
        failure: operations(vec![get(keys.head())]),
    }
}

fn get(key: String) -> Request {
    Request::RequestRange(RangeRequest {
        key: key.into(),
        ..RangeRequest::default()
    })
}

fn range(range: &KeyRange) -> RangeRequest {
    RangeRequest {
        key: range.from.clone().into(),
        range_end: range.to.clone().into(),
        ..RangeRequest::default()
    }
}

fn put(key: String, value: Vec<u8>, lease: i64) -> Request {
    let key = key.into();
    Request::RequestPut(PutRequest { key, value, lease })
}

fn operations(requests: Vec<Request>) -> Vec<RequestOp> {
    let operation = |request| RequestOp {
        request: Some(request),
    };
    requests.into_iter().map(operation).collect()
}
