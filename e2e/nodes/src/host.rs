//! Owns: what a machine must have for nodes, and one line for whatever it lacks.
//! Never: installs anything by itself.

use std::path::{Path, PathBuf};

use anyhow::bail;

use super::cgroup;

/// A program that a node runs, and the Debian package that it comes from.
struct Needed {
    program: &'static str,
    package: &'static str,
}

/// Everything that is not built here.
const NEEDED: [Needed; 7] = [
    Needed {
        program: "runc",
        package: "runc",
    },
    Needed {
        program: "iptables",
        package: "iptables",
    },
    Needed {
        program: "nft",
        package: "nftables",
    },
    Needed {
        program: "conntrack",
        package: "conntrack",
    },
    Needed {
        program: "ip",
        package: "iproute2",
    },
    Needed {
        program: "nsenter",
        package: "util-linux",
    },
    Needed {
        program: "debootstrap",
        package: "debootstrap",
    },
];
/// Directory of Debian's package of the CNI plugins.
const PLUGINS: &str = "/usr/lib/cni/ptp";
/// That package.
const PLUGINS_PACKAGE: &str = "containernetworking-plugins";
/// Directories of administrators' programs, which not everybody's path has.
pub(super) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Refuses a machine on which nodes cannot run, and says how to mend it.
pub(super) fn check() -> anyhow::Result<()> {
    let missing = packages()?;
    if !missing.is_empty() {
        bail!(
            "nodes need packages of Debian that are not installed: `apt-get install --no-install-recommends {}`",
            missing.join(" ")
        );
    }
    Ok(())
}

/// The packages of Debian that are still missing on a machine on which nodes can run.
pub(super) fn packages() -> anyhow::Result<Vec<&'static str>> {
    if !rustix::process::geteuid().is_root() {
        bail!("nodes need root, for namespaces and control groups: run this as root");
    }
    if let Err(why) = cgroup::check() {
        bail!("nodes cannot run here: {why}");
    }
    Ok(missing(
        &|program| find(program).is_some(),
        Path::new(PLUGINS).is_file(),
    ))
}

fn missing(has: &dyn Fn(&str) -> bool, has_plugins: bool) -> Vec<&'static str> {
    let programs = NEEDED.iter().filter(|needed| !has(needed.program));
    let plugins = (!has_plugins).then_some(PLUGINS_PACKAGE);
    programs.map(|needed| needed.package).chain(plugins).collect()
}

fn find(program: &str) -> Option<PathBuf> {
    let mut places = PATH
        .split(':')
        .map(|directory| Path::new(directory).join(program));
    places.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_by_its_package() {
        let has = |program: &str| program != "nft";
        assert_eq!(missing(&has, false), ["nftables", PLUGINS_PACKAGE]);
        assert!(missing(&|_| true, true).is_empty());
    }
}
