//! Decides a command: chooses its file. Nothing is changed here: a decision is a pure function of the state.

use model::Fact;

use super::{
    Command, Draft, FOLD_VERSION, Rejection, State, brake, connectivity, contest, keys, leaving, listing,
    lost, membership, observe, policy, tokens,
};

/// The events that carry a command out, in order; none when nothing would change.
pub fn decide(state: &State, command: &Command) -> Result<Vec<Draft>, Rejection> {
    match command {
        Command::Admit {
            cluster,
            key,
            cluster_fingerprint,
            presented,
        } => membership::admit(state, cluster, *key, cluster_fingerprint, presented),
        Command::Observe {
            cluster,
            session,
            sequence,
            fact,
        } => observe::observe(state, cluster, *session, *sequence, fact),
        Command::CompleteListing {
            cluster,
            session,
            sequence,
            group,
            seen,
        } => listing::complete(state, cluster, (*session, *sequence), *group, seen),
        Command::Connectivity { cluster, to } => connectivity::decide(state, cluster, *to),
        Command::Withdraw { cluster } => lost::withdraw(state, cluster),
        Command::SelfPreserve { lost } => Ok(lost::self_preserve(state, *lost)),
        Command::ReleaseSelfPreservation { operator } => Ok(lost::release_self_preservation(state, operator)),
        Command::Brake {
            cluster,
            taking_back,
            at,
        } => brake::engage(state, cluster, taking_back, *at),
        Command::ReleaseBrake { cluster, operator } => brake::release(state, cluster, operator),
        Command::Depart { cluster, departure } => leaving::decide(state, cluster, departure),
        Command::Evict { cluster, operator } => membership::evict(state, cluster, operator),
        Command::Rekey {
            cluster,
            operator,
            key,
            cluster_fingerprint,
        } => membership::rekey(state, cluster, operator, *key, cluster_fingerprint.as_deref()),
        Command::Forget { cluster, operator } => membership::forget(state, cluster, operator),
        Command::ContestKey { cluster, key, kept } => Ok(keys::contest(state, cluster, *key, *kept)),
        Command::CertifyKey {
            cluster,
            key,
            by,
            issuer,
            not_after,
            at,
        } => keys::certify(state, cluster, (*key, *by), (issuer, *not_after), *at),
        Command::RevokeKey {
            holder,
            key,
            operator,
        } => keys::revoke(state, holder, *key, operator),
        Command::ApplyPolicy { policy, operator } => Ok(policy::apply(state, policy, operator)),
        Command::ReleasePrecedence { service, operator } => contest::release(state, service, operator),
        Command::CreateToken { token, operator, at } => tokens::create(state, token, operator, *at),
        Command::RevokeToken { token, operator } => tokens::revoke(state, *token, operator),
        Command::Join {
            token,
            cluster,
            key,
            certificate,
            at,
        } => tokens::join(state, *token, (cluster, *key), certificate, *at),
        Command::BeginTerm { term, replica } => Ok(begin_term(state, *term, replica)),
        Command::AdoptFoldVersion { from } => Ok(adopt_fold_version(state, *from)),
        Command::BoundTombstones { max } => Ok(bound_tombstones(state, *max)),
    }
}

fn begin_term(state: &State, term: u64, replica: &str) -> Vec<Draft> {
    let replica = replica.into();
    decided_if(term > state.term(), Fact::LeaderChanged { term, replica })
}

/// Also where the rules are the same and what followed from them is not: all cursors need a snapshot then, and with an event
/// there is a position from which they resume.
fn adopt_fold_version(state: &State, from: u32) -> Vec<Draft> {
    let to = FOLD_VERSION;
    let is_doubted = !state.can_resume_from(state.revision());
    decided_if(from != to || is_doubted, Fact::FoldVersionChanged { from, to })
}

fn bound_tombstones(state: &State, max: u32) -> Vec<Draft> {
    decided_if(state.tombstones_max() != max, Fact::TombstonesBounded { max })
}

/// A decision on the whole log, if it changes anything.
fn decided_if(changes: bool, fact: Fact) -> Vec<Draft> {
    Vec::from_iter(changes.then(|| Draft::of_the_log(fact)))
}
