//! Owns: from one of our images to another by charts, and back by Helm, while requests go on.
//! Never: builds an image.

use std::path::Path;

use super::{
    orders::nothing_is_there,
    steps::{Step, under_requests},
};
use crate::{
    control::ControlPlane,
    install::{Installer, REPOSITORY},
    installed::{Installed, release},
    layout::Directory,
    running::Running,
};

/// Name of the earlier image: both have one version.
const BEFORE: &str = "tributary-before";
/// Helm's wait for pods.
const HELM_WAIT: &str = "--timeout=3m";

/// Installs one image, puts the other in its place, and goes back.
pub(crate) fn rollback(
    directory: &Directory,
    before: &Path,
    image: &Path,
    requests: u32,
) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let planes = running.planes();
    planes.iter().try_for_each(nothing_is_there)?;
    let [earlier, later] = [BEFORE, REPOSITORY].map(|repository| Installer {
        installed: &installed,
        repository,
    });
    earlier.image(before)?;
    earlier.certificates()?;
    for plane in &planes {
        earlier.prepare(plane)?;
        earlier.definitions(plane)?;
    }
    earlier.hub(&planes[0])?;
    planes.iter().try_for_each(|plane| earlier.agent(plane))?;
    println!("the earlier image runs in all clusters");
    later.image(image)?;
    let steps = [
        Step::new("upgrade of the hub", || {
            later.hub(&planes[0])?;
            installed.in_session()
        }),
        Step::new("upgrade of the agents", || {
            planes.iter().try_for_each(|plane| later.agent(plane))
        }),
        Step::new("rollback of the agents", || {
            planes
                .iter()
                .try_for_each(|plane| back(&installed, plane, "agent"))
        }),
        Step::new("rollback of the hub", || {
            back(&installed, &planes[0], "hub")?;
            installed.in_session()
        }),
    ];
    under_requests(&running, requests, &steps)?;
    println!("to another image and back: no request was lost");
    Ok(())
}

/// The release as it was before.
fn back(installed: &Installed<'_>, plane: &ControlPlane<'_>, chart: &str) -> anyhow::Result<()> {
    installed.helm(plane, &["rollback", &release(chart), "--wait", HELM_WAIT])
}
