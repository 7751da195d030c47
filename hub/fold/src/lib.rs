//! The hub's pure core: what follows from the log, and what may be appended to it.
//!
//! * [`decide`]: a command against the state gives drafts of events, or a rejection.
//! * [`apply`]: an event changes the state and says which derived objects changed.
//! * [`State`]: a function of events 1 to n, and of nothing else.
//!
//! One file per kind of event (`membership`, `keys`, `connectivity`, `listing`, `exports`, `endpoint_slices`,
//! `properties`, `policy`, `contest`, `tokens`, `brake` with `remembered` and `taken_back`, `leaving`) and per derived
//! kind (`import` with `ports` and `conflict`, `status`, `slice`, `profile` with `profile_content` and
//! `health_conditions`). `explain` and `withheld` say why things are as they are. `map` is the type of the large parts
//! of a state, so that a copy costs nothing. Only `std`, the domain model and each other are named here: no clock,
//! randomness, encoding or IO.

mod apply;
mod brake;
mod canonical;
mod command;
mod conflict;
mod connectivity;
mod contest;
mod decide;
mod derived;
mod endpoint_slices;
mod explain;
mod exports;
mod fate;
mod gate;
mod health_conditions;
mod import;
mod key;
mod keys;
mod leaving;
mod listing;
mod lost;
mod map;
mod membership;
mod observe;
mod policy;
mod ports;
mod precedence;
mod profile;
mod profile_content;
mod properties;
mod recorded;
mod remembered;
mod rules;
mod slice;
mod snapshot;
mod state;
mod status;
mod taken_back;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(any(test, feature = "testing"))]
mod tests;
mod tokens;
mod withheld;

pub use apply::apply;
pub use command::{AdmissionRefusal, Command, Departure, Draft, DraftFact, Presented, Rejection};
pub use decide::decide;
pub use derived::{Derived, TOMBSTONES_MAX};
pub use explain::{
    CandidateSlice, ExplainedCandidate, Explanation, LosingValue, PropertyDecision, RefusedExport,
};
pub use key::{Change, DerivedContent, DerivedKey};
pub use keys::{CERTIFIED_OVER_MAX, MEMBER_KEYS_MAX, REVOKED_KEYS_MAX};
pub use leaving::{LEAVING_LONGEST_MILLIS, Leaving};
pub use map::Map;
pub use membership::{FORMER_KEPT_MILLIS, FORMER_KEYS_KEPT_MILLIS, MEMBERS_MAX, REFUSED_KEYS_MAX};
pub use policy::{PolicyOutcome, SomeServices};
pub use profile_content::{ConditionStatus, ConditionType, Profile, ProfileCondition, Properties};
pub use recorded::RecordedFact;
pub use rules::{FIRST_FOLD_VERSION, FOLD_VERSION, ForeignRules, RULES, Rules};
pub use snapshot::{DerivedRow, MemberRow, RestoreError, Restored, SnapshotHeader, SnapshotRow};
pub use state::{
    AdmittedKey, AppliedPolicy, Connectivity, Contest, JoinTokenState, JoinTokenUse, KeyHolder, Member,
    MemberStatus, RevokedKey, State,
};
pub use taken_back::{EngagedBrake, RemovedFact, TakenBack};
pub use tokens::{Grant, TOKEN_REMEMBERED_MILLIS, TOKEN_USES_OF_ALL_MAX, TOKENS_MAX, may_join, token_time};
pub use withheld::Withheld;
