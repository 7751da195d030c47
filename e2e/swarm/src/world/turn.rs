//! Turns and their use: both are drawn.

use super::{Draw, HOSTILE_PERCENT, RETURNS_PERCENT, TURN_MILLIS, World};
use crate::{
    happening::{AgentPart, WATCHES},
    hostile::Copied,
    laws, order,
    time::wall,
};

impl World {
    /// One turn of somebody.
    pub(super) fn turn(&mut self, draw: &mut Draw) -> Result<(), String> {
        self.pass(draw.below(TURN_MILLIS));
        self.keep_leases();
        self.look_at_sources()?;
        if self.hostile.is_some() && draw.percent(HOSTILE_PERCENT) {
            return self.hostile_turn().map(drop);
        }
        if self.copied.as_ref().is_some_and(Copied::runs) && draw.percent(HOSTILE_PERCENT) {
            return self.copy_turn().map(drop);
        }
        if draw.percent(45) {
            self.hub_turn(draw)
        } else {
            self.site_turn(draw.index(self.sites.len()), draw)
        }
    }

    fn hub_turn(&mut self, draw: &mut Draw) -> Result<(), String> {
        let at = self.moment();
        let Some(hub) = &mut self.hub else {
            return self.start_hub();
        };
        hub.turn(draw, &mut self.network, at, (&mut self.seen, &mut self.trace));
        self.bury_hub();
        Ok(())
    }

    /// A hub whose log failed ends; it is started again with its disk well, as a supervisor does.
    pub(crate) fn bury_hub(&mut self) {
        if self.hub.as_ref().is_some_and(|hub| hub.failed.is_some()) {
            self.seen.count("sync failed");
            self.kill_hub(true);
            self.heal_disk();
        }
    }

    fn site_turn(&mut self, index: usize, draw: &mut Draw) -> Result<(), String> {
        if self.sites[index].agents.is_empty() {
            if !self.sites[index].away {
                self.start_agent(index, None);
            }
            return Ok(());
        }
        let site = &self.sites[index];
        let which = draw.index(site.agents.len());
        if site.agents[which].is_cut_off() && draw.percent(RETURNS_PERCENT) {
            self.come_back(index, which, draw);
            return Ok(());
        }
        let part = match draw.below(10) {
            0..=2 => AgentPart::Watch(draw.small(WATCHES)),
            3 => AgentPart::Observe,
            4 => AgentPart::Connect,
            5 => AgentPart::Speak,
            6 | 7 => AgentPart::Listen,
            _ => AgentPart::Apply,
        };
        self.part_turn(index, which, part, draw).map(drop)
    }

    /// One turn of one part of an agent, unless it is stalled; whether anything came of it.
    pub(crate) fn part_turn(
        &mut self,
        index: usize,
        which: usize,
        part: AgentPart,
        draw: &mut Draw,
    ) -> Result<bool, String> {
        let (site, now) = (&mut self.sites[index], self.now);
        if site.stalled == Some(part) {
            return Ok(false);
        }
        let agent = &mut site.agents[which];
        Ok(match part {
            AgentPart::Watch(watch) => site.follow(which, watch, &mut self.seen),
            AgentPart::Observe => agent.observe(),
            AgentPart::Connect => {
                let clock = wall(now, site.clock_off);
                match (
                    agent.connect(index, &mut self.network, (now, clock)),
                    &mut self.hub,
                ) {
                    (Some(stream), Some(hub)) => {
                        hub.accept(stream, (&site.name, site.key(), site.renewable), now);
                        true
                    }
                    _ => false,
                }
            }
            AgentPart::Speak => agent.speak(&mut self.network, (now, site.lies), &mut self.trace),
            AgentPart::Listen => {
                let heard = agent.listen(&self.runtime, &mut self.network, now, &mut self.seen)?;
                if let Some(key) = agent.take_renewed()
                    && key == site.key_of(site.certificate + 1)
                {
                    let site = &mut self.sites[index];
                    (site.certificate, site.renewable) = (site.certificate + 1, false);
                    self.seen.count("certificate renewed over its session");
                }
                let site = &mut self.sites[index];
                if heard {
                    laws::applied(site, which, &mut self.seen.guarded)?;
                }
                heard
            }
            AgentPart::Apply => {
                let (asked, revision) = (site.cluster.requests().count(), site.cluster.revision());
                let worked = agent.apply(&self.runtime, draw, now);
                let written = site.cluster.requests().since(asked);
                order::look(site, (revision, &written), &mut self.seen.guarded)?;
                worked
            }
        })
    }
}
