//! Transactions as they are sent, what failures mean, endpoints that do not answer, TLS.

mod tls;

use std::{net::TcpListener, sync::mpsc, time::Instant};

use model::Clusterset;
use replication::{
    engine::{Answer, Beat, Commit, Engine, EngineError, Keys, LogName, Position, Refusal, Request, Term},
    testing::suite::{batch, first_head},
};
use tonic::{Code, Status};

use crate::{
    EtcdEngine, EtcdSettings, InvalidSettings, Tls, answers, requests,
    rpc::{
        Compare, KeyValue, RangeResponse, ResponseOp, TxnRequest, TxnResponse,
        compare::{CompareTarget, TargetUnion},
        request_op, response_op,
    },
};

fn keys() -> Keys {
    Keys::new(
        &Clusterset::new("example.org", "default").unwrap(),
        LogName::Events,
    )
}

fn compared(request: &TxnRequest) -> (i32, &[u8], Option<&TargetUnion>) {
    let [
        Compare {
            result: 0,
            target,
            key,
            target_union,
        },
    ] = &request.compare[..]
    else {
        panic!("not one comparison: {:?}", request.compare);
    };
    (*target, key, target_union.as_ref())
}

#[test]
fn every_change_compares_the_heads_value_in_its_own_transaction() {
    let (keys, head) = (keys(), first_head("hub-0", 1));
    let below = Position {
        epoch: head.at.epoch,
        revision: head.at.revision.next(),
    };
    let beat = Beat::Alive {
        term: Term(1),
        count: 1,
    };
    let append = Commit::append(&head, batch(&head, &[b"a"]));
    let changes = [
        requests::commit(&keys, &append),
        requests::commit(&keys, &Commit::seal(head.clone(), first_head("hub-1", 2))),
        requests::pulse(&keys, &head, &beat),
        requests::trim(&keys, &head, below),
    ];
    for change in &changes {
        let value = TargetUnion::Value(head.encode().into());
        let expected = (CompareTarget::Value.into(), keys.head().into_bytes());
        let (target, key, union) = compared(change);
        assert_eq!(
            (target, key.to_vec(), union),
            (expected.0, expected.1, Some(&value))
        );
        assert_eq!(change.failure.len(), 1, "it reads the head that is there");
    }
    let first = Commit {
        expected: None,
        ..append
    };
    let first = requests::commit(&keys, &first);
    assert_eq!(compared(&first).2, Some(&TargetUnion::Version(0)));
    let puts = |request: &TxnRequest| {
        let put = |operation: &crate::rpc::RequestOp| match &operation.request {
            Some(request_op::Request::RequestPut(put)) => String::from_utf8(put.key.clone()).unwrap(),
            other => panic!("{other:?}"),
        };
        request.success.iter().map(put).collect::<Vec<_>>()
    };
    let batch_key = keys.batch(below.epoch, below.revision);
    assert_eq!(puts(&first), [batch_key, keys.head()]);
    assert_eq!(requests::read(&keys, None).compare, []);
}

#[test]
fn only_a_few_failures_are_certain() {
    let failure = |code, said: &str| answers::failure(&Status::new(code, said));
    let refused = EngineError::Refused;
    assert_eq!(
        failure(Code::InvalidArgument, "etcdserver: request is too large"),
        refused(Refusal::TooLarge)
    );
    assert_eq!(
        failure(
            Code::ResourceExhausted,
            "etcdserver: mvcc: database space exceeded"
        ),
        refused(Refusal::NoRoom)
    );
    assert_eq!(
        failure(Code::PermissionDenied, "etcdserver: permission denied"),
        refused(Refusal::NoRight("etcdserver: permission denied".into()))
    );
    assert!(matches!(
        failure(Code::Unauthenticated, "no"),
        EngineError::Refused(Refusal::NoRight(_))
    ));
    for code in [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Cancelled,
        Code::Unknown,
        Code::Internal,
        Code::ResourceExhausted,
        Code::InvalidArgument,
        Code::Aborted,
        Code::FailedPrecondition,
    ] {
        assert!(
            matches!(
                failure(code, "etcdserver: request timed out"),
                EngineError::Unanswered(_)
            ),
            "{code:?}"
        );
    }
}

