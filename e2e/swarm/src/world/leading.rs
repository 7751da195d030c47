//! The agents of a cluster: which of them leads, how it goes, and who takes over.

use oracle::laws::Law;

use super::{AGENTS_MAX, Agent, Draw, World};
use crate::{
    agent::{Led, Place},
    happening::{AgentPart, Going, all_named},
    site::all_keys,
    still::Before,
};

/// Rounds of everybody until somebody else leads: longer than a Lease lasts by the slowest clock.
const HAND_OVER_ROUNDS_MAX: usize = 30;

/// The same while each answer takes seconds: four times the time of a Lease by the slowest clock.
const SLOW_HAND_OVER_ROUNDS_MAX: usize = 100;

/// Rounds in which the next one writes, before the one that it replaced is reached again.
const ROUNDS_BEFORE_RETURN: usize = 2;
/// Slices that are changed have one to so many endpoints beside the standing ones.
const ENDPOINTS: u64 = 3;

impl World {
    /// Starts an agent in a pod, its own if none is named.
    pub(crate) fn start_agent(&mut self, index: usize, pod: Option<String>) {
        let site = &mut self.sites[index];
        site.away = false;
        let instance = self.ids.number();
        let _entered = self.runtime.enter();
        let started = Agent::start(
            &site.cluster,
            &site.name,
            &self.time,
            Place {
                instance,
                pod,
                expires: site.expires,
            },
        );
        site.agents.extend(started);
        let slow = site.slow;
        site.agents.iter_mut().for_each(|agent| agent.slow_down(slow));
    }

    /// Everybody looks at the Lease of its cluster, or renews it, whose time it is.
    pub(crate) fn keep_leases(&mut self) {
        for index in 0..self.sites.len() {
            for which in (0..self.sites[index].agents.len()).rev() {
                let (site, now) = (&mut self.sites[index], self.now);
                match site.agents[which].keep_lease(&self.runtime, now) {
                    Led::As => {}
                    Led::Took => {
                        let pod = site.agents[which].pod().to_owned();
                        let before = site.led_by.replace(pod.clone());
                        if before.is_some_and(|before| before != pod) {
                            self.seen.count("leadership changed hands");
                            // What the one before wrote last this one may see only with its next watch events.
                            site.disturbed.extend(all_keys());
                        }
                    }
                    Led::Lost => {
                        let agent = self.end_agent(index, which);
                        self.start_agent(index, Some(agent.pod().to_owned()));
                    }
                }
            }
        }
    }

    /// Everybody looks at the Leases of sources whose time it is, whether it leads or not.
    pub(crate) fn look_at_sources(&mut self) -> Result<(), String> {
        for index in 0..self.sites.len() {
            for which in 0..self.sites[index].agents.len() {
                self.look_at_sources_as(index, which)?;
            }
        }
        Ok(())
    }

    fn look_at_sources_as(&mut self, index: usize, which: usize) -> Result<(), String> {
        let (site, now) = (&mut self.sites[index], self.now);
        if !site.agents[which].is_to_look_at_sources(now) {
            return Ok(());
        }
        let (before, asked) = (Before::of(&site.cluster), site.cluster.requests().count());
        let confirmed = site.agents[which].confirmed_sources();
        site.agents[which].look_at_sources(&self.runtime, now);
        let entries = site.cluster.requests().since(asked);
        let mut eyes = std::mem::take(&mut site.agents[which].eyes);
        let looked = eyes.look(
            (&site.name, &site.cluster, &confirmed),
            (&before, &entries),
            now,
            &mut self.seen.guarded,
        );
        site.agents[which].eyes = eyes;
        looked?;
        if site.agents[which].has_expired_sources() {
            // What came from there goes, and comes again with its source.
            site.touch_all();
            site.disturbed.extend(all_keys());
            self.seen.count("source expired");
            if !site.agents[which].leads() {
                self.seen.count("source expired for one that stands by");
            }
        }
        Ok(())
    }

    /// From now until the next rest what came from others goes in a cluster whose hub is away for long.
    pub(super) fn expire_on_hub_loss(&mut self, index: usize) {
        self.sites[index].expires = true;
        self.crash_agent(index);
        self.stand_by(index);
    }

    /// Somebody changes the Lease of a source, deletes it, or puts another one in its place.
    pub(super) fn meddle_with_lease(&mut self, index: usize, which: u8) {
        self.sites[index].meddle_with_lease(which, &mut self.seen);
    }

    fn end_agent(&mut self, index: usize, which: usize) -> Agent {
        let mut agent = self.sites[index].agents.remove(which);
        agent.disconnect(&mut self.network);
        agent
    }

    /// It says goodbye where it has a session, and the Lease goes back.
    fn end_in_order(&mut self, index: usize, which: usize) {
        self.sites[index].agents[which].say_goodbye(&mut self.network);
        self.end_agent(index, which).ends(&self.runtime);
    }

    /// All agents of a cluster end in good order, and none is started until `come_home`.
    pub(super) fn go_away(&mut self, index: usize) {
        while !self.sites[index].agents.is_empty() {
            self.end_in_order(index, 0);
        }
        self.sites[index].away = true;
    }

    /// An agent is started where all had ended.
    pub(crate) fn come_home(&mut self, index: usize) {
        if std::mem::take(&mut self.sites[index].away) {
            self.start_agent(index, None);
        }
    }

    /// All agents of a cluster are killed, and started again in their pods.
    pub(crate) fn crash_agent(&mut self, index: usize) {
        let count = self.sites[index].agents.len();
        for _ in 0..count {
            let agent = self.end_agent(index, 0);
            self.seen.count("agent crashed");
            self.start_agent(index, Some(agent.pod().to_owned()));
        }
        if count == 0 {
            self.start_agent(index, None);
        }
    }

