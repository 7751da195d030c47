//! Owns: what becomes of members once everything is right, and how it must go: who is away, lost, led by another, to leave, or
//! has its exports taken back.
//! Never: draws which story is played, or judges what the oracle can.

use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use proto::v1::{MemberState, SourceState};
use shared::model::ClusterId;

use super::{
    clusterset::{EXPIRING, SimulatedClusterset, Written, elections, holder_of},
    course::{advance, converge, no_content, pass, pass_unjudged},
    imported::Imported,
    operator::Word,
    script::{CLUSTERS, Event, Fault, Story},
    user::{Deed, SERVICES, Shape},
    vigil::Vigil,
};
use oracle::laws::Law;

/// Time of an absence, in simulated milliseconds: longer than it takes until a lost member is withdrawn.
const AWAY: u64 = 100_000;
/// Interval of an operator's calls meanwhile.
const ASKED_EVERY: u64 = 10_000;
/// A member that is lost without a word is withdrawn between these times after its last one, heartbeats and the way of
/// what follows included: the policy says 70 s.
const WITHDRAWN: (u64, u64) = (68_000, 74_000);
/// Longest time until whoever was away has its session again.
const BACK_WITHIN: u64 = 40_000;
/// Longest time until somebody else leads after an end in good order and after a kill: the way of what changed included,
/// which is a dozen messages long and counted apart.
const HAND_OVER: (u64, u64) = (2_000, 9_000);
/// Messages, there or back, between the Lease and the last write in another cluster.
const MESSAGES: u64 = 24;
/// Longest time until an operator's word is carried out everywhere.
const CARRIED_OUT: u64 = 12_000;
/// Largest deviation of an expiry: looks at Leases and the writes that follow.
const EXPIRY_LATE: u64 = 8_000;
/// Time for which objects on hold, or removed ones, are watched.
const LOOKED_AT: u64 = 20_000;
/// A brake that the few services of a simulation engage.
const BRAKE: &str =
    "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec:\n  brake:\n    exports: 2\n";
/// The generations of pods in stories: none that a script has.
const GENERATION: u8 = 250;

/// Plays it; what follows is that everything comes right again.
pub(super) fn play(
    story: Story,
    clusterset: &mut SimulatedClusterset,
    vigil: &mut Vigil,
) -> anyhow::Result<()> {
    let now = clusterset.now();
    clusterset.trace.line(now, format_args!("{story}"));
    clusterset.count(story.class());
    let mut stage = Stage { clusterset, vigil };
    let played = match story {
        Story::Goodbye(member) => stage.goodbye(member),
        Story::Lost(member) => stage.lost(member),
        Story::HalfAway(member) => stage.half_away(member),
        Story::HandOver(member) => stage.hand_over(member),
        Story::Drained(member) => stage.drained(member),
        Story::TakenBack { member, returns } => stage.taken_back(member, returns),
        Story::Expired(member) => stage.expired(member),
        Story::Copied { member, own_name } => stage.copied(member, own_name),
    };
    played.map_err(|why| why.context(story.to_string()))
}

struct Stage<'a> {
    clusterset: &'a mut SimulatedClusterset,
    vigil: &'a mut Vigil,
}

