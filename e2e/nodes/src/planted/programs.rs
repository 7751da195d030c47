//! Owns: the hub and the agents that run on clusters: giving them programs with faults in them, and back those that were
//! installed.
//! Never: knows what a fault is.

use anyhow::Context;

use super::fault::Program;
use crate::{
    churn,
    client::Asking,
    control::{ControlPlane, wait_for},
    installed, names,
    running::Running,
    traffic,
};
use variants::{Number, UNCHANGED, VARIABLE};

/// The namespaces of everything that is asked.
const NAMESPACES: [&str; 3] = [traffic::NAMESPACE, names::NAMESPACE, churn::NAMESPACE];
/// The pod of the hub.
const HUB_POD: &str = "pod/tributary-hub-0";
/// kubectl's wait, as long as ours.
const KUBECTL_WAIT: &str = "--timeout=120s";

impl Program {
    /// The image with all faults of the program in it.
    pub(super) fn image(self) -> &'static str {
        match self {
            Self::Hub => "tributary.local/planted-hub:1",
            Self::Agent => "tributary.local/planted:1",
        }
    }

    /// The object that runs it.
    fn object(self) -> &'static str {
        match self {
            Self::Hub => "statefulset/tributary-hub",
            Self::Agent => "deployment/tributary-agent",
        }
    }

    /// Its container there.
    fn container(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Agent => "agent",
        }
    }

    /// The variant that it is when this one has a fault of this number.
    fn variant(self, fault: Option<(Self, Number)>) -> Number {
        let own = fault.filter(|(program, _)| *program == self);
        own.map_or(UNCHANGED, |(_, number)| number)
    }
}

/// The programs that run.
pub(super) struct Programs<'a> {
    planes: Vec<ControlPlane<'a>>,
    /// The images of those that were installed.
    hub_before: String,
    agent_before: String,
    /// The hub's variant; absent while it is the one that was installed.
    hub: Option<Number>,
}

impl<'a> Programs<'a> {
    /// Those that are installed.
    pub(super) fn installed(running: &'a Running) -> anyhow::Result<Self> {
        let planes = running.planes();
        let first = planes.first().context("there are clusters")?;
        let [hub_before, agent_before] = [image_of(first, Program::Hub)?, image_of(first, Program::Agent)?];
        Ok(Self {
            planes,
            hub_before,
            agent_before,
            hub: None,
        })
    }

    /// Runs hub and agents with this fault, or without one. Nothing is left of the namespace that is asked about.
    pub(super) fn choose(&mut self, fault: Option<(Program, Number)>, namespace: &str) -> anyhow::Result<()> {
        let [hub, agent] = Program::ALL.map(|program| program.variant(fault));
        let is_other_hub = self.hub != Some(hub);
        if is_other_hub {
            self.withdraw_all()?;
        }
        let delete = [
            "delete",
            "namespace",
            namespace,
            "--ignore-not-found",
            KUBECTL_WAIT,
        ];
        for plane in &self.planes {
            plane.kubectl(&delete)?;
        }
        if is_other_hub {
            // Whatever comes of it, the one that was installed does not run any more.
            self.hub = None;
            self.set(Program::Hub, Program::Hub.image(), Some(hub))?;
            self.hub = Some(hub);
            self.settle(Program::Hub)?;
        }
        self.set(Program::Agent, Program::Agent.image(), Some(agent))?;
        if is_other_hub {
            self.forget()?;
        }
        self.settle(Program::Agent)
    }

    /// Runs those that were installed again. One that cannot be put back does not keep the other from it.
    pub(super) fn put_back(&self) -> anyhow::Result<()> {
        let hub = self
            .set(Program::Hub, &self.hub_before, None)
            // A pod that never became ready would be waited for, and not be replaced.
            .and_then(|()| self.delete_hub_pod())
            .and_then(|()| self.settle(Program::Hub));
        let agents = self
            .set(Program::Agent, &self.agent_before, None)
            .and_then(|()| self.forget())
            .and_then(|()| self.settle(Program::Agent));
        hub.context("the hub that was installed is not back")
            .and(agents.context("the agents that were installed are not back"))
    }

