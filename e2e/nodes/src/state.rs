//! Owns: which clusters run, and what they say of themselves, also for those who cannot look at them any more.
//! Never: judges, or changes anything.

use super::{
    control::ControlPlane,
    installed::NAMESPACE,
    layout::{Directory, Place, cluster_name},
    namespace::Namespace,
    running::Running,
};

/// The last lines of each pod of ours; enough for a page.
const LOG_LINES: &str = "--tail=25";

/// Questions to every cluster.
const QUESTIONS: [&[&str]; 5] = [
    &["get", "nodes", "--output=wide"],
    &["get", "pods", "--all-namespaces", "--output=wide"],
    &[
        "get",
        "events",
        "--all-namespaces",
        "--field-selector=type=Warning",
    ],
    &["get", "serviceexports,serviceimports", "--all-namespaces"],
    &["get", "endpointslices", "--all-namespaces"],
];

/// Prints which nodes run, and where their files are.
pub(super) fn runs(directory: &Directory) -> anyhow::Result<()> {
    let layout = directory.layout()?;
    let runs = |running: bool| if running { "runs" } else { "does not run" };
    let control = Namespace::of(&directory.control()).is_some();
    println!("control planes: {}", runs(control));
    for place in layout.places() {
        let Place { cluster, .. } = place;
        let running = Namespace::of(&directory.node(place)).is_some();
        println!("{}: {} {}", cluster_name(cluster), place.name(), runs(running));
    }
    println!("files and logs: {}", directory.path().display());
    Ok(())
}

/// Prints what clusters say of themselves to standard error; what cannot be asked is said there too.
pub(super) fn show(directory: &Directory) {
    match Running::of(directory) {
        Ok(running) => running.planes().iter().for_each(show_cluster),
        Err(error) => eprintln!("nothing can be asked about these clusters: {error:#}"),
    }
}

fn show_cluster(plane: &ControlPlane<'_>) {
    eprintln!("\n=== what {} says", plane.name);
    QUESTIONS.iter().for_each(|question| ask(plane, question));
    let ours = ["get", "pods", "--namespace", NAMESPACE, "--output=name"];
    let pods = plane.kubectl(&ours).unwrap_or_default();
    for pod in pods.lines() {
        ask(plane, &["logs", pod, "--namespace", NAMESPACE, LOG_LINES]);
    }
}

fn ask(plane: &ControlPlane<'_>, question: &[&str]) {
    eprintln!("$ kubectl {}", question.join(" "));
    match plane.kubectl(question) {
        Ok(said) => eprintln!("{}", said.trim_end()),
        Err(error) => eprintln!("this cannot be asked: {error:#}"),
    }
}
