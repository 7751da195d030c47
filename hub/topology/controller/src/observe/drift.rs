//! Owns: whether the version that a topology wants is the one that the member has.
//! Never: calls an unreadable version different.

use std::cmp::Ordering;

use crate::model::Version;

/// Both versions in words if they differ. A suffix that is not wanted (`-gke.100`, `+k3s1`) is the platform's and none,
/// unless it says that the real version comes before the wanted one.
pub(super) fn drift(wanted: &str, real: &str) -> Option<String> {
    let same = match (Version::read(wanted), Version::read(real)) {
        (Some(wanted_version), Some(real_version)) => {
            wanted_version.numbers == real_version.numbers
                && match suffix(wanted) {
                    "" => !is_early(suffix(real)),
                    _ => {
                        wanted_version.order(&real_version) == Ordering::Equal
                            && build(wanted).is_none_or(|wanted| build(real) == Some(wanted))
                    }
                }
        }
        _ => true,
    };
    (!same).then(|| format!("wants {wanted}, runs {real}"))
}

/// The part of a version after the numbers.
fn suffix(version: &str) -> &str {
    let at = version.find(['-', '+']).unwrap_or(version.len());
    &version[at..]
}

fn build(version: &str) -> Option<&str> {
    version.split_once('+').map(|(_, build)| build)
}

/// Returns true if Kubernetes itself uses this suffix for versions before the release.
fn is_early(suffix: &str) -> bool {
    ["-alpha", "-beta", "-rc"]
        .iter()
        .any(|early| suffix.starts_with(early))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_and_not_texts() {
        for (wanted, real) in [
            ("v1.30.0", "v1.30.0"),
            ("1.30.0", "v1.30.0"),
            ("v1.30.4", "v1.30.4-eks-a737599"),
            ("v1.30.4", "v1.30.4-gke.100"),
            ("v1.30.4", "v1.30.4+k3s1"),
            ("v1.30.4-rc.1", "v1.30.4-rc.1+k3s1"),
            ("v1.30.4+rke2r1", "v1.30.4+rke2r1"),
            ("v1.30.4", ""),
            ("", "v1.30.4"),
            ("v1.30", "v1.31.0"),
        ] {
            assert_eq!(drift(wanted, real), None, "{wanted} {real}");
        }
        for (wanted, real) in [
            ("v1.31.0", "v1.30.0"),
            ("v1.30.0", "v1.31.0"),
            ("v1.30.4", "v1.30.4-rc.1"),
            ("v1.30.4", "v1.30.4-alpha.0.1+abc"),
            ("v1.30.4-rc.1", "v1.30.4"),
            ("v1.30.4-rc.1", "v1.30.4-rc.2"),
            ("v1.30.4+rke2r2", "v1.30.4+rke2r1"),
            ("v1.30.4+rke2r2", "v1.30.4"),
        ] {
            let told = format!("wants {wanted}, runs {real}");
            assert_eq!(drift(wanted, real), Some(told));
        }
    }
}