    /// Takes back every export of what is asked, and waits until no cluster imports any of it: a hub that derives
    /// otherwise refuses a snapshot in which they are.
    fn withdraw_all(&self) -> anyhow::Result<()> {
        for (plane, namespace) in self.everywhere() {
            Asking { plane, namespace }.kubectl(&["delete", "serviceexports", "--all", KUBECTL_WAIT])?;
        }
        for (plane, namespace) in self.everywhere() {
            let imports = ["get", "serviceimports", "--output=name"];
            let asking = Asking { plane, namespace };
            wait_for(
                &format!("{} imports nothing of {namespace} any more", plane.name),
                &plane.directory,
                || asking.kubectl(&imports).is_ok_and(|said| said.trim().is_empty()),
            )?;
        }
        Ok(())
    }

    fn everywhere(&self) -> impl Iterator<Item = (&ControlPlane<'a>, &'static str)> {
        let planes = self.planes.iter();
        planes.flat_map(|plane| NAMESPACES.map(|namespace| (plane, namespace)))
    }

    /// The clusters that have it: all have an agent, the first one has the hub.
    fn clusters(&self, program: Program) -> &[ControlPlane<'a>] {
        match program {
            Program::Hub => &self.planes[..1],
            Program::Agent => &self.planes,
        }
    }

    fn set(&self, program: Program, image: &str, variant: Option<Number>) -> anyhow::Result<()> {
        let object = program.object();
        let image = format!("{}={image}", program.container());
        let variant = variant.map_or_else(|| format!("{VARIABLE}-"), |number| format!("{VARIABLE}={number}"));
        for plane in self.clusters(program) {
            let system = system(plane);
            system.kubectl(&["set", "image", object, &image])?;
            system.kubectl(&["set", "env", object, &variant])?;
        }
        Ok(())
    }

    /// Makes agents request everything again after another hub: if content was derived otherwise, a known revision
    /// means nothing.
    fn forget(&self) -> anyhow::Result<()> {
        for plane in &self.planes {
            system(plane).kubectl(&["rollout", "restart", Program::Agent.object()])?;
        }
        Ok(())
    }

    fn delete_hub_pod(&self) -> anyhow::Result<()> {
        for plane in self.clusters(Program::Hub) {
            system(plane).kubectl(&["delete", HUB_POD, "--ignore-not-found", KUBECTL_WAIT])?;
        }
        Ok(())
    }

    fn settle(&self, program: Program) -> anyhow::Result<()> {
        for plane in self.clusters(program) {
            system(plane).kubectl(&["rollout", "status", program.object(), KUBECTL_WAIT])?;
        }
        Ok(())
    }
}

fn image_of(plane: &ControlPlane<'_>, program: Program) -> anyhow::Result<String> {
    let image = ".spec.template.spec.containers[0].image";
    let found = system(plane).field(program.object(), image)?;
    let missing = || format!("{} is not installed", program.name());
    found.into_iter().next().with_context(missing)
}

fn system<'a>(plane: &'a ControlPlane<'a>) -> Asking<'a> {
    Asking {
        plane,
        namespace: installed::NAMESPACE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_given_to_its_own_program_only() {
        let chosen = |fault| Program::ALL.map(|program| program.variant(fault));
        assert_eq!(chosen(Some((Program::Hub, 7))), [7, UNCHANGED]);
        assert_eq!(chosen(Some((Program::Agent, 7))), [UNCHANGED, 7]);
        assert_eq!(chosen(None), [UNCHANGED, UNCHANGED]);
    }

    #[test]
    fn containers_are_called_as_charts_call_them() {
        for (program, template) in [
            (
                Program::Hub,
                include_str!("../../../../deploy/charts/hub/templates/statefulset.yaml"),
            ),
            (
                Program::Agent,
                include_str!("../../../../deploy/charts/agent/templates/deployment.yaml"),
            ),
        ] {
            let container = format!("containers:\n      - name: {}\n", program.container());
            assert!(template.contains(&container), "{container}");
            let (_, name) = program.object().split_once('/').unwrap();
            assert!(template.contains(&format!("  name: {name}\n")), "{name}");
        }
    }
}
