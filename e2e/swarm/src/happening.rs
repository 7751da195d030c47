//! Owns: what can happen in a world, as values that a script is written in.
//! Never: says when, or does it.

use serde::{Deserialize, Serialize};

use super::draw::Draw;

/// Namespaces that come and go.
pub const NAMESPACES: [&str; 2] = ["shop", "pay"];
/// Services of each namespace.
pub const SERVICES: [&str; 2] = ["cart", "user"];
/// Shapes that a Service can have; see `site`.
pub const SHAPES: u8 = 11;
/// The number of sets of metadata that an export can carry; see `site`.
pub const METADATA: u8 = 5;
/// Watches of an agent; see `agent`.
pub const WATCHES: u8 = 6;

/// A service of the script, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Named {
    /// Index in [`NAMESPACES`].
    pub namespace: u8,
    /// Index in [`SERVICES`].
    pub service: u8,
}

/// A part of an agent with turns of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentPart {
    /// One of its watches, by index; see [`WATCHES`].
    Watch(u8),
    /// It states what its watches show.
    Observe,
    /// It opens a session.
    Connect,
    /// It says what its outbox holds.
    Speak,
    /// It reads what the hub says.
    Listen,
    /// It writes to its cluster.
    Apply,
}

/// A hostile act of a certified member, or of a stranger in the name of another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hostility {
    /// It states to have exported a service before everybody else, in one of the shapes of its own.
    Claim(Named, u8),
    /// It states as its own what the hub has of a cluster's export.
    Copy(usize, Named),
    /// Its slices have addresses of others, and such that lead elsewhere in every network.
    Addresses(Named),
    /// It exports from a namespace that Kubernetes keeps for itself.
    Reserved,
    /// It has so many changes to say, and between them what no member may say.
    Flood(u8),
    /// It connects anew and claims an epoch: one below all, one that cannot be, one that may be.
    Epoch(u8),
    /// It says an observation again, under the number that it had.
    Replay,
    /// It takes back all that it stated.
    TakeBack,
    /// Somebody comes under a cluster's id with a key of their own, with or without an issuer that vouches for it.
    Impostor(usize, bool),
    /// Somebody comes under a cluster's id with one of the keys that it had before.
    OldKey(usize, u8),
    /// So many come who are no members and have certificates, and all know of a later epoch, which may be.
    Newcomers(u8),
}

/// An operator's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The first export stays first, whatever others state, until the next rest that compares.
    Incumbent,
    /// The oldest export of a service stands first again.
    Release(Named),
    /// The hostile member exports nothing.
    Ban,
    /// Its addresses are those of its own range.
    Fence,
    /// It has little room for what it reports.
    Quota,
    /// Its membership ends.
    Evict,
}

/// A policy on the imports of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Taken {
    /// No import.
    Nothing,
    /// Those of a namespace, by its index.
    Namespace(u8),
    /// One.
    Service(Named),
    /// All, by a rule that says so.
    Everything,
}

/// Writes that an API server refuses, for as long as a Lease of a source lasts and longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusedWrites {
    /// All but deletions.
    All,
    /// Of Leases, all but deletions.
    Leases,
    /// Of EndpointSlices, all but deletions.
    Slices,
    /// All that change an object as a whole, as renewals of Leases do.
    Updates,
    /// All applies, by 500.
    Applies,
    /// All applies, by 503.
    Unavailable,
    /// Deletions alone.
    Deletions,
    /// Of ServiceImports, all but deletions.
    Imports,
    /// None; lists and watches of EndpointSlices instead.
    ReadsOfSlices,
    /// None; lists and watches of ServiceExports instead.
    ReadsOfExports,
}

