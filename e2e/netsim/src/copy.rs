//! Owns: a cluster that is restored from a backup of a member's, Secret and Lease with it, and the machine of its agent.
//! Never: says what must become of it, or of the member.

use std::{rc::Rc, sync::Arc};

use super::{
    clusterset::{SimulatedClusterset, SimulatedMember},
    program::{AgentMachine, Life, run_agent},
};
use sim::{Clock, ManualClock, limits::Requests};

/// The name of the copy and of its agent's machine.
pub(super) const COPY: &str = "copy";

impl SimulatedClusterset {
    /// A member's cluster as it is now; nothing runs in it yet. Its agent goes on under the name of the one that leads, or
    /// under a name of its own.
    pub(super) fn copy(&mut self, member: usize, own_name: bool) {
        let original = &self.members[member];
        let clock = Arc::new(ManualClock::new(original.clock.now_ms()));
        let cluster = original.cluster.restored(COPY, clock.clone());
        let leader = original.leader();
        let machine = Rc::new(AgentMachine {
            name: COPY,
            holder: if own_name { COPY } else { leader.holder },
            life: Life::default(),
            cluster: cluster.clone(),
            id: leader.id.clone(),
            pace: Arc::default(),
            source_leases: leader.source_leases,
            credentials: leader.credentials.clone(),
        });
        self.copy = Some(SimulatedMember {
            cluster,
            machines: vec![machine],
            clock,
            requests: Requests::default(),
            led_by: None,
        });
        self.down.borrow_mut().push(COPY);
    }

    /// The copy's agent starts.
    pub(super) fn run_copy(&mut self) {
        let machines = self.copy.iter().flat_map(|copy| &copy.machines);
        for machine in machines.cloned().collect::<Vec<_>>() {
            self.sim.host(machine.name, move || run_agent(machine.clone()));
        }
        self.down.borrow_mut().retain(|down| *down != COPY);
    }

    /// The copy is gone without a word.
    pub(super) fn end_copy(&mut self) {
        self.drop_machine(COPY);
        self.copy = None;
    }
}
