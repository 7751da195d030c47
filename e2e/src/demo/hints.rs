//! What a user can do while the demo runs: kubectl and grpcurl lines where those are installed, and our own always.
//! Text only.

use std::path::{Path, PathBuf};

use super::{directory::Place, objects::GREETER_FILE};
use crate::real::module::Module;

/// The lines, for a terminal of its own.
pub(super) fn hints(place: &Place) -> Vec<String> {
    let flag = match place.path() == super::args::default_directory() {
        true => String::new(),
        false => format!(" --directory {}", shown(place.path())),
    };
    let mut lines = vec!["Try, in another terminal:".to_owned()];
    for (command, what) in [
        (
            format!("apply east {GREETER_FILE}"),
            "a service of yours, exported",
        ),
        (
            "export west shop/greeter".to_owned(),
            "refused: west has no such Service",
        ),
        ("unexport west shop/cart".to_owned(), "east's settings take over"),
        ("get imports".to_owned(), "also: exports, slices"),
        ("events --follow".to_owned(), "the hub's log"),
        ("kill hub".to_owned(), "nothing vanishes; `start hub` again"),
        ("kill west".to_owned(), "west's agent; `start west` again"),
    ] {
        lines.push(format!("  {:58} # {what}", format!("cargo demo{flag} {command}")));
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

/// Where grpcurl is: what `cargo control-plane grpcurl` installed, else in the path.
fn grpcurl() -> Option<PathBuf> {
    let own = Module::of_this_workspace().tools().join("grpcurl");
    match own.is_file() {
        true => Some(own),
        false => in_path("grpcurl").map(|_| PathBuf::from("grpcurl")),
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// A path as it can be typed from here.
pub(super) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let short = path.strip_prefix(&here).unwrap_or(path).display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    match short.chars().all(plain) {
        true => short,
        false => format!("'{}'", short.replace('\'', r"'\''")),
    }
}