/// The end of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Going {
    /// It ends in good order.
    Ends,
    /// It is killed, and its pod with it.
    Killed,
    /// It is cut off from its API server, and comes back after it was replaced.
    CutOff,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A namespace is made.
    Namespace(usize, u8),
    /// A namespace is deleted with everything in it.
    RemoveNamespace(usize, u8),
    /// A Service of a shape is made, in the place of another one.
    Service(usize, Named, u8),
    /// A Service is deleted.
    RemoveService(usize, Named),
    /// A Service is exported.
    Export(usize, Named),
    /// An export is deleted.
    Unexport(usize, Named),
    /// Somebody edits the labels and annotations that an export carries; see `site`.
    Metadata(usize, Named, u8),
    /// An EndpointSlice has so many endpoints.
    Slice(usize, Named, u8, u8),
    /// An EndpointSlice is deleted.
    RemoveSlice(usize, Named, u8),
    /// Somebody's object has a name that Tributary needs: an import, or a derived Service.
    Stranger(usize, Named, bool),
    /// It goes again.
    RemoveStranger(usize, Named, bool),
    /// Somebody changes or deletes one of the objects that the agent made.
    Drift(usize, u8),
    /// The CRD of exports or of imports is deleted.
    RemoveCrd(usize, bool),
    /// Both CRDs are installed.
    InstallCrds(usize),
    /// Every open watch ends.
    DropWatches(usize),
    /// The API server forgets its watch history.
    ForgetHistory(usize),
    /// The next requests go wrong: which way, how often.
    Errors(usize, u8, u8),
    /// The API server refuses writes of some kind, until the next rest.
    RefuseWrites(usize, RefusedWrites),
    /// Each request of a cluster's agents for their Lease is answered after so many milliseconds, and every other one after so
    /// many, until the next rest.
    Slow(usize, u16, u16),
    /// Something stands in an export, or in one of its slices, that nobody can decode, until the next rest.
    Spoil(usize, Named, u8),
    /// Listings are cut off for a while.
    CutListings(usize, u8),
    /// One part of the agents makes no progress, until another one does not or everything is mended.
    Stall(usize, AgentPart),
    /// The agent states a fact that only the hub may decide.
    Forge(usize),
    /// From now on the agent states that its exports are older than they are.
    Lie(usize),
    /// An operator ends the membership of the cluster.
    Evict(usize),
    /// An operator has the cluster leave in so many milliseconds, as an eviction or in good order.
    Drain(usize, u32, bool),
    /// An operator has the cluster stay that is to leave.
    Stay(usize),
    /// The cluster leaves of its own will.
    Leave(usize),
    /// The cluster gets a new certificate.
    Certify(usize),
    /// Its agents ask for a certificate for another key over their sessions.
    RenewOverSession(usize),
    /// Its certificate is renewed with another key, by an issuer that the hub trusts for it.
    Renew(usize),
    /// An operator's policy refuses everything that the cluster exports, until the next rest that compares.
    Restrict(usize),
    /// An operator's policy has little room for what the cluster reports, until the next rest that compares.
    Squeeze(usize),
    /// An operator's policy has lost members withdrawn as soon as may be, or said not to be ready, until the next rest that
    /// compares.
    Impatient(bool),
    /// The same, and self-preservation lasts for a few seconds.
    Brief(bool),
    /// An operator has lost members withdrawn although too many are lost.
    LetWithdraw,
    /// An operator's policy holds who takes back half of its exports, for a while or until it is let go, until the next rest
    /// that compares.
    Careful(bool),
    /// An operator lets go what is held of the cluster.
    LetGo(usize),
    /// An operator's policy says what the cluster takes, until the next rest that compares.
    Take(usize, Taken),
    /// Faults stop and everything comes to rest under the policy in force: what it refuses must be nowhere.
    RestRestricted,
    /// A member that means no good does something, or somebody in the name of another.
    Hostile(Hostility),
    /// An operator decides about that member, or about the order of exports.
    Decide(Decision),
    /// All history goes that may go, now or after every step from now on.
    Retain(bool),
    /// An operator revokes the key of the cluster's certificate.
    Revoke(usize),
    /// Somebody copies the cluster and its agent, state and key.
    Copy(usize),
    /// Starts that copy, beside the original or while it is away, until the next rest that compares.
    RunCopy,
    /// The agent's process is killed and started.
    CrashAgent(usize),
    /// All agents of the cluster end in good order and say so, and none is started until the next step or rest says so.
    GoAway(usize),
    /// An agent is started where all had ended.
    ComeHome(usize),
    /// A second agent starts beside the first, which is cut off from its API server.
    DoubleAgent(usize),
    /// The agents of a cluster are started so that what came from others goes while their hub is away, until the next rest.
    ExpireOnHubLoss(usize),
    /// Somebody meddles with the Lease of a source in a cluster.
    MeddleWithLease(usize, u8),
    /// The agent that leads in a cluster goes, and another one takes over.
    HandOver(usize, Going),
    /// The hub is killed and started: how many unsynced batches the disk kept, and whether the next is torn.
    CrashHub(u8, bool),
    /// The hub's session with the cluster says what it has to say, and hears nothing from the writer for a while.
    SlowSession(usize),
    /// The hub is stopped in order and started.
    StopHub,
    /// The next sync fails, and the hub with it.
    FailSync,
    /// The disk under the hub's log is nearly full, or has room again.
    FillDisk(bool),
    /// Somebody copies the hub's data.
    Backup,
    /// The hub is started over that copy.
    Restore,
    /// The hub is started over an empty directory, by a clock that is wrong by so many milliseconds.
    EmptyHub(i32),
    /// The way to the hub is blocked: upwards, downwards.
    Block(usize, bool, bool),
    /// The way is free again.
    Unblock(usize),
    /// The connection is reset.
    Reset(usize),
    /// The cluster's clock is put forward, or back.
    Skew(usize, i32),
    /// The wall clock of the running hub is wrong by so many milliseconds from now on, until the next rest.
    HubClock(i32),
    /// The wall clock of a cluster's agents is wrong by so many milliseconds from now on.
    AgentClock(usize, i32),
    /// Time passes in which nobody does anything.
    Pass(u32),
    /// Everybody goes on as far as the present faults let them, several times over.
    Rounds(u8),
    /// Faults stop, everything comes to rest, and is compared; then, perhaps, all agents restart and write nothing.
    Rest(bool),
}

