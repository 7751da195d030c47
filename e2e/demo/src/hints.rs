//! Commands for a user while the demo runs: kubectl and grpcurl lines if those are installed, and our own always. Text
//! only.

use std::path::{Path, PathBuf};

use super::{directory::DemoDirectory, objects::GREETER_FILE};
use cluster::real::module::Module;
use shared::model::advice::quoted;

/// Commands to try, each with what comes of it; `directory`: not the one that a demo has by itself.
pub fn suggestions(directory: Option<&Path>) -> Vec<(String, &'static str)> {
    let apply = format!("apply east {GREETER_FILE}");
    let tried = [
        (&*apply, "a service of yours, exported"),
        ("export west shop/greeter", "refused: west has no such Service"),
        ("unexport west shop/cart", "east's settings take over"),
        ("get imports", "also: exports, slices"),
        ("events --follow", "the hub's log"),
        ("kill hub", "nothing vanishes; `start hub` again"),
        ("kill west", "west's agent; `start west` again"),
    ];
    let command = |(what, outcome): (&str, _)| (advice::demo_in(directory, what), outcome);
    tried.map(command).into()
}

/// The lines, for a terminal of its own.
pub(super) fn hints(place: &DemoDirectory) -> Vec<String> {
    let directory = short(place.path());
    let own = place.path() == super::args::default_directory();
    let mut lines = vec!["Try, in another terminal:".to_owned()];
    for (command, what) in suggestions((!own).then_some(&directory)) {
        lines.push(format!("  {command:58} # {what}"));
    }
    if in_path("kubectl").is_some() {
        let kubectl = format!("kubectl --kubeconfig {}", shown(&place.kubeconfig()));
        lines.push(format!("  {kubectl} --context north get serviceimports -A"));
        lines.push(format!("  {kubectl} --context east apply -f {GREETER_FILE}"));
    }
    if let Some(grpcurl) = grpcurl() {
        let file = |name: &str| shown(&place.file(name));
        let certificates = format!(
            "{} -cacert {} -cert {} -key {}",
            shown(&grpcurl),
            file("ca.crt"),
            file("operator.crt"),
            file("operator.key")
        );
        let hub = format!("$(cat {})", file("hub.addr"));
        lines.push(format!("  {certificates} {hub} tributary.v1.State/Get"));
        lines.push(format!(
            "  {certificates} -d '{{\"namespace\":\"shop\",\"name\":\"cart\"}}' {hub} tributary.v1.State/Explain"
        ));
    }
    lines
}

/// Path of grpcurl: the one that `cargo control-plane grpcurl` installed, else one in the path.
pub(super) fn grpcurl() -> Option<PathBuf> {
    let own = Module::of_this_workspace().tools().join("grpcurl");
    if own.is_file() {
        return Some(own);
    }
    in_path("grpcurl").map(|_| PathBuf::from("grpcurl"))
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// A path as it can be typed from here.
pub(super) fn shown(path: &Path) -> String {
    quoted(&short(path).to_string_lossy())
}

/// A path without the part that whoever stands here knows.
fn short(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).to_owned()
}