impl Stage<'_> {
    /// Nobody misses who said goodbye, and nothing is written for it, there or anywhere.
    fn goodbye(&mut self, member: usize) -> anyhow::Result<()> {
        self.clusterset.send_away(member);
        self.quiet_until(BACK_WITHIN, "an agent has not ended", |stage| {
            !stage.clusterset.is_any_running(member)
        })?;
        for _ in 0..AWAY / ASKED_EVERY {
            self.quiet(ASKED_EVERY, "while somebody is away who said goodbye")?;
            let state = self.member(member)?;
            let why = format!("{} is {}", CLUSTERS[member], state.state().as_str_name());
            ensure!(
                state.state() == SourceState::SourceLive && !state.withdrawn,
                Law::Goodbye.broken(why)
            );
            self.clusterset.guarded.count(Law::Goodbye, 1);
        }
        self.comes_back(&[member])
    }

    /// Its endpoints go where others answer, in time, and nowhere else.
    fn lost(&mut self, member: usize) -> anyhow::Result<()> {
        self.make_ready(member)?;
        let before = self.imported();
        self.clusterset.drop_agents(member);
        let (from, to) = WITHDRAWN;
        self.quiet(from, "before a lost member is withdrawn")?;
        self.vigil.forget();
        let guarded = self.let_go(&before, member, to - from)?;
        self.clusterset.guarded.count(Law::Withdrawn, guarded);
        self.clusterset.start_agents(member);
        Ok(())
    }

    /// Nothing is withdrawn, whoever is away.
    fn half_away(&mut self, member: usize) -> anyhow::Result<()> {
        self.make_ready(member)?;
        let away = [member, (member + 1) % CLUSTERS.len()];
        away.iter().for_each(|&one| self.clusterset.drop_agents(one));
        for _ in 0..AWAY / ASKED_EVERY {
            self.quiet(ASKED_EVERY, "while half of the fleet is away")?;
            for one in away {
                let state = self.member(one)?;
                let why = format!("{} is withdrawn", CLUSTERS[one]);
                ensure!(!state.withdrawn, Law::Preserved.broken(why));
                let is_lost = state.state() == SourceState::SourceLost;
                self.clusterset.guarded.count(Law::Preserved, is_lost.into());
            }
        }
        self.comes_back(&away)
    }

    /// Another leads in time, nothing is written for it, and what changes meanwhile arrives.
    fn hand_over(&mut self, member: usize) -> anyhow::Result<()> {
        self.make_ready(member)?;
        let messages = MESSAGES * self.clusterset.latency_millis();
        let leader = self.clusterset.members[member].leader().clone();
        leader.life.terminate();
        self.quiet_until(
            HAND_OVER.0 + messages,
            "nobody else leads after a clean end",
            |stage| {
                let holder = holder_of(&stage.clusterset.members[member].cluster);
                holder.is_some_and(|holder| holder != leader.name)
            },
        )?;
        self.comes_back(&[member])?;
        self.clusterset.perform(Event::Fault(Fault::KillAgent(member)));
        self.clusterset.act(member, exported(0, 1))?;
        // Until it is judged what the change led to: nobody leads there yet.
        pass(self.clusterset, self.vigil, 500)?;
        ensure!(
            !self.vigil.wrong().is_empty(),
            "what changed arrived though nobody leads: of {} objects none is wrong, {} has the Lease",
            self.vigil.judged(),
            holder_of(&self.clusterset.members[member].cluster).unwrap_or_default()
        );
        let until = self.clusterset.now() + HAND_OVER.1 + messages;
        while !self.vigil.wrong().is_empty() {
            ensure!(
                self.clusterset.now() < until,
                "what changed when a leader was killed has not arrived: {}",
                self.vigil.wrong().join("; ")
            );
            advance(self.clusterset, self.vigil)?;
        }
        self.clusterset.start_agents(member);
        Ok(())
    }

    /// Its endpoints go where others answer, and are back when it stays.
    fn drained(&mut self, member: usize) -> anyhow::Result<()> {
        self.make_ready(member)?;
        let before = self.imported();
        self.vigil.forget();
        self.say(Word::Drain(id(member)?))?;
        let guarded = self.let_go(&before, member, CARRIED_OUT)?;
        self.clusterset.guarded.count(Law::Leaving, guarded);
        self.say(Word::Stay(id(member)?))?;
        Ok(())
    }

    /// An export that it took back goes on to count where nobody else answers, until it is back or let go.
    fn taken_back(&mut self, member: usize, returns: bool) -> anyhow::Result<()> {
        self.make_ready(member)?;
        self.say(Word::Apply(BRAKE))?;
        let before = self.imported();
        self.vigil.forget();
        self.clusterset.remove_exports(member)?;
        let guarded = self.let_go(&before, member, CARRIED_OUT)?;
        self.clusterset.guarded.count(Law::Held, guarded);
        let state = self.member(member)?;
        ensure!(
            state.brake_since.is_some() && state.held_exports as usize == SERVICES.len(),
            "{} of {} exports of {} are held, which is {} and has {} exports",
            state.held_exports,
            SERVICES.len(),
            CLUSTERS[member],
            state.state().as_str_name(),
            state.exports
        );
        self.clusterset.install_exports(member);
        if !returns {
            self.say(Word::Release(id(member)?))?;
            return Ok(());
        }
        let until = self.clusterset.now() + CARRIED_OUT;
        self.export_all(member, 0)?;
        while self.member(member)?.brake_since.is_some() {
            ensure!(
                self.clusterset.now() < until,
                "all exports are back, and they are held"
            );
            pass_unjudged(self.clusterset, 250)?;
        }
        while let Err(why) = before.stands(&self.imported(), CLUSTERS[member]) {
            ensure!(self.clusterset.now() < until, "all exports are back: {why}");
            pass_unjudged(self.clusterset, 250)?;
        }
        Ok(())
    }

    /// The imports from others go in this cluster, in time, and nowhere else.
    fn expired(&mut self, member: usize) -> anyhow::Result<()> {
        self.make_ready(member)?;
        let before = self.imported();
        self.clusterset.perform(Event::Fault(Fault::KillHub));
        let holds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (earliest, renewed) = (holds(EXPIRING.duration), holds(EXPIRING.renew));
        self.quiet(earliest - renewed - EXPIRY_LATE, "while Leases of sources hold")?;
        self.vigil.forget();
        let until = self.clusterset.now() + renewed + 2 * EXPIRY_LATE;
        let gone = loop {
            match before.expired(&self.imported(), CLUSTERS[member]) {
                Ok(gone) => break gone,
                Err(why) => ensure!(self.clusterset.now() < until, "it has not expired: {why}"),
            }
            pass_unjudged(self.clusterset, 250)?;
        };
        ensure!(gone > 0, "nothing came from others");
        pass_unjudged(self.clusterset, LOOKED_AT)?;
        let looked = before.expired(&self.imported(), CLUSTERS[member]);
        looked.map_err(|why| anyhow!(Law::Still.broken(why)))?;
        self.clusterset.guarded.count(Law::Still, gone);
        self.clusterset.perform(Event::Fault(Fault::StartHub));
        Ok(())
    }

    /// The holder keeps the member, whether that is the original or, while that one is away, the copy; and nothing is
    /// written for the other one.
    fn copied(&mut self, member: usize, own_name: bool) -> anyhow::Result<()> {
        self.make_ready(member)?;
        self.clusterset.copy(member, own_name);
        self.export_all(member, 1)?;
        pass(self.clusterset, self.vigil, 5_000)?;
        converge(self.clusterset, self.vigil)?;
        pass(self.clusterset, self.vigil, 5_000)?;
        let newer = self.imported();
        self.clusterset.run_copy();
        self.quiet(LOOKED_AT, "beside a copy of a member")?;
        let copied = self.clusterset.copy.as_ref().map(|copy| elections(&copy.cluster));
        ensure!(
            copied > Some(elections(&self.clusterset.members[member].cluster)),
            "nobody was elected in the copy, and so nobody came from it"
        );
        self.clusterset.guarded.count(Law::Holders, 1);
        self.clusterset.drop_agents(member);
        self.vigil.forget();
        let until = self.clusterset.now() + BACK_WITHIN;
        while newer.stands(&self.imported(), CLUSTERS[member]).is_ok() {
            ensure!(
                self.clusterset.now() < until,
                "the copy does not hold the member: what it stated before stands nowhere"
            );
            pass_unjudged(self.clusterset, 250)?;
        }
        // Until all of that is everywhere.
        pass_unjudged(self.clusterset, CARRIED_OUT)?;
        let older = self.imported();
        self.clusterset.start_agents(member);
        let until = self.clusterset.now() + LOOKED_AT;
        while self.clusterset.now() < until {
            self.clusterset.step()?;
            no_content(
                &self.clusterset.note_requests()?,
                "beside the copy that holds the member",
            )?;
        }
        let stands = older.stands(&self.imported(), CLUSTERS[member]);
        let guarded = stands.map_err(|why| anyhow!(Law::Holders.broken(why)))?;
        self.clusterset.guarded.count(Law::Holders, guarded);
        self.clusterset.end_copy();
        Ok(())
    }

    /// All of this member is gone where others answer, within this time, and stays so for a while; how much that is.
    fn let_go(&mut self, before: &Imported, member: usize, within: u64) -> anyhow::Result<u64> {
        let until = self.clusterset.now() + within;
        while let Err(why) = before.let_go(&self.imported(), CLUSTERS[member]) {
            ensure!(self.clusterset.now() < until, "after {within} ms: {why}");
            pass_unjudged(self.clusterset, 250)?;
        }
        let until = self.clusterset.now() + LOOKED_AT;
        let mut guarded = 0;
        while self.clusterset.now() < until {
            pass_unjudged(self.clusterset, 250)?;
            let looked = before.let_go(&self.imported(), CLUSTERS[member]);
            guarded = looked.map_err(|why| anyhow!(Law::Withdrawn.broken(why)))?;
        }
        ensure!(guarded > 0, "nothing of it stood anywhere");
        Ok(guarded)
    }

    /// One service is everybody's, the others are this member's alone.
    fn make_ready(&mut self, member: usize) -> anyhow::Result<()> {
        for one in 0..CLUSTERS.len() {
            self.clusterset.act(one, Deed::MakeNamespace)?;
            if one == member {
                self.export_all(one, 0)?;
                continue;
            }
            self.clusterset.act(one, exported(0, 0))?;
            for service in 1..SERVICES.len() {
                // There may be none.
                let _ = self.clusterset.act(one, Deed::Unexport { service });
            }
        }
        // Until all of it is on its way.
        pass(self.clusterset, self.vigil, 5_000)?;
        converge(self.clusterset, self.vigil)?;
        pass(self.clusterset, self.vigil, 5_000)
    }

    fn export_all(&mut self, member: usize, age: u8) -> anyhow::Result<()> {
        (0..SERVICES.len()).try_for_each(|service| self.clusterset.act(member, exported(service, age)))
    }

    fn imported(&self) -> Imported {
        Imported::of(self.clusterset.members.iter().map(|member| &member.cluster))
    }

    /// Those who were away have their sessions again, and write nothing for it.
    fn comes_back(&mut self, members: &[usize]) -> anyhow::Result<()> {
        members
            .iter()
            .for_each(|&member| self.clusterset.start_agents(member));
        self.quiet_until(BACK_WITHIN, "who was away has no session", |stage| {
            stage.clusterset.hub.sessions.borrow().len() == CLUSTERS.len()
        })
    }

    /// Time in which nothing is written but Leases, and all stays right.
    fn quiet(&mut self, length: u64, when: &str) -> anyhow::Result<()> {
        let until = self.clusterset.now() + length;
        while self.clusterset.now() < until {
            self.quiet_moment(when)?;
        }
        Ok(())
    }

    /// The same until something is so.
    fn quiet_until(
        &mut self,
        within: u64,
        otherwise: &str,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> anyhow::Result<()> {
        let until = self.clusterset.now() + within;
        while !is_so(self) {
            ensure!(self.clusterset.now() < until, "{otherwise} after {within} ms");
            self.quiet_moment("meanwhile")?;
        }
        Ok(())
    }

    fn quiet_moment(&mut self, when: &str) -> anyhow::Result<()> {
        let written: Vec<Written> = advance(self.clusterset, self.vigil)?;
        no_content(&written, when)
    }

    /// A member's state in an operator's view.
    fn member(&mut self, member: usize) -> anyhow::Result<MemberState> {
        let members = self.say(Word::List)?;
        let found = members.into_iter().find(|one| one.cluster == CLUSTERS[member]);
        found.ok_or_else(|| anyhow!("{} is no member", CLUSTERS[member]))
    }

    /// An operator says something to the hub, and is answered.
    fn say(&mut self, word: Word) -> anyhow::Result<Vec<MemberState>> {
        let until = self.clusterset.now() + CARRIED_OUT;
        self.clusterset.operator.say(word.clone());
        loop {
            match self.clusterset.operator.answered() {
                Some(Ok(members)) => return Ok(members),
                Some(Err(why)) => bail!("the hub answers an operator's {word}: {why}"),
                None => {}
            }
            ensure!(self.clusterset.now() < until, "no answer to an operator's {word}");
            self.clusterset.step()?;
        }
    }
}

fn id(member: usize) -> anyhow::Result<ClusterId> {
    Ok(ClusterId::new(CLUSTERS[member])?)
}

/// A service with two pods, of this age among the stories' pods.
fn exported(service: usize, age: u8) -> Deed {
    Deed::Export {
        service,
        shape: Shape::Plain,
        pods: 2,
        generation: GENERATION + age,
    }
}
