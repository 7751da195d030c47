//! The deeds of the hostile member and of strangers, and operators' decisions about them, put into effect.

use model::{ClusterId, FactKey, ServiceKey};

use oracle::laws::Law;

use super::{Hostile, World};
use crate::{
    happening::{Decision, Hostility},
    hostile::{self, OWN_RANGE, knock, later, strange_key},
    hub::Hub,
    site::{Site, key},
};

impl World {
    pub(crate) fn be_hostile(&mut self, hostility: Hostility) {
        match hostility {
            Hostility::Impostor(site, vouched) => {
                let number = u8::from(vouched);
                self.knock(site, strange_key(number), vouched);
                self.seen.count("stranger with a key of its own");
            }
            Hostility::OldKey(site, number) => {
                let site = site % self.sites.len();
                let known = &self.sites[site];
                if let Some(number) = number.checked_rem(known.certificate) {
                    let key = known.key_of(number);
                    self.knock(site, key, false);
                    self.seen.count("stranger with a former key");
                }
            }
            Hostility::Newcomers(count) => self.newcomers(count),
            hostility => self.member_does(hostility),
        }
    }

    /// A hub that has something to serve is to go on. One without facts believes anybody, and would take them in.
    fn newcomers(&mut self, count: u8) {
        let wall = self.moment().wall;
        let Some(hub) = &mut self.hub else { return };
        if hub.state().holds_no_facts() {
            return;
        }
        let ours = hub.head().epoch;
        for number in 0..count {
            let name = ClusterId::new(&format!("newcomer-{number}")).expect("a label");
            let Some(known) = later(ours, wall, number) else {
                return;
            };
            let stream = knock(&mut self.network, name.as_str(), Some(known));
            hub.accept(stream, (&name, strange_key(number), false), self.now);
            self.strangers.push(stream);
        }
        self.seen.count("newcomers claimed an epoch");
    }

    fn member_does(&mut self, hostility: Hostility) {
        let wall = self.moment().wall;
        let sites = &mut self.sites;
        let hostile = self.hostile.get_or_insert_with(Hostile::new);
        hostile.provoke();
        let (service, word) = match hostility {
            Hostility::Claim(named, shape) => {
                hostile.claim(&key(named), shape);
                (Some(key(named)), "older age claimed")
            }
            Hostility::Addresses(named) => {
                hostile.addresses(&key(named));
                (Some(key(named)), "special addresses stated")
            }
            Hostility::Copy(site, named) => {
                let fact = FactKey::Export(key(named));
                let member = self
                    .hub
                    .as_ref()
                    .and_then(|hub| hub.state().current_member(&sites[site % sites.len()].name));
                let Some(known) = member.and_then(|member| member.facts().get(&fact)) else {
                    return;
                };
                hostile.copy(fact, known.encoded());
                (Some(key(named)), "fact of another stated")
            }
            Hostility::Reserved => {
                hostile.reserved();
                (None, "reserved namespace exported")
            }
            Hostility::Flood(changes) => {
                hostile.flood(changes);
                (None, "flood")
            }
            Hostility::Epoch(which) => {
                hostile.claim_epoch(which, wall, &mut self.network);
                (None, "epoch claimed")
            }
            Hostility::TakeBack => {
                hostile.take_back();
                sites.iter_mut().for_each(Site::touch_all);
                (None, "taken back")
            }
            Hostility::Replay => return hostile.replay(),
            Hostility::Impostor(..) | Hostility::OldKey(..) | Hostility::Newcomers(_) => return,
        };
        self.seen.count(word);
        self.touch(service.as_ref());
    }

    fn touch(&mut self, service: Option<&ServiceKey>) {
        if let Some(service) = service {
            self.sites.iter_mut().for_each(|site| site.touch(service));
        }
    }

    /// Somebody comes in the name of a cluster.
    fn knock(&mut self, site: usize, key: model::KeyFingerprint, vouched: bool) {
        let site = &self.sites[site % self.sites.len()];
        let home = site.cluster.get("Namespace", "", "kube-system");
        let fingerprint = home.and_then(|home| home["metadata"]["uid"].as_str().map(str::to_owned));
        let (Some(hub), Some(fingerprint)) = (&mut self.hub, fingerprint) else {
            return;
        };
        let stream = knock(&mut self.network, &fingerprint, None);
        hub.accept(stream, (&site.name, key, vouched), self.now);
        self.strangers.push(stream);
        self.seen.guarded.count(Law::Holders, 1);
    }

    pub(crate) fn decide(&mut self, decision: Decision) {
        let (at, name) = (self.moment(), hostile::name());
        let Some(hub) = &mut self.hub else { return };
        let (decided, word) = match decision {
            Decision::Incumbent => (hub.keep_incumbents(at), "incumbents kept"),
            Decision::Release(named) => (hub.release(&key(named), at), "precedence released"),
            Decision::Ban => (hub.restrict(&name, at), "hostile member banned"),
            Decision::Fence => (hub.fence(&name, OWN_RANGE, at), "hostile member fenced"),
            Decision::Quota => (hub.squeeze(&name, at), "hostile member squeezed"),
            Decision::Evict => (hub.evict(&name, at), "hostile member evicted"),
        };
        if decided {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count(word);
        }
    }

    /// A hub that did not see the hostile member end keeps what came from it; an operator does as it says.
    pub(crate) fn forget_who_is_gone(&mut self) {
        let at = self.moment();
        if self.hostile.is_some()
            && let Some(hub) = &mut self.hub
            && hub.forget(&hostile::name(), at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("hostile member forgotten");
        }
    }

    pub(crate) fn retain_nothing(&mut self) {
        let at = self.moment();
        if let Some(hub) = &mut self.hub {
            hub.retain_nothing(at, &mut self.seen);
        }
    }

    /// The hostile member goes on as far as it can; false when it had nothing to do.
    pub(crate) fn hostile_turn(&mut self) -> Result<bool, String> {
        let Some(hostile) = &mut self.hostile else {
            return Ok(false);
        };
        let mut something = false;
        let banished = self.hub.as_ref().is_some_and(is_banished);
        if let Some(hub) = &mut self.hub
            && let Some(stream) = hostile.connect(&mut self.network, self.now, banished)
        {
            hub.accept(stream, (&hostile::name(), hostile::key(), false), self.now);
            if banished {
                self.seen.count("evicted member came again");
            }
            something = true;
        }
        while hostile.speak(&mut self.network, self.now, (&mut self.seen, &mut self.trace)) {
            something = true;
        }
        while hostile.listen(&mut self.network, self.now)? {
            something = true;
        }
        Ok(something)
    }

    /// It has nothing left to say, or no word.
    pub(crate) fn hostile_is_quiet(&self) -> bool {
        let banished = self.hub.as_ref().is_some_and(is_banished);
        self.hostile
            .as_ref()
            .is_none_or(|hostile| banished || hostile.is_quiet())
    }
}

/// Its membership was ended, and nobody lets it in again.
fn is_banished(hub: &Hub) -> bool {
    let member = hub.state().member(&hostile::name());
    member.is_some_and(|member| !member.is_current())
}