#[test]
fn a_value_that_cannot_be_read_is_a_refusal() {
    let range = |key: String, value: &'static [u8]| ResponseOp {
        response: Some(response_op::Response::ResponseRange(RangeResponse {
            kvs: vec![KeyValue {
                key: key.into(),
                value: value.into(),
            }],
        })),
    };
    let newer = TxnResponse {
        responses: vec![range(keys().head(), b"2 of a later release")],
        ..TxnResponse::default()
    };
    for outcome in [
        answers::seen(&keys(), newer.clone()),
        answers::compared(newer, Answer::Done),
    ] {
        assert!(
            matches!(outcome, Err(EngineError::Refused(Refusal::Unreadable(_)))),
            "{outcome:?}"
        );
    }
    let none = ResponseOp::default();
    let strange = TxnResponse {
        responses: vec![
            none.clone(),
            none.clone(),
            range("elsewhere".to_owned(), b"1 x"),
            none,
        ],
        ..TxnResponse::default()
    };
    assert!(matches!(
        answers::seen(&keys(), strange),
        Err(EngineError::Refused(Refusal::Unreadable(_)))
    ));
    assert_eq!(
        answers::compared(TxnResponse::default(), Answer::Done),
        Ok(Answer::HeadIs(None))
    );
}

fn settings(endpoints: &[&str], tls: Option<Tls>) -> EtcdSettings {
    EtcdSettings {
        endpoints: endpoints.iter().map(|&url| url.to_owned()).collect(),
        tls,
        compacts: true,
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let made =
        |settings: &EtcdSettings| EtcdEngine::new(settings, keys(), runtime.handle().clone()).map(drop);
    let tls = || {
        Some(Tls {
            authority: b"none".to_vec(),
            certificate: Vec::new(),
            key: Vec::new(),
        })
    };
    assert!(matches!(
        made(&settings(&[], None)),
        Err(InvalidSettings::NoEndpoint)
    ));
    assert!(matches!(
        made(&settings(&["etcd:2379"], None)),
        Err(InvalidSettings::Endpoint(_))
    ));
    assert!(matches!(
        made(&settings(&["http://"], None)),
        Err(InvalidSettings::Endpoint(_))
    ));
    assert!(matches!(
        made(&settings(&["https://etcd:2379"], None)),
        Err(InvalidSettings::Scheme(_))
    ));
    assert!(matches!(
        made(&settings(&["http://etcd:2379"], tls())),
        Err(InvalidSettings::Scheme(_))
    ));
    assert!(matches!(
        made(&settings(&["https://etcd:2379"], tls())),
        Err(InvalidSettings::Certificates(_))
    ));
    made(&settings(&["http://etcd-0:2379", "http://etcd-1:2379"], None)).unwrap();
}

#[test]
fn an_endpoint_that_does_not_answer_is_left_for_the_next() {
    let silent: Vec<TcpListener> = (0..2)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let urls: Vec<String> = silent
        .iter()
        .map(|socket| format!("http://{}", socket.local_addr().unwrap()))
        .collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let engine = EtcdEngine::new(&settings(&urls, None), keys(), runtime.handle().clone()).unwrap();
    for socket in &silent {
        let (sender, receiver) = mpsc::channel();
        let began = Instant::now();
        engine.ask(
            Request::Status,
            Box::new(move |outcome| sender.send(outcome).unwrap()),
        );
        let (_connection, _) = socket.accept().unwrap();
        let outcome = receiver.recv().unwrap();
        assert!(matches!(outcome, Err(EngineError::Unanswered(_))), "{outcome:?}");
        assert!(began.elapsed() >= std::time::Duration::from_millis(390));
    }
}
