//! Tests of a session's requests to the writer, of their number, and of its behaviour while the writer has no room.

use model::{Epoch, Revision, UnixMillis};
use prometheus_client::registry::Registry;

use super::*;
use crate::{
    session::{
        machine::tests::{admission, hello, member, removal},
        unacknowledged::SHARE_ITEMS,
    },
    writer::{CursorCheck, Holder, Inbox, Work, WriterHandle, request::SILENCE_MAX_MILLIS},
};

const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

fn actor() -> SessionActor {
    let bounds = Bounds {
        effects: 2,
        ..Bounds::default()
    };
    let metrics = SyncMetrics::register(&mut Registry::default());
    let (actor, _) = SessionActor::new(member(), KEY, bounds, metrics, 0);
    actor
}

/// One that said Hello.
fn greeting() -> SessionActor {
    let mut actor = actor();
    actor.on_message(hello(), 0).expect("in order");
    actor
}

fn admitted() -> SessionActor {
    let mut actor = greeting();
    ask(&mut actor, &View::default());
    let answer = Answer::Admission(Some(Ok(Box::new(admission(false)))));
    actor.on_answer(answer).expect("admitted");
    actor
}

/// A member's next messages, one fact each.
fn report(actor: &mut SessionActor, sequences: impl IntoIterator<Item = u64>) {
    for sequence in sequences {
        let message = AgentMessage::Observations(vec![removal(sequence, "cart")]);
        actor.on_message(message, 0).expect("in order");
    }
}

fn hand_over(actor: &mut SessionActor) -> (Option<Awaited>, Inbox) {
    let (writer, inbox) = WriterHandle::new(1);
    let awaited = actor.hand_over(writer.try_permit().expect("room"), 0);
    (awaited, inbox)
}

/// Has the cursor judged and the writer asked.
fn ask(actor: &mut SessionActor, view: &View) -> Box<AdmitRequest> {
    assert!(actor.wants_judgement());
    assert!(actor.judge(view).is_none(), "the view is enough");
    assert!(actor.wants_permit());
    let (awaited, mut inbox) = hand_over(actor);
    assert!(matches!(awaited, Some(Awaited::Admission(_))), "{awaited:?}");
    match inbox.try_next() {
        Some(Work::Admit { request, .. }) => request,
        _ => panic!("the writer was not asked"),
    }
}

fn not_admitted(actor: &mut SessionActor, why: NotAdmitted) -> Result<(), SessionEnd> {
    actor.on_answer(Answer::Admission(Some(Err(why))))
}

#[test]
fn a_cursor_is_judged_anew_by_each_new_view_and_not_for_ever() {
    let AgentMessage::Hello(mut hello) = hello() else {
        unreachable!("made above")
    };
    let in_epoch = |created_at| Cursor {
        epoch: Epoch {
            created_at: UnixMillis(created_at),
            random: 0,
        },
        revision: Revision(7),
        hash: ChainHash([7; 16]),
    };
    hello.cursor = Some(in_epoch(0));
    let mut actor = actor();
    actor.on_message(AgentMessage::Hello(hello), 0).expect("in order");
    let same = ask(&mut actor, &View::new(in_epoch(0), Revision(0)));
    assert_eq!(same.cursor.check, CursorCheck::OnHistory);
    for epoch in 1..=u64::from(JUDGED_MAX) {
        not_admitted(&mut actor, NotAdmitted::JudgedBefore).expect("judged anew");
        let view = View::new(in_epoch(epoch), Revision(0));
        let expected = CursorVerdict {
            under: view.head(),
            check: CursorCheck::OtherEpoch,
        };
        assert_eq!(ask(&mut actor, &view).cursor, expected);
    }
    let refused = not_admitted(&mut actor, NotAdmitted::JudgedBefore).expect_err("too often");
    assert_eq!(refused.code, EndCode::Unavailable);
}

