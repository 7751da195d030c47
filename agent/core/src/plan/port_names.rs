//! Names of ports in a derived Service and in the slices behind it. kube-proxy joins the two by name, so a changed name
//! leaves a port without endpoints: an unnamed port is named from the first write. Pure; it knows one former name (none
//! at all, as the first agents wrote it) and how to migrate without a gap.

use model::{EndpointPort, Protocol, ServicePort};

use super::view::ServiceView;

/// The name of one port in the derived Service of `ports` and in the slices behind it. `ports` has all of them: a name
/// that another port has is taken.
pub(super) fn derived_port_name(ports: &[ServicePort], port: &ServicePort) -> Box<str> {
    if !port.name.is_empty() {
        return port.name.clone();
    }
    let name = format!("unnamed-{}-{}", protocol_word(port.protocol), port.port);
    let others = (1..=ports.len()).map(|number| format!("{name}-{number}"));
    let is_free = |name: &String| ports.iter().all(|port| *port.name != **name);
    let mut names = std::iter::once(name.clone()).chain(others);
    names.find(is_free).unwrap_or(name).into()
}

/// The port of an import that a derived Service calls like this.
pub(super) fn imported_port(derived: &ServicePort) -> ServicePort {
    let unnamed = ServicePort {
        name: "".into(),
        ..derived.clone()
    };
    if derived_port_name(&[], &unnamed) == derived.name {
        unnamed
    } else {
        derived.clone()
    }
}

fn protocol_word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

/// The name of the unnamed port, if there is one, in the slices behind one derived Service.
#[derive(Debug, Default)]
pub(super) struct PortNames {
    unnamed: Option<Unnamed>,
}

#[derive(Debug)]
struct Unnamed {
    protocol: Protocol,
    name: Box<str>,
    /// The existing Service still has no name for it.
    is_nameless_yet: bool,
}

impl PortNames {
    /// The names that a derived Service of these `ports` needs, if there is to be one, and those of the cluster's
    /// objects.
    pub(super) fn of(ports: Option<&[ServicePort]>, view: &ServiceView) -> Self {
        let Some(ports) = ports else {
            return Self::default();
        };
        let found = view.derived.ours().filter(|ours| !ours.deleting);
        let found = found.map(|ours| &ours.content.content.ports);
        let unnamed = ports.iter().find(|port| port.name.is_empty());
        let unnamed = unnamed.map(|port| {
            let mut found = found.into_iter().flatten();
            Unnamed {
                protocol: port.protocol,
                name: derived_port_name(ports, port),
                is_nameless_yet: found.any(|found| {
                    found.name.is_empty() && (found.protocol, found.port) == (port.protocol, port.port)
                }),
            }
        });
        Self { unnamed }
    }

    /// The Service has to be given a name for a port under traffic: first every slice has the port under both.
    pub(super) fn are_changing(&self) -> bool {
        self.unnamed.as_ref().is_some_and(|port| port.is_nameless_yet)
    }

    /// Calls the unnamed port of a slice as the Service does: by both names while that changes.
    pub(super) fn adjust(&self, ports: &mut Vec<EndpointPort>) {
        let Some(unnamed) = &self.unnamed else { return };
        let nameless = |port: &EndpointPort| port.name.is_empty() && port.protocol == unnamed.protocol;
        let before = ports.iter().position(nameless);
        let after = ports.iter().position(|port| port.name == unnamed.name);
        let called = |port: &EndpointPort, name: &str| EndpointPort {
            name: name.into(),
            ..port.clone()
        };
        match (before, after, unnamed.is_nameless_yet) {
            (Some(before), None, true) => ports.push(called(&ports[before], &unnamed.name)),
            (None, Some(after), true) => ports.push(called(&ports[after], "")),
            (Some(before), None, false) => ports[before].name.clone_from(&unnamed.name),
            (Some(before), Some(_), false) => drop(ports.remove(before)),
            (None, _, _) | (Some(_), Some(_), true) => {}
        }
    }
}
