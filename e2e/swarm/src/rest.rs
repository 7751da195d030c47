//! Rest: faults stop, everybody goes on until nobody has anything to do, every cluster is compared with what it must
//! hold, and a restart of the hub, and then of all agents, must write nothing. It draws nothing.

use event_log::Faults;

use oracle::laws::Law;

use super::{
    draw::Draw,
    happening::{AgentPart, WATCHES},
    hostile,
    hub::Hub,
    imports,
    judge::{self, Circumstances},
    laws::{self, Stood},
    network::Blocked,
    refusals,
    site::Site,
    world::World,
};

/// Time between two rounds of a rest, in milliseconds.
const ROUND_MILLIS: u64 = 300;
/// Rounds in which a world must come to rest: it has 75 simulated seconds, several silences and heartbeats.
const ROUNDS_MAX: usize = 250;
/// Rounds in a row without anything, until a world is at rest: longer than a heartbeat.
const QUIET_ROUNDS: usize = 4;
/// Turns of everybody within one round.
const TURNS_OF_A_ROUND_MAX: usize = 200;
/// The same while faults last: somebody who is refused again and again always has something to do.
const TURNS_OF_A_TROUBLED_ROUND_MAX: usize = 20;

impl World {
    /// Faults stop; everything comes to rest; every cluster is compared; a `restart` of the hub, and of all agents, writes
    /// nothing.
    pub(super) fn rest(&mut self, restart: bool) -> Result<(), String> {
        self.heal();
        self.settle(true)?;
        self.look()?;
        for _ in 0..self.judge()? {
            self.seen.count("conflict settled");
        }
        for (site, stood) in self.sites.iter_mut().zip(&mut self.stood) {
            *stood = Stood::of(site);
            site.touched.clear();
            site.disturbed.clear();
        }
        self.definitions.forget();
        if restart {
            self.stop_hub()?;
            self.nothing_is_written("after a restart of the hub")?;
            for index in 0..self.sites.len() {
                self.crash_agent(index);
            }
            self.nothing_is_written("after a restart of the agents")?;
        }
        Ok(())
    }

    /// Everything comes to rest again, and nobody has written anything meanwhile but Leases.
    fn nothing_is_written(&mut self, when: &str) -> Result<(), String> {
        self.settle(true)?;
        let objects = self.stood.iter().map(Stood::objects).sum();
        self.seen.guarded.count(Law::NoWrite, objects);
        if let Some(write) = self.sites.iter().find_map(laws::writes) {
            return Err(Law::NoWrite.broken(format!("{when}: {write}")));
        }
        self.look()?;
        self.judge().map(drop)
    }

    /// Compares every cluster; how many services are in conflict comes back.
    fn judge(&mut self) -> Result<u64, String> {
        let circumstances = self.circumstances();
        let law = match (
            circumstances.is_ordinary(),
            self.refused.is_empty() && self.withheld.is_empty(),
        ) {
            (true, true) => Law::Holds,
            (true, false) => Law::Restored,
            (false, _) if circumstances.holds() => Law::Held,
            (false, _) => Law::Untouched,
        };
        let judgement = judge::judge(&self.sites, &circumstances).map_err(|what| law.broken(what))?;
        let guarded = &mut self.seen.guarded;
        guarded.count(Law::Holds, judgement.guarded);
        if !circumstances.is_ordinary() {
            guarded.count(Law::Untouched, judgement.guarded);
        }
        if let Some(hub) = &self.hub {
            if !hub.restricts() {
                let refused = std::mem::take(&mut self.refused);
                guarded.count(Law::Restored, refusals::restored(hub, &refused));
                let withheld = std::mem::take(&mut self.withheld);
                guarded.count(Law::Restored, imports::restored(hub, &self.sites, &withheld));
            }
            laws::everybody_lives(hub, guarded)?;
            laws::nothing_is_preserved(hub)?;
            laws::revoked_are_gone(hub, guarded)?;
            refusals::one_holder(hub, &self.sites)?;
        }
        Ok(judgement.conflicts)
    }

    fn circumstances(&self) -> Circumstances {
        let of = |hub| Circumstances::of(hub, self.definitions.held(hub));
        self.hub.as_ref().map(of).unwrap_or_default()
    }

    fn heal(&mut self) {
        self.set_clock_right();
        self.network.ways.fill(Blocked::default());
        self.disk.set_faults(Faults::default());
        self.disk.set_space(None);
        if let Some(hub) = &mut self.hub {
            hub.slow = None;
        }
        self.sync_fails = false;
        for stranger in std::mem::take(&mut self.strangers) {
            self.network.agent_leaves(stranger);
        }
        if let Some(hostile) = &mut self.hostile {
            hostile.calm();
        }
        self.end_copy();
        for index in 0..self.sites.len() {
            self.come_home(index);
            self.install_crds(index);
            let site = &mut self.sites[index];
            site.heal();
            if std::mem::take(&mut site.expires) {
                self.crash_agent(index);
            }
            let site = &mut self.sites[index];
            if site.lies {
                site.repent(&mut self.seen);
                self.crash_agent(index);
            }
        }
        self.reach_everybody();
    }

