//! People's deeds and faults: each step of a script, put into effect.

use event_log::{Faults, MemoryDisk, Space};
use model::UnixMillis;

use super::{Agent, Blocked, CRDS, Draw, Hub, Left, START_MILLIS, What, World};
use crate::{
    happening::{AgentPart, Taken, WATCHES},
    judge,
    site::{Site, all_keys, is_among},
};

/// Less than what a hub keeps in reserve.
const NEARLY_FULL: Space = Space { free: 4, total: 100 };

/// Returns true if a crash tore the batch after the oldest `kept` unsynced ones: neither without it nor with all of it
/// does the disk that `was` have as many rows as the one that `is`. There may have been no such batch, or one of a
/// single row.
fn is_torn(was: &MemoryDisk, kept: usize, is: &MemoryDisk) -> bool {
    let rows_after = |kept| {
        let disk = was.copy();
        disk.crash(kept);
        disk.row_count()
    };
    ![rows_after(kept), rows_after(kept + 1)].contains(&is.row_count())
}

impl World {
    pub(crate) fn happen(&mut self, what: &What) -> Result<(), String> {
        if self.happen_in_cluster(what) || self.happen_to_members(what)? || self.happen_to_hub(what)? {
            Ok(())
        } else {
            Err("no part of the world knows this step: add it to a match of happen.rs".to_owned())
        }
    }

    /// Objects, API servers and watches of a cluster. False: it is something else.
    fn happen_in_cluster(&mut self, what: &What) -> bool {
        let seen = &mut self.seen;
        let count = self.sites.len();
        let index = |site: &usize| site % count;
        match what {
            What::Namespace(site, name) => self.sites[index(site)].make_namespace(*name, seen),
            What::RemoveNamespace(site, name) => self.sites[index(site)].remove_namespace(*name, seen),
            What::Service(site, name, shape) => self.sites[index(site)].make_service(*name, *shape),
            What::RemoveService(site, name) => self.sites[index(site)].remove_service(*name, seen),
            What::Export(site, name) => self.sites[index(site)].export(*name),
            What::Metadata(site, name, which) => {
                self.sites[index(site)].edit_metadata(*name, *which, seen);
            }
            What::Unexport(site, name) => self.sites[index(site)].unexport(*name, seen),
            What::Slice(site, name, slice, endpoints) => {
                self.sites[index(site)].make_slice(index(site), *name, *slice, *endpoints);
            }
            What::RemoveSlice(site, name, slice) => self.sites[index(site)].remove_slice(*name, *slice, seen),
            What::Stranger(site, name, import) => self.sites[index(site)].make_stranger(*name, *import, seen),
            What::RemoveStranger(site, name, import) => {
                self.sites[index(site)].remove_stranger(*name, *import)
            }
            What::Drift(site, which) => self.sites[index(site)].drift(*which, seen),
            What::RemoveCrd(site, exports) => self.remove_crd(index(site), *exports),
            What::InstallCrds(site) => self.install_crds(index(site)),
            What::DropWatches(site) => {
                self.sites[index(site)].cluster.faults().drop_watches();
                seen.count("watch dropped");
            }
            What::ForgetHistory(site) => {
                self.sites[index(site)].cluster.forget_history();
                seen.count("watch history lost");
            }
            What::Errors(site, which, times) => self.sites[index(site)].errors(*which, *times, seen),
            What::RefuseWrites(site, which) => self.sites[index(site)].refuse_writes(*which, seen),
            What::Slow(site, other, slow) => {
                self.sites[index(site)].slow_down((*other).into(), (*slow).into(), seen);
            }
            What::Spoil(site, name, which) => self.sites[index(site)].spoil(*name, *which, seen),
            What::CutListings(site, times) => self.sites[index(site)].cuts += times,
            What::Stall(site, part) => {
                self.sites[index(site)].stalled = Some(*part);
                seen.count("part stalled");
            }
            What::Forge(site) => self.sites[index(site)].agents.iter_mut().for_each(Agent::forge),
            What::Lie(site) => {
                let site = &mut self.sites[index(site)];
                site.lies = true;
                site.touch_all();
                seen.count("age of exports forged");
            }
            _ => return false,
        }
        true
    }

