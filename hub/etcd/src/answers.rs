//! The meaning of a transaction's answer and of each failure. Only a few failures are certain.

use replication::engine::{
    Answer, Base, Beat, EngineBatch, EngineError, EngineStatus, Head, HubRow, Keys, Refusal, Seen, Unreadable,
};
use tonic::{Code, Status};

use crate::rpc::{KeyValue, ResponseOp, StatusResponse, TxnResponse, response_op::Response};

/// etcd's own words for requests that it did not perform.
const TOO_LARGE: &str = "request is too large";
const NO_SPACE: &str = "database space exceeded";

/// Reads the answer to [`crate::requests::read`].
pub(crate) fn seen(keys: &Keys, answer: TxnResponse) -> Result<Answer, EngineError> {
    let mut parts = answer.responses.into_iter().map(values);
    let mut next = || parts.next().unwrap_or_default();
    let (head, pulse, base, batches) = (next(), next(), next(), next());
    let head = head.first().map(|pair| Head::decode(&pair.value)).transpose();
    let beat = pulse.first().map(|pair| Beat::decode(&pair.value)).transpose();
    let base = base.first().map(|pair| {
        let epoch = keys.parse_base(&key(pair)?).ok_or_else(unknown_key)?;
        Base::decode(epoch, &pair.value)
    });
    let batches = batches.into_iter().map(|pair| {
        let (epoch, first) = keys.parse_batch(&key(&pair)?).ok_or_else(unknown_key)?;
        EngineBatch::decode(epoch, first, pair.value)
    });
    Ok(Answer::Read(Seen {
        head: head.map_err(refused)?,
        beat: beat.map_err(refused)?,
        base: base.transpose().map_err(refused)?,
        batches: batches.collect::<Result<_, _>>().map_err(refused)?,
    }))
}

/// Reads the answer to a transaction that compares the head; `then`: what it says if the head was as expected.
pub(crate) fn compared(answer: TxnResponse, then: Answer) -> Result<Answer, EngineError> {
    if answer.succeeded {
        return Ok(then);
    }
    let head = answer
        .responses
        .into_iter()
        .next()
        .map(values)
        .unwrap_or_default();
    let head = head.first().map(|pair| Head::decode(&pair.value)).transpose();
    head.map(Answer::HeadIs).map_err(refused)
}

/// Reads the answer to [`crate::requests::announce`].
pub(crate) fn hubs(answer: TxnResponse) -> Result<Answer, EngineError> {
    let rows = answer
        .responses
        .into_iter()
        .nth(1)
        .map(values)
        .unwrap_or_default();
    let rows = rows.iter().map(|pair| HubRow::decode(&pair.value));
    rows.collect::<Result<_, _>>().map(Answer::Hubs).map_err(refused)
}

/// Reads the state of a member.
pub(crate) fn status(answer: StatusResponse) -> Answer {
    let bytes = |number: i64| u64::try_from(number).unwrap_or_default();
    Answer::Status(EngineStatus {
        version: answer.version,
        used_bytes: bytes(answer.db_size_in_use),
        quota_bytes: bytes(answer.db_size_quota),
        alarms: answer.errors,
    })
}

/// The meaning of a failure. Whatever is not known for certain may have happened.
pub(crate) fn failure(status: &Status) -> EngineError {
    let said = status.message();
    match status.code() {
        _ if said.contains(TOO_LARGE) => EngineError::Refused(Refusal::TooLarge),
        _ if said.contains(NO_SPACE) => EngineError::Refused(Refusal::NoRoom),
        Code::PermissionDenied | Code::Unauthenticated => EngineError::Refused(Refusal::NoRight(said.into())),
        code => EngineError::Unanswered(format!("{code}: {said}").into()),
    }
}

fn refused(unreadable: Unreadable) -> EngineError {
    EngineError::Refused(unreadable.into())
}

fn unknown_key() -> Unreadable {
    Unreadable::Invalid {
        what: "key",
        why: "it names no position",
    }
}

fn key(pair: &KeyValue) -> Result<String, Unreadable> {
    String::from_utf8(pair.key.clone()).map_err(|_| unknown_key())
}

fn values(part: ResponseOp) -> Vec<KeyValue> {
    match part.response {
        Some(Response::ResponseRange(range)) => range.kvs,
        _ => Vec::new(),
    }
}
