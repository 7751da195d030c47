//! A member that is copied, state and key, and its copy, which comes beside the original or while it is away.

use super::{Agent, Copied, Site, World};

impl World {
    /// Somebody copies a cluster and its agent, as far as the hub has heard of it.
    pub(super) fn copy_member(&mut self, index: usize) {
        self.end_copy();
        let site = &self.sites[index];
        let home = site.cluster.get("Namespace", "", "kube-system");
        let fingerprint = home.and_then(|home| home["metadata"]["uid"].as_str().map(str::to_owned));
        let (Some(hub), Some(fingerprint)) = (&self.hub, fingerprint) else {
            return;
        };
        let transitions = site.agents.iter().map(Agent::transitions).max();
        if let Some(member) = hub.state().current_member(&site.name) {
            self.copied = Some(Copied::of(
                (&site.name, site.key()),
                &fingerprint,
                transitions.unwrap_or_default(),
                (member, hub.head().epoch),
            ));
        }
    }

    /// The copy that was made last starts, and goes on until the next rest that compares.
    pub(super) fn run_copy(&mut self) {
        if let Some(copied) = &mut self.copied {
            copied.run();
            self.seen.count("copy of a member came");
        }
    }

    /// Whoever runs a copy ends it. What it held meanwhile the original has to list anew.
    pub(crate) fn end_copy(&mut self) {
        if let Some(mut copied) = self.copied.take() {
            copied.end(&mut self.network);
            if copied.held_it() {
                self.sites.iter_mut().for_each(Site::touch_all);
            }
        }
    }

    /// The copy goes on as far as it can; false when it had nothing to do.
    pub(crate) fn copy_turn(&mut self) -> Result<bool, String> {
        let Some(copied) = &mut self.copied else {
            return Ok(false);
        };
        let mut something = false;
        if let Some(hub) = &mut self.hub
            && let Some((stream, cluster, key)) = copied.connect(&mut self.network, self.now)
        {
            hub.accept(stream, (&cluster, key, false), self.now);
            something = true;
        }
        let told = (&mut self.seen, &mut self.trace);
        Ok(something | copied.goes_on(&mut self.network, self.now, told)?)
    }
}