    /// Agents, keys, memberships and what operators decide of them.
    fn happen_to_members(&mut self, what: &What) -> Result<bool, String> {
        let seen = &mut self.seen;
        let count = self.sites.len();
        let index = |site: &usize| site % count;
        match what {
            What::Evict(site) => self.evict(index(site)),
            What::Drain(site, after_millis, evicts) => self.drain(index(site), *after_millis, *evicts),
            What::Stay(site) => self.stay(index(site)),
            What::Leave(site) => self.leave(index(site)),
            What::Certify(site) => self.certify(index(site)),
            What::Renew(site) => {
                let site = &mut self.sites[index(site)];
                (site.certificate, site.renewable) = (site.certificate + 1, true);
                seen.count("certificate renewed");
            }
            What::RenewOverSession(site) => {
                let site = &mut self.sites[index(site)];
                let next = site.key_of(site.certificate + 1);
                for agent in &mut site.agents {
                    if agent.ask_for_certificate(next) {
                        self.seen.count("certificate asked for");
                    }
                }
            }
            What::Restrict(site) => self.restrict(index(site)),
            What::Squeeze(site) => self.squeeze(index(site)),
            What::Impatient(withdraw) => self.be_impatient(*withdraw, false),
            What::Brief(withdraw) => self.be_impatient(*withdraw, true),
            What::LetWithdraw => self.let_withdraw(),
            What::Careful(for_a_while) => self.be_careful(*for_a_while),
            What::LetGo(site) => self.release_held(index(site)),
            What::Take(site, taken) => self.let_take(index(site), *taken),
            What::RestRestricted => self.rest_restricted()?,
            What::Revoke(site) => self.revoke(index(site)),
            What::Hostile(hostility) => self.be_hostile(*hostility),
            What::Decide(decision) => self.decide(*decision),
            What::Retain(always) => {
                self.retains_nothing |= always;
                self.retain_nothing();
            }
            What::Copy(site) => self.copy_member(index(site)),
            What::RunCopy => self.run_copy(),
            What::CrashAgent(site) => self.crash_agent(index(site)),
            What::GoAway(site) => self.go_away(index(site)),
            What::ComeHome(site) => self.come_home(index(site)),
            What::DoubleAgent(site) => self.double_agent(index(site)),
            What::ExpireOnHubLoss(site) => self.expire_on_hub_loss(index(site)),
            What::MeddleWithLease(site, which) => self.meddle_with_lease(index(site), *which),
            What::HandOver(site, going) => self.hand_over(index(site), *going)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The hub, its disk, the network and time.
    fn happen_to_hub(&mut self, what: &What) -> Result<bool, String> {
        let seen = &mut self.seen;
        let count = self.sites.len();
        let index = |site: &usize| site % count;
        match what {
            What::CrashHub(kept, torn) => self.crash_hub(*kept, *torn)?,
            What::SlowSession(site) => {
                let slow = self.sites[index(site)].name.clone();
                if let Some(hub) = &mut self.hub {
                    hub.slow = Some(slow);
                    seen.count("session hears late");
                }
            }
            What::StopHub => self.stop_hub()?,
            What::FailSync => self.fail_sync(),
            What::FillDisk(full) => {
                self.disk.set_space(full.then_some(NEARLY_FULL));
                seen.count(if *full { "disk nearly full" } else { "disk freed" });
            }
            What::Backup => self.backup = Some(self.disk.copy()),
            What::Restore => self.restore()?,
            What::EmptyHub(skew) => self.empty_hub(*skew)?,
            What::Block(site, up, down) => {
                self.network.ways[index(site)] = Blocked { up: *up, down: *down };
                seen.count(if *up && *down {
                    "partition"
                } else {
                    "half partition"
                });
            }
            What::Unblock(site) => self.network.ways[index(site)] = Blocked::default(),
            What::Reset(site) => {
                (0..self.network.reset(index(site))).for_each(|_| seen.count("connection broken"));
            }
            What::Skew(site, by) => {
                self.sites[index(site)].clock.advance(i64::from(*by));
                seen.count("clock skewed");
            }
            What::Pass(millis) => {
                self.pass(u64::from(*millis));
                self.seen.count("time passed");
            }
            What::Rounds(count) => {
                for _ in 0..*count {
                    self.troubled_round()?;
                }
            }
            What::Rest(restart) => self.rest(*restart)?,
            _ => return Ok(self.happen_to_clocks(what)),
        }
        Ok(true)
    }

    fn remove_crd(&mut self, index: usize, exports: bool) {
        let name = if exports {
            "serviceexports"
        } else {
            "serviceimports"
        };
        let site = &mut self.sites[index];
        if exports {
            self.definitions.goes(&judge::picture(site), &site.touched);
        }
        if site
            .cluster
            .remove_crd(&format!("{name}.multicluster.x-k8s.io"))
            .is_ok()
        {
            site.touch_all();
            if !exports {
                site.strangers.retain(|(kind, _), _| kind != "ServiceImport");
            }
            self.seen.count("crd removed");
        }
    }

    pub(crate) fn install_crds(&mut self, index: usize) {
        let site = &mut self.sites[index];
        for crd in &*CRDS {
            let group = crd.name().ends_with(".multicluster.x-k8s.io");
            // Replacing a served one would end its watches for no reason.
            if group && !site.cluster.serves(crd.name()) {
                site.cluster.install_crd(crd);
                site.touch_all();
                site.agents.iter_mut().for_each(Agent::schema_changed);
            }
        }
    }

    /// An operator ends the membership; what came from the cluster goes everywhere.
    fn evict(&mut self, index: usize) {
        let at = self.moment();
        let site = &mut self.sites[index];
        if let Some(hub) = &mut self.hub
            && hub.evict(&site.name, at)
        {
            site.touch_all();
            self.seen.count("member evicted");
        }
    }

    /// An operator has the cluster leave: its endpoints go, and come with those of others; later all of it goes.
    fn drain(&mut self, index: usize, after_millis: u32, evicts: bool) {
        let (at, name) = (self.moment(), self.sites[index].name.clone());
        if let Some(hub) = &mut self.hub
            && hub.drain(&name, (after_millis.into(), evicts), at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("member is to leave");
        }
    }

    /// It stays, if it is to leave.
    pub(crate) fn stay(&mut self, index: usize) {
        let (at, name) = (self.moment(), self.sites[index].name.clone());
        if let Some(hub) = &mut self.hub
            && hub.stay(&name, at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("member stays");
        }
    }

    /// The cluster leaves, and what came from it goes everywhere.
    fn leave(&mut self, index: usize) {
        let (at, name) = (self.moment(), self.sites[index].name.clone());
        if let Some(hub) = &mut self.hub
            && hub.leave(&name, at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("member left");
        }
    }

    /// The cluster's exports go everywhere, itself included.
    fn restrict(&mut self, index: usize) {
        let at = self.moment();
        let name = &self.sites[index].name;
        if let Some(hub) = &mut self.hub
            && hub.restrict(name, at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("policy tightened");
        }
    }

    /// Later reports of the cluster wait, and recorded ones stay.
    fn squeeze(&mut self, index: usize) {
        let at = self.moment();
        let name = &self.sites[index].name;
        if let Some(hub) = &mut self.hub
            && hub.squeeze(name, at)
        {
            // It may take the place of one that refused.
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("policy squeezed");
        }
    }

    /// Members that stay lost are withdrawn soon, and perhaps after a brief time though many are lost.
    fn be_impatient(&mut self, withdraw: bool, brief: bool) {
        let at = self.moment();
        if let Some(hub) = &mut self.hub
            && hub.be_impatient((withdraw, brief), at)
        {
            // It may take the place of one that refused.
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("policy on losses");
        }
    }

    /// Lost members are withdrawn, however many there are.
    fn let_withdraw(&mut self) {
        let at = self.moment();
        if let Some(hub) = &mut self.hub {
            hub.let_withdraw(at);
        }
    }

    /// A member that withdraws half of its exports is put on hold.
    fn be_careful(&mut self, for_a_while: bool) {
        let at = self.moment();
        if let Some(hub) = &mut self.hub
            && hub.be_careful(for_a_while, at)
        {
            // It may take the place of one that refused.
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("policy on removals");
        }
    }

    /// Accepts a cluster's withdrawals on hold.
    pub(crate) fn release_held(&mut self, index: usize) {
        let (at, name) = (self.moment(), self.sites[index].name.clone());
        if let Some(hub) = &mut self.hub
            && hub.release_held(&name, at)
        {
            self.sites.iter_mut().for_each(Site::touch_all);
            self.seen.count("held exports let go");
        }
    }

    /// Imports that the cluster may not accept go in it, and nothing else anywhere, unless it replaces another policy.
    fn let_take(&mut self, index: usize, taken: Taken) {
        let at = self.moment();
        let Some(hub) = &mut self.hub else { return };
        let restricted = hub.restricts();
        if !hub.let_take(&self.sites[index].name, taken, at) {
            return;
        }
        if restricted {
            self.sites.iter_mut().for_each(Site::touch_all);
        }
        for service in all_keys().filter(|service| !is_among(service, taken)) {
            self.sites[index].touch(&service);
        }
        self.seen.count(match taken {
            Taken::Everything => "imports taken again",
            _ => "imports withheld",
        });
    }

    /// An operator refuses the key of a cluster for ever. It stays a member with what it exports.
    fn revoke(&mut self, index: usize) {
        let (at, site) = (self.moment(), &self.sites[index]);
        if let Some(hub) = &mut self.hub
            && hub.revoke(&site.name, site.key(), at)
        {
            self.seen.count("key revoked");
        }
    }

    /// A cluster whose key the hub refuses for ever gets another one; one that is refused as unknown is admitted by an
    /// operator, unless its issuer vouches for it.
    pub(crate) fn certify(&mut self, index: usize) {
        let (at, site) = (self.moment(), &mut self.sites[index]);
        let Some(hub) = &mut self.hub else { return };
        if hub.refuses(&site.name, site.key()) {
            (site.certificate, site.renewable) = (site.certificate + 1, false);
            self.seen.count("member certified anew");
        }
        hub.rekey(&site.name, (site.key(), site.renewable), at);
    }

    /// Starts the hub over the present disk; a log that does not open is put back from the copy, or begun anew, as
    /// its message tells an operator to.
    pub(crate) fn start_hub(&mut self) -> Result<(), String> {
        let random = self.ids.number();
        let start = |world: &Self| {
            let recorded = world.recorded.clone();
            Hub::start(&world.disk, &world.set, world.moment(), random, recorded)
        };
        let mut hub = start(self);
        if hub.is_err() && std::mem::take(&mut self.sync_fails) {
            // It said so and ended; somebody replaces the disk's cable.
            self.heal_disk();
            hub = start(self);
        }
        let hub = hub.map_err(|why| format!("the hub does not start: {why}"))?;
        if let Some(left) = self.left.take() {
            left.check(&hub, &mut self.seen.guarded)?;
        }
        // A hub that knows less of the hostile member takes up again what it had let go, or ends what it took.
        if hub.restricts() || (self.hostile.is_some() && self.recorded.is_none()) {
            // By its policy what came since may go: an old copy of the log may have one that is none any more.
            self.sites.iter_mut().for_each(Site::touch_all);
        }
        self.hub = Some(hub);
        self.held.forget();
        Ok(())
    }

    /// Ends the hub's process, as a kill does.
    pub(super) fn kill_hub(&mut self, lose: bool) {
        if let Some(hub) = self.hub.take() {
            self.left = Some(Left::by(&hub));
            self.recorded = Some(hub.recorded());
            self.broken = self.broken.take().or_else(|| hub.broken().cloned());
        }
        self.network.hub_crashes(lose);
    }

    /// Sends the clusters' changes to the hub as far as they get there; the hub has written and not synced them: of all
    /// moments the worst to crash.
    fn write_unsynced(&mut self, draw: &mut Draw) -> Result<(), String> {
        for index in 0..self.sites.len() {
            for which in 0..self.sites[index].agents.len() {
                let watches = (0..WATCHES).map(AgentPart::Watch);
                for part in watches.chain([AgentPart::Observe]) {
                    self.part_turn(index, which, part, draw)?;
                }
                while self.part_turn(index, which, AgentPart::Speak, draw)? {}
            }
        }
        let at = self.moment();
        if let Some(hub) = &mut self.hub {
            hub.write_unsynced(&mut self.network, at, &mut self.seen);
        }
        Ok(())
    }

    fn crash_hub(&mut self, kept: u8, torn: bool) -> Result<(), String> {
        if torn {
            self.write_unsynced(&mut Draw::new(self.now))?;
        }
        self.kill_hub(kept == 0);
        self.seen.count("hub crashed");
        // The last batch that was written is the one that is torn.
        let kept = if torn {
            self.disk.unsynced().saturating_sub(1)
        } else {
            usize::from(kept)
        };
        if self.disk.unsynced() > kept {
            self.seen.count("hub lost unsynced batches");
        }
        if !torn {
            self.disk.crash(kept);
            return self.start_hub();
        }
        let was = self.disk.copy();
        self.disk.crash_torn(kept, 1);
        let tore = is_torn(&was, kept, &self.disk);
        let epoch = model::Epoch {
            created_at: UnixMillis(START_MILLIS),
            random: 0,
        };
        // sled's batches are whole or not there; a store that tears one must be noticed, or have kept whole events.
        let noticed = event_log::MemoryLog::open(&self.disk, &self.set, epoch).is_err();
        if noticed {
            self.disk = was;
            self.disk.crash(kept);
        }
        if tore {
            self.seen.count(if noticed {
                "torn batch noticed"
            } else {
                "torn batch"
            });
        }
        self.start_hub()
    }

    /// The hub ends in order, and another process of it starts over the same disk.
    pub(crate) fn stop_hub(&mut self) -> Result<(), String> {
        let at = self.moment();
        if let Some(hub) = self.hub.take() {
            self.broken = self.broken.take().or_else(|| hub.broken().cloned());
            let (stopped, recorded, left) = hub.stop(&mut self.network, at, &mut self.seen);
            (self.recorded, self.left) = (Some(recorded), Some(left));
            if let Err(error) = stopped
                && !self.sync_fails
            {
                return Err(format!("the hub does not stop in order: {error}"));
            }
        }
        self.seen.count("hub stopped in order");
        self.start_hub()
    }

    /// Syncs work again; what was not synced is lost.
    pub(super) fn heal_disk(&mut self) {
        self.sync_fails = false;
        self.disk.set_faults(Faults::default());
        self.disk.crash(0);
    }

    fn fail_sync(&mut self) {
        self.sync_fails = true;
        self.disk.set_faults(Faults {
            fail_sync: true,
            ..Faults::default()
        });
    }

    fn restore(&mut self) -> Result<(), String> {
        let Some(backup) = &self.backup else { return Ok(()) };
        let backup = backup.copy();
        self.kill_hub(true);
        self.disk = backup;
        self.heal_disk();
        (self.left, self.recorded) = (None, None);
        self.definitions.forget();
        self.seen.count("hub restored from a backup");
        self.start_hub()
    }

    fn empty_hub(&mut self, skew: i32) -> Result<(), String> {
        self.hub_skew = i64::from(skew);
        self.kill_hub(true);
        self.disk = MemoryDisk::default();
        self.sync_fails = false;
        (self.left, self.recorded) = (None, None);
        self.definitions.forget();
        self.seen.count("hub started empty");
        self.start_hub()
    }
}

#[cfg(test)]
mod tests {
    use event_log::{Batch, Log, MemoryLog, ROW_BYTES_MAX};
    use model::{Clusterset, Epoch};

    use super::*;

    /// A disk with two unsynced batches: of one row, and of four.
    fn unsynced() -> MemoryDisk {
        let disk = MemoryDisk::default();
        let set = Clusterset::new("swarm.tributary.test", "default").expect("valid");
        let epoch = Epoch {
            created_at: UnixMillis(START_MILLIS),
            random: 0,
        };
        let mut log = MemoryLog::open(&disk, &set, epoch).expect("an empty disk");
        log.hold_syncs(true);
        let before = log.head();
        let small = Batch::new(before, vec![b"one".to_vec()]).expect("valid");
        let between = small.head_after();
        log.append(small, Box::new(|_| {}));
        let large = vec![b"one".to_vec(), vec![2; 3 * ROW_BYTES_MAX - 200]];
        log.append(Batch::new(between, large).expect("valid"), Box::new(|_| {}));
        assert_eq!(disk.unsynced(), 2);
        disk
    }

    #[test]
    fn a_batch_is_torn_when_some_of_its_rows_stay_and_others_do_not() {
        let was = unsynced();
        for (kept, rows, tore) in [
            // A batch of one row is there or is not.
            (0, 0, false),
            (0, 1, false),
            (1, 0, false),
            (1, 1, true),
            (1, 3, true),
            (1, 4, false),
            // There is no third.
            (2, 1, false),
        ] {
            let is = was.copy();
            is.crash_torn(kept, rows);
            assert_eq!(
                is_torn(&was, kept, &is),
                tore,
                "{rows} rows behind {kept} batches"
            );
        }
    }
}
