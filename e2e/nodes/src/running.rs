//! Owns: clusters that run: finding their control planes and nodes again.
//! Never: starts or ends one.

use anyhow::Context;

use super::{
    control::ControlPlane,
    layout::{Directory, Layout, Place, cluster_name},
    namespace::Namespace,
    node::Node,
    programs::Programs,
};
use advice::{NODES_DOWN, NODES_UP};

/// The running parts.
pub(super) struct Running {
    pub(super) directory: Directory,
    pub(super) layout: Layout,
    pub(super) programs: Programs,
    /// Namespace of all control planes.
    pub(super) control: Namespace,
}

impl Running {
    /// The clusters of this directory; an error says what to do when they do not run.
    pub(super) fn of(directory: &Directory) -> anyhow::Result<Self> {
        let layout = directory.layout()?;
        let control = Namespace::of(&directory.control())
            .with_context(|| format!("the control planes do not run; run `{NODES_DOWN}` and `{NODES_UP}`"))?;
        Ok(Self {
            directory: directory.clone(),
            layout,
            programs: Programs::of_this_workspace(),
            control,
        })
    }

    /// The control planes, by number.
    pub(super) fn planes(&self) -> Vec<ControlPlane<'_>> {
        planes(&self.directory, self.layout, &self.control, &self.programs)
    }

    /// All nodes of all clusters; an error names one that does not run.
    pub(super) fn nodes(&self) -> anyhow::Result<Vec<Node<'_>>> {
        let node = |place| {
            let namespace = Namespace::of(&self.directory.node(place))
                .with_context(|| format!("the node {} does not run", place.name()))?;
            Ok(Node::of(
                place,
                &self.directory,
                self.layout,
                namespace,
                &self.programs,
            ))
        };
        self.layout.places().map(node).collect()
    }
}

/// The control planes of a layout, whether or not they run.
pub(super) fn planes<'a>(
    directory: &Directory,
    layout: Layout,
    namespace: &'a Namespace,
    programs: &'a Programs,
) -> Vec<ControlPlane<'a>> {
    let plane = |number| ControlPlane {
        name: cluster_name(number),
        addresses: layout.addresses(number),
        nodes: (layout.places().filter(|place| place.cluster == number))
            .map(Place::name)
            .collect(),
        directory: directory.cluster(number),
        namespace,
        programs,
    };
    layout.numbers().map(plane).collect()
}
