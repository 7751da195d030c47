//! Whose turn it is, and what they do with it: both are drawn.

use super::{Draw, RENEWS_PERCENT, TURN_MILLIS, World};

impl World {
    /// One turn of somebody.
    pub(super) fn turn(&mut self, draw: &mut Draw) -> Result<(), String> {
        self.pass(draw.below(TURN_MILLIS));
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
        let streams = hub.streams();
        let stream = streams.get(draw.index(streams.len())).copied();
        let (network, seen) = (&mut self.network, &mut self.seen);
        match (draw.below(12), stream) {
            (0..=2, Some(id)) => drop(hub.listen(id, network, at, seen)),
            (3 | 4, Some(id)) => drop(hub.hand_over(id, at)),
            (5..=7, Some(id)) => drop(hub.speak(id, network, at.now, &mut self.trace)),
            (8, _) => drop(hub.append()),
            (9, _) => drop(hub.sync(network, at, seen)),
            (10, _) => drop(hub.look_at_clocks(network, at, seen)),
            (11, _) if draw.percent(10) => hub.snapshot(),
            _ => {}
        }
        self.bury_hub();
        Ok(())
    }

    /// A hub whose log failed ends; it is started again with its disk well, as a supervisor does.
    pub(in crate::swarm) fn bury_hub(&mut self) {
        if self.hub.as_ref().is_some_and(|hub| hub.failed.is_some()) {
            self.seen.count("sync failed");
            self.kill_hub(true);
            self.heal_disk();
        }
    }

    fn site_turn(&mut self, index: usize, draw: &mut Draw) -> Result<(), String> {
        if self.sites[index].agents.is_empty() {
            let started = self.start_agent(index);
            self.sites[index].agents.extend(started);
            return Ok(());
        }
        let site = &mut self.sites[index];
        let which = draw.index(site.agents.len());
        let now = self.now;
        if draw.percent(RENEWS_PERCENT) && site.agents[which].is_replaced(&site.cluster) {
            // It tried to renew its Lease, and found another holder.
            let mut agent = site.agents.remove(which);
            agent.disconnect(&mut self.network);
            return Ok(());
        }
        let agent = &mut site.agents[which];
        match draw.below(10) {
            0..=2 => {
                let cut = site.cuts > 0;
                site.cuts = site.cuts.saturating_sub(1);
                agent.follow(draw.index(6), &site.cluster, cut, &mut self.seen);
            }
            3 => drop(agent.observe()),
            4 => {
                if let (Some(stream), Some(hub)) =
                    (agent.connect(index, &mut self.network, now), &mut self.hub)
                {
                    hub.accept(stream, &site.name, now);
                }
            }
            5 => drop(agent.speak(&mut self.network, now, &mut self.trace)),
            6 | 7 => drop(agent.listen(&self.runtime, &mut self.network, now, &mut self.seen)?),
            _ => drop(agent.apply(&self.runtime, draw)),
        }
        Ok(())
    }
}