    /// Faults stop and everything comes to rest under the policy in force.
    pub(super) fn rest_restricted(&mut self) -> Result<(), String> {
        self.heal();
        self.settle(false)?;
        self.look()?;
        let Some(hub) = &self.hub else { return Ok(()) };
        self.refused.extend(refusals::refused(hub));
        refusals::refused_is_nowhere(hub, &self.sites, &mut self.seen.guarded)?;
        let withheld = imports::withheld(hub, &self.sites);
        imports::nobody_holds(&withheld, &self.sites, &mut self.seen.guarded)?;
        self.withheld.extend(withheld);
        self.judge().map(drop)
    }

    /// An operator allows everything again: what was refused must come back by itself.
    fn loosen(&mut self) {
        let at = self.moment();
        if let Some(hub) = &mut self.hub
            && hub.loosen(at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("policy loosened");
        }
        for index in 0..self.sites.len() {
            self.release_held(index);
        }
        if let Some(hub) = &mut self.hub {
            hub.release_held(&hostile::name(), at);
        }
    }

    fn settle(&mut self, loosen: bool) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..ROUNDS_MAX {
            self.pass(ROUND_MILLIS);
            (0..self.sites.len()).for_each(|index| self.certify(index));
            (0..self.sites.len()).for_each(|index| self.stay(index));
            self.forget_who_is_gone();
            if loosen {
                self.loosen();
            }
            let something = self.round(TURNS_OF_A_ROUND_MAX)?;
            quiet = if something { 0 } else { quiet + 1 };
            // What waits for a budget is asked for now and then.
            let waits = loosen && self.waiting() > 0;
            if quiet >= QUIET_ROUNDS && self.is_at_rest() && !waits {
                return Ok(());
            }
        }
        let restless: Vec<&str> = self
            .sites
            .iter()
            .filter(|site| !site.agents.iter().all(|agent| agent.is_quiet(&site.cluster)))
            .map(|site| site.name.as_str())
            .collect();
        Err(format!(
            "convergence: not at rest {} s of simulated time after the last fault (restless: {})",
            ROUND_MILLIS * ROUNDS_MAX as u64 / 1_000,
            restless.join(", ")
        ))
    }

    fn is_at_rest(&self) -> bool {
        let still = |site: &Site| {
            site.leaders() == 1 && site.agents.iter().all(|agent| agent.is_quiet(&site.cluster))
        };
        // A cluster of which something waits has not listed.
        let members = |hub: &Hub| {
            self.sites.len() + usize::from(hub.state().current_member(&hostile::name()).is_some())
        };
        let listed = |hub: &Hub| hub.listed().len() + self.waiting() >= members(hub);
        let hub = self.hub.as_ref();
        self.sites.iter().all(still)
            && self.hostile_is_quiet()
            && hub.is_some_and(|hub| hub.is_idle() && listed(hub))
    }

    /// Of how many members something waits for room in their budgets.
    fn waiting(&self) -> usize {
        self.hub.as_ref().map_or(0, Hub::waiting)
    }

    /// Everybody goes on as far as the present faults let them: what one of them does not know meets the whole rest.
    pub(super) fn troubled_round(&mut self) -> Result<(), String> {
        self.pass(ROUND_MILLIS);
        self.round(TURNS_OF_A_TROUBLED_ROUND_MAX).map(drop)
    }

    /// Everybody's turn, so often until nobody has anything to do at this moment.
    fn round(&mut self, turns_max: usize) -> Result<bool, String> {
        let mut any = false;
        for index in 0..self.sites.len() {
            if self.sites[index].agents.is_empty() && !self.sites[index].away {
                self.start_agent(index, None);
            }
        }
        if self.hub.is_none() {
            self.start_hub()?;
        }
        self.keep_leases();
        self.look_at_sources()?;
        for _ in 0..turns_max {
            let something = self.sites_round()? | self.hostile_turn()? | self.copy_turn()? | self.hub_round();
            any |= something;
            if !something {
                break;
            }
        }
        Ok(any)
    }

    fn sites_round(&mut self) -> Result<bool, String> {
        let mut something = false;
        let mut draw = Draw::new(self.now);
        for index in 0..self.sites.len() {
            for which in 0..self.sites[index].agents.len() {
                for part in (0..WATCHES)
                    .map(AgentPart::Watch)
                    .chain([AgentPart::Observe, AgentPart::Connect])
                {
                    something |= self.part_turn(index, which, part, &mut draw)?;
                }
                for part in [AgentPart::Speak, AgentPart::Listen] {
                    while self.part_turn(index, which, part, &mut draw)? {
                        something = true;
                    }
                }
                something |= self.part_turn(index, which, AgentPart::Apply, &mut draw)?;
            }
        }
        Ok(something)
    }

    fn hub_round(&mut self) -> bool {
        let at = self.moment();
        let Some(hub) = &mut self.hub else { return true };
        let something = hub.round(&mut self.network, at, (&mut self.seen, &mut self.trace));
        self.bury_hub();
        something
    }
}