/// A happening in words, as in a script that `shrink` prints.
pub fn in_words(what: &What) -> String {
    serde_json::to_string(what).unwrap_or_else(|error| format!("unknown: {error}"))
}

/// Draws the imports of a member, mostly fewer than there are.
pub(super) fn taken(draw: &mut Draw) -> Taken {
    match draw.below(8) {
        0 | 1 => Taken::Nothing,
        2 | 3 => Taken::Namespace(draw.small(2)),
        4 | 5 => Taken::Service(named(draw)),
        _ => Taken::Everything,
    }
}

/// Draws the end of a leader; most often the one that is hardest to notice.
pub(super) fn going(draw: &mut Draw) -> Going {
    match draw.below(4) {
        0 => Going::Ends,
        1 => Going::Killed,
        _ => Going::CutOff,
    }
}

/// Draws the refused writes.
pub(super) fn refused_writes(draw: &mut Draw) -> RefusedWrites {
    match draw.below(4) {
        0 => RefusedWrites::All,
        1 => RefusedWrites::Leases,
        2 => RefusedWrites::Slices,
        _ => RefusedWrites::Updates,
    }
}

/// Draws the verb or kind that fails, of those that [`refused_writes`] does not draw.
pub(super) fn refused_verb(draw: &mut Draw) -> RefusedWrites {
    match draw.below(6) {
        0 => RefusedWrites::Applies,
        1 => RefusedWrites::Unavailable,
        2 => RefusedWrites::Deletions,
        3 => RefusedWrites::ReadsOfSlices,
        4 => RefusedWrites::ReadsOfExports,
        _ => RefusedWrites::Imports,
    }
}

/// Every service of the script.
pub(super) fn all_named() -> impl Iterator<Item = Named> + Clone {
    (0..2).flat_map(|namespace| (0..2).map(move |service| Named { namespace, service }))
}

/// A service, whichever.
pub(super) fn named(draw: &mut Draw) -> Named {
    Named {
        namespace: draw.small(2),
        service: draw.small(2),
    }
}
