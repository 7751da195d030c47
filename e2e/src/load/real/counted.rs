//! Owns: which requests in the API servers' audit logs count for whom.
//! Never: counts them, or knows how many there should be.

use super::{CLUSTERS, FLOOR, relay::COPY_PREFIX};
use crate::real::{HARNESS_USER, Request};

/// Accounts of agents begin so.
const AGENT_ACCOUNTS: &str = "system:serviceaccount:tributary-system:";

/// What the relay asks. The generator asks under the same account, but it changes originals in the first cluster only,
/// and watches in the second only.
pub(super) fn of_the_relay(cluster: &str, request: &Request) -> bool {
    let exporting = cluster == CLUSTERS[0];
    let its_own = match request.verb.as_str() {
        "list" | "watch" => exporting,
        _ => !exporting || request.name.starts_with(COPY_PREFIX),
    };
    request.user == HARNESS_USER && request.namespace == FLOOR && its_own
}

/// What the agents ask, of whatever kind: Leases, statuses and checks of health as well.
pub(super) fn of_the_agents(_: &str, request: &Request) -> bool {
    request.user.starts_with(AGENT_ACCOUNTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "system:serviceaccount:tributary-system:tributary-agent";

    /// "verb resource namespace/name" by a user.
    fn request(user: &str, words: &str) -> Request {
        let [verb, resource, place] = words.split(' ').collect::<Vec<_>>()[..] else {
            panic!("three words: {words}")
        };
        let (namespace, name) = place.split_once('/').expect("a place");
        Request::sample(user, verb, resource, namespace, name)
    }

    #[test]
    fn everything_that_an_agent_asks_counts() {
        for words in [
            "patch endpointslices carried/cart-001-east",
            "patch serviceimports/status carried/cart-001",
            "patch serviceexports/status carried/cart-001",
            "update leases tributary-system/tributary-agent",
            "create events carried/cart-001",
            "get /readyz /",
            "watch services /",
        ] {
            for cluster in CLUSTERS {
                assert!(of_the_agents(cluster, &request(AGENT, words)), "{words}");
                assert!(!of_the_agents(cluster, &request(HARNESS_USER, words)), "{words}");
                assert!(!of_the_relay(cluster, &request(AGENT, words)), "{words}");
            }
        }
        for other in [
            "system:serviceaccount:kube-system:tributary-agent",
            "system:apiserver",
            "",
        ] {
            let one = request(other, "update leases kube-system/it");
            assert!(!of_the_agents("east", &one), "{other}");
        }
    }

    #[test]
    fn the_relays_copies_and_its_watch_count_and_what_the_generator_asks_does_not() {
        let cases = [
            ("east", "patch endpointslices floor/copy-of-cart-001", true),
            ("west", "patch endpointslices floor/cart-001", true),
            ("east", "watch endpointslices floor/", true),
            ("east", "list endpointslices floor/", true),
            // The generator's own: the change, and the watch for its arrival.
            ("east", "patch endpointslices floor/cart-001", false),
            ("west", "watch endpointslices floor/", false),
            ("west", "list endpointslices floor/", false),
            ("east", "patch endpointslices carried/copy-of-cart-001", false),
            ("west", "patch endpointslices carried/cart-001", false),
            ("west", "get /version /", false),
        ];
        for (cluster, words, counts) in cases {
            let asked = of_the_relay(cluster, &request(HARNESS_USER, words));
            assert_eq!(asked, counts, "{cluster}: {words}");
        }
        let strange = request(
            "system:kube-controller-manager",
            "patch endpointslices floor/cart-001",
        );
        assert!(!of_the_relay("west", &strange));
    }
}
