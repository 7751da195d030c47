//! Owns: extensions of the Runtime SDK (hooks v1alpha1, as Cluster API v1.13.6 calls them): the requests to them, what
//! their answers mean, and the patches in these.
//! Never: asks one; who plans gives an [`Extensions`] that does.

pub mod answer;
mod json_patch;
pub mod request;

use std::fmt::Debug;

use serde_json::Value;

/// Group and version of the hooks.
pub const HOOKS: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// A hook that plans call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// Patches for templates.
    GeneratePatches,
    /// A judgement of the patched templates.
    ValidateTopology,
    /// Definitions of variables.
    DiscoverVariables,
}

impl Hook {
    /// Its name in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::GeneratePatches => "GeneratePatches",
            Self::ValidateTopology => "ValidateTopology",
            Self::DiscoverVariables => "DiscoverVariables",
        }
    }

    /// The path of a handler below the address of its extension.
    pub fn path(self, handler: &str) -> String {
        format!("/{HOOKS}/{}/{}", self.name(), handler).to_lowercase()
    }
}

/// The parts of a handler's name in a class, `HANDLER.EXTENSION`.
pub fn parts(named: &str) -> (&str, &str) {
    named.split_once('.').unwrap_or((named, named))
}

/// The way to extensions.
pub trait Extensions: Debug {
    /// The answer of a handler, called as in a class; none if its extension has no known address.
    fn ask(&self, hook: Hook, named: &str, request: &Value) -> Option<Result<Value, String>>;
}

/// Knows no extension.
#[derive(Debug, Clone, Copy)]
pub struct NoExtensions;

impl Extensions for NoExtensions {
    fn ask(&self, _: Hook, _: &str, _: &Value) -> Option<Result<Value, String>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_cluster_api() {
        let (handler, extension) = parts("Generate-Patches.test-extension");
        assert_eq!((handler, extension), ("Generate-Patches", "test-extension"));
        assert_eq!(
            Hook::GeneratePatches.path(handler),
            "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/generate-patches"
        );
        assert_eq!(parts("alone"), ("alone", "alone"));
    }
}