#[test]
fn a_holder_is_pinged_once_and_then_what_it_says_counts() {
    let held = |session, is_copied| {
        NotAdmitted::Held(Holder {
            session: SessionId(session),
            instance: "other".into(),
            is_copied,
        })
    };
    for answer in [HolderAnswer::Silent, HolderAnswer::Lives, HolderAnswer::Leads] {
        let mut actor = greeting();
        assert_eq!(ask(&mut actor, &View::default()).pinged, None);
        not_admitted(&mut actor, held(5, false)).expect("pinged first");
        let (awaited, _inbox) = hand_over(&mut actor);
        assert!(matches!(awaited, Some(Awaited::Holder(_, HOLDER_ANSWER_MILLIS))));
        actor.on_answer(Answer::Holder(answer)).expect("asked again");
        let asked = ask(&mut actor, &View::default());
        let session = SessionId(5);
        assert_eq!(asked.pinged, Some(Pinged { session, answer }));
        let is_copied = answer == HolderAnswer::Leads;
        let refused = not_admitted(&mut actor, held(5, is_copied)).expect_err("not pinged again");
        assert_eq!(refused.code, EndCode::AlreadyExists);
        assert_eq!(
            refused.message.contains("is a copy of the other"),
            is_copied,
            "{refused:?}"
        );
    }
}

/// The writer records who was turned away: a new key beside a holder that lives is no renewal.
#[test]
fn a_new_key_beside_a_holder_that_answers_goes_back_to_the_writer() {
    let mut actor = greeting();
    ask(&mut actor, &View::default());
    let held = NotAdmitted::Held(Holder {
        session: SessionId(5),
        instance: "other".into(),
        is_copied: false,
    });
    not_admitted(&mut actor, held).expect("pinged first");
    let (_, _inbox) = hand_over(&mut actor);
    let answer = HolderAnswer::Lives;
    actor.on_answer(Answer::Holder(answer)).expect("asked again");
    let asked = ask(&mut actor, &View::default());
    let session = SessionId(5);
    assert_eq!(asked.pinged, Some(Pinged { session, answer }));
    let refused = not_admitted(&mut actor, NotAdmitted::Duplicate("two".into())).expect_err("no");
    assert_eq!(refused.code, EndCode::PermissionDenied);
    assert!(refused.membership.is_none(), "this ends no membership");
}

/// The agent acts on this value, never on words: only the end of its membership carries it.
#[test]
fn the_end_of_a_membership_names_the_member_the_key_and_the_epoch() {
    let mut actor = greeting();
    let key = ask(&mut actor, &View::default()).key;
    let epoch = View::default().head().epoch;
    let refused = not_admitted(&mut actor, NotAdmitted::Ended("it left".into(), epoch)).expect_err("no");
    assert_eq!(
        (refused.code, &*refused.message),
        (EndCode::PermissionDenied, "it left")
    );
    let ended = refused.membership.expect("the end of a membership");
    assert_eq!((ended.cluster, ended.key, ended.epoch), (member(), key, epoch));
    let mut actor = greeting();
    ask(&mut actor, &View::default());
    let refused = not_admitted(&mut actor, NotAdmitted::Refused("no".into())).expect_err("no");
    assert!(refused.membership.is_none(), "this ends no membership");
}

#[test]
fn only_those_who_still_wait_for_a_pong_are_kept_and_a_pong_answers_all_asked_before_it() {
    let mut actor = admitted();
    let ping = |actor: &mut SessionActor| {
        let (reply, answer) = oneshot::channel();
        actor.on_event(SessionEvent::Ping(reply), 0).expect("open");
        answer
    };
    for _ in 0..100 {
        drop(ping(&mut actor));
    }
    let mut early = ping(&mut actor);
    assert_eq!(actor.pongs.len(), 1, "those who gave up are gone");
    let mut late = ping(&mut actor);
    let mut pong = |nonce, leads| {
        let pong = Pong { nonce, leads };
        actor.on_message(AgentMessage::Pong(pong), 0).expect("in order");
    };
    pong(101, Some(true));
    assert_eq!(early.try_recv(), Ok(HolderAnswer::Leads));
    assert!(late.try_recv().is_err());
    pong(102, None);
    assert_eq!(late.try_recv(), Ok(HolderAnswer::Lives), "it does not say");
    assert!(actor.pongs.is_empty());
}