    /// Another agent stands by in the cluster, if there is none.
    fn stand_by(&mut self, index: usize) {
        if self.sites[index].agents.len() < AGENTS_MAX {
            self.start_agent(index, None);
        }
    }

    /// The agent that leads, and is reached by its API server.
    fn leader(&self, index: usize) -> Option<usize> {
        let agents = &self.sites[index].agents;
        agents
            .iter()
            .position(|agent| agent.leads() && !agent.is_cut_off())
    }

    pub(super) fn double_agent(&mut self, index: usize) {
        let Some(leader) = self.leader(index) else { return };
        self.stand_by(index);
        self.sites[index].agents[leader].cut_off();
        self.seen.count("agent doubled");
    }

    /// The leader goes, and everybody goes on until another one leads.
    pub(super) fn hand_over(&mut self, index: usize, going: Going) -> Result<(), String> {
        let Some(leader) = self.leader(index) else {
            return Ok(());
        };
        if self.sites[index].agents.len() < 2 {
            self.stand_by(index);
        }
        let agents = self.sites[index].agents.iter().enumerate();
        let mut others = agents.filter(|(which, _)| *which != leader);
        if others.all(|(_, agent)| agent.is_cut_off()) {
            self.reach_agents(index);
        }
        match going {
            Going::Ends => {
                self.end_in_order(index, leader);
                self.seen.count("leader ended");
                self.stand_by(index);
            }
            Going::Killed => {
                self.end_agent(index, leader);
                self.seen.count("leader killed");
                self.stand_by(index);
            }
            Going::CutOff => {
                self.hears_and_is_cut_off(index, leader)?;
                self.seen.count("leader cut off");
            }
        }
        for _ in 0..HAND_OVER_ROUNDS_MAX {
            if self.leader(index).is_some() {
                break;
            }
            self.troubled_round()?;
        }
        self.somebody_leads_slowly(index)?;
        if going == Going::CutOff {
            self.returns_late(index)?;
        }
        Ok(())
    }

    /// However slow its API server is, somebody leads in the end.
    fn somebody_leads_slowly(&mut self, index: usize) -> Result<(), String> {
        let site = &self.sites[index];
        let Some([other, slow]) = site.slow.filter(|_| !site.refuses_writes) else {
            return Ok(());
        };
        for _ in 0..SLOW_HAND_OVER_ROUNDS_MAX {
            if self.leader(index).is_some() {
                self.seen.guarded.count(Law::Led, 1);
                return Ok(());
            }
            self.troubled_round()?;
        }
        let site = &self.sites[index];
        Err(Law::Led.broken(format!(
            "nobody leads in {} though its API server answers after {other} and {slow} ms in turn",
            site.name
        )))
    }

    /// It has heard what it would write next, and is cut off before it does; the next one hears what is newer.
    fn hears_and_is_cut_off(&mut self, index: usize, leader: usize) -> Result<(), String> {
        let before = self.sites[index].stalled.replace(AgentPart::Apply);
        let goes = self.now.is_multiple_of(2);
        self.change_elsewhere(index, 0, goes);
        self.troubled_round()?;
        self.sites[index].stalled = before;
        // It may have been replaced meanwhile, by an agent in its place.
        if let Some(agent) = self.sites[index].agents.get_mut(leader) {
            agent.cut_off();
        }
        self.change_elsewhere(index, 1, false);
        Ok(())
    }

    /// The endpoints of something that another cluster exports are others, or their slice goes, if there is such a thing.
    fn change_elsewhere(&mut self, index: usize, which: u64, goes: bool) {
        let endpoints = u8::try_from(1 + (self.now + which) % ENDPOINTS).unwrap_or(1);
        let exporters = (0..self.sites.len()).filter(|other| *other != index);
        let exports = exporters.flat_map(|other| all_named().map(move |named| (other, named)));
        let mut exported = exports.filter(|(other, named)| self.sites[*other].has_export(*named));
        let Some((other, named)) = exported.next() else {
            return;
        };
        if goes {
            self.sites[other].remove_slice(named, 0, &mut self.seen);
        } else {
            self.sites[other].make_slice(other, named, 0, endpoints);
        }
    }

    /// When the next one has written newer content, the writes that the one before had on its way arrive.
    fn returns_late(&mut self, index: usize) -> Result<(), String> {
        for _ in 0..ROUNDS_BEFORE_RETURN {
            self.troubled_round()?;
        }
        let mut draw = Draw::new(self.now);
        let agents = &self.sites[index].agents;
        if let Some(which) = agents.iter().position(Agent::is_cut_off) {
            self.come_back(index, which, &mut draw);
        }
        Ok(())
    }

    /// An agent that was cut off is reached again, and what it had on its way arrives.
    pub(crate) fn come_back(&mut self, index: usize, which: usize, draw: &mut Draw) {
        let (site, now) = (&mut self.sites[index], self.now);
        if site.agents[which].comes_back(&self.runtime, draw, now) {
            self.seen.count("leader came back late");
            site.disturbed.extend(all_keys());
        }
    }

    /// Everybody is reached again, and who lost the Lease ends.
    pub(crate) fn reach_everybody(&mut self) {
        for index in 0..self.sites.len() {
            self.reach_agents(index);
        }
        self.keep_leases();
    }

    /// All agents of a cluster are reached again.
    fn reach_agents(&mut self, index: usize) {
        let mut draw = Draw::new(self.now);
        for which in 0..self.sites[index].agents.len() {
            if self.sites[index].agents[which].is_cut_off() {
                self.come_back(index, which, &mut draw);
            }
        }
    }
}