#[test]
fn while_the_writer_has_no_room_nothing_more_is_read_and_the_member_is_not_silent() {
    let mut actor = admitted();
    assert!(actor.may_read(0) && !actor.wants_permit());
    report(&mut actor, 1..=2);
    assert!(
        actor.wants_permit() && !actor.may_read(0),
        "two effects are the bound"
    );
    let long_after = 10 * SILENCE_MAX_MILLIS;
    actor.check_silence(long_after).expect("it is held up");
    for sequence in 1..=2 {
        let (awaited, mut inbox) = hand_over(&mut actor);
        assert!(awaited.is_none(), "its answers are events");
        let Some(Work::Request(Request::Observe { observations, .. })) = inbox.try_next() else {
            panic!("the facts were not handed over");
        };
        assert_eq!(observations, [removal(sequence, "cart")]);
        assert!(actor.may_read(0));
    }
    assert!(actor.is_idle() && !actor.wants_permit());
    let silent = actor.check_silence(long_after + SILENCE_MAX_MILLIS);
    assert_eq!(
        silent.expect_err("its silence counts again").code,
        EndCode::Unavailable
    );
}

#[test]
fn a_member_with_much_to_say_has_a_share_with_the_writer_and_the_next_when_that_is_dealt_with() {
    let mut actor = admitted();
    let much = 2 * SHARE_ITEMS as u64 + 1;
    let message = (1..=much).map(|sequence| removal(sequence, "cart")).collect();
    actor
        .on_message(AgentMessage::Observations(message), 0)
        .expect("in order");
    let (_, mut inbox) = hand_over(&mut actor);
    match inbox.try_next() {
        Some(Work::Request(Request::Withdraw { services, .. })) => {
            assert_eq!(services.len(), 1, "all of the message before the first of it");
        }
        _ => panic!("nothing was said of the whole message"),
    }
    let handed = |actor: &mut SessionActor| {
        let (_, mut inbox) = hand_over(actor);
        match inbox.try_next() {
            Some(Work::Request(Request::Observe { observations, .. })) => observations.len(),
            _ => panic!("the facts were not handed over"),
        }
    };
    for (share, last) in [(SHARE_ITEMS, SHARE_ITEMS), (SHARE_ITEMS, 2 * SHARE_ITEMS)] {
        assert_eq!(handed(&mut actor), share);
        assert!(!actor.wants_permit(), "others are dealt with first");
        let dealt = SessionEvent::Acknowledged(Dealt {
            sequence: last as u64,
            deliveries: 0,
        });
        actor.on_event(dealt, 0).expect("open");
    }
    assert_eq!(handed(&mut actor), 1);
    assert!(actor.is_idle());
}

#[test]
fn who_talks_without_end_is_read_later_and_is_not_silent_meanwhile() {
    let mut actor = admitted();
    let mut said = 0;
    while actor.may_read(0) {
        actor
            .on_message(AgentMessage::Heartbeat(None), 0)
            .expect("in order");
        said += 1;
        assert!(said < 10_000, "nothing paces it");
    }
    assert_eq!(actor.next_deadline(false, 0), 1, "then it is looked at again");
    assert!(actor.may_read(1));
    for _ in 0..20 * said {
        actor
            .on_message(AgentMessage::Heartbeat(None), 0)
            .expect("in order");
    }
    let much_later = 2 * SILENCE_MAX_MILLIS;
    assert!(!actor.may_read(much_later));
    actor.check_silence(much_later).expect("it was not heard");
}

#[test]
fn who_gives_everybody_much_to_hear_is_read_later() {
    let mut actor = admitted();
    let dealt = |sequence, deliveries| SessionEvent::Acknowledged(Dealt { sequence, deliveries });
    actor.on_event(dealt(1, 1), 0).expect("open");
    assert!(actor.may_read(0));
    actor.on_event(dealt(2, 10_000_000), 0).expect("open");
    assert!(!actor.may_read(0) && !actor.may_read(10_000));
    assert!(actor.may_read(20_000));
}

fn signed() -> Box<Signed> {
    Box::new(Signed {
        key: KeyFingerprint([2; 32]),
        issuer: "CN=joining".into(),
        not_after: UnixMillis(9_000),
        certificates: vec![Bytes::from_static(b"certificate")],
        authorities: Vec::new(),
    })
}

fn renewals(actor: &mut SessionActor) -> Vec<Result<Box<Renewed>, Box<str>>> {
    let said = std::iter::from_fn(|| actor.poll(&View::default(), 0));
    said.filter_map(|message| match message {
        HubMessage::RenewalAnswered(answer) => Some(answer),
        _ => None,
    })
    .collect()
}

#[test]
fn a_certificate_goes_out_when_the_writer_has_recorded_its_key() {
    let mut actor = admitted().certifying(true);
    let request = AgentMessage::RenewalRequested(Bytes::from_static(b"request"));
    actor.on_message(request.clone(), 0).expect("in order");
    assert!(matches!(actor.sign(), Some(Awaited::Signature(request)) if request == b"request"[..]));
    assert!(
        actor.sign().is_none() && !actor.wants_permit(),
        "it is being signed"
    );
    actor.on_answer(Answer::Signature(Ok(signed()))).expect("signed");
    assert!(renewals(&mut actor).is_empty(), "nothing is recorded yet");
    assert!(actor.wants_permit() && actor.may_read(0), "the stream goes on");
    let (awaited, mut inbox) = hand_over(&mut actor);
    let Some(Awaited::Certified(_)) = awaited else {
        panic!("{awaited:?}")
    };
    let Some(Work::Certify { certification, .. }) = inbox.try_next() else {
        panic!("the writer was not asked")
    };
    assert_eq!(
        (certification.key, certification.by),
        (KeyFingerprint([2; 32]), KEY)
    );
    assert!(renewals(&mut actor).is_empty(), "nothing is recorded yet");
    let twice = actor.on_message(request, 0).expect_err("one at a time");
    assert_eq!(twice.code, EndCode::InvalidArgument);
    let operated = Operated {
        revision: None,
        kinds: Vec::new(),
        effects: Vec::new(),
        as_of: Revision(1),
    };
    actor
        .on_answer(Answer::Certified(Some(Ok(operated))))
        .expect("recorded");
    let answers = renewals(&mut actor);
    assert!(matches!(&answers[..], [Ok(renewed)] if renewed.certificates == signed().certificates));
}

#[test]
fn what_is_refused_or_cannot_be_signed_is_said_and_the_session_goes_on() {
    let ask = |actor: &mut SessionActor| {
        let request = AgentMessage::RenewalRequested(Bytes::from_static(b"request"));
        actor.on_message(request, 0).expect("in order");
    };
    let mut actor = admitted();
    ask(&mut actor);
    assert!(actor.sign().is_none());
    let answers = renewals(&mut actor);
    assert!(
        matches!(&answers[..], [Err(why)] if why.contains("--join-cert")),
        "{answers:?}"
    );

    let mut actor = admitted().certifying(true);
    ask(&mut actor);
    actor.sign();
    actor
        .on_answer(Answer::Signature(Err("unreadable".into())))
        .expect("said");
    assert_eq!(renewals(&mut actor), [Err("unreadable".into())]);

    ask(&mut actor);
    actor.sign();
    actor.on_answer(Answer::Signature(Ok(signed()))).expect("signed");
    hand_over(&mut actor);
    let gone = Rejection::NotAMember { cluster: member() };
    actor.on_answer(Answer::Certified(Some(Err(gone)))).expect("said");
    let answers = renewals(&mut actor);
    assert!(
        matches!(&answers[..], [Err(why)] if why.contains("not a member")),
        "{answers:?}"
    );
    assert!(actor.is_idle());
}
