//! Owns: which requests in the API servers' audit logs count for whom.
//! Never: counts them, or knows how many there should be.

use super::relay::ACCOUNT;
use cluster::real::Request;

/// Prefix of a service account's name; its namespace and its name follow.
const ACCOUNTS: &str = "system:serviceaccount:";
/// Accounts of agents begin so.
const AGENT_ACCOUNTS: &str = "system:serviceaccount:tributary-system:";

/// Returns true for requests of the relay, of any kind.
pub(super) fn of_the_relay(request: &Request) -> bool {
    let account = request
        .user
        .strip_prefix(ACCOUNTS)
        .and_then(|rest| rest.split_once(':'));
    account == Some(ACCOUNT)
}

/// Returns true for requests of the agents, of any kind: Leases, statuses and checks of health as well.
pub(super) fn of_the_agents(request: &Request) -> bool {
    request.user.starts_with(AGENT_ACCOUNTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::real::HARNESS_USER;

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
            assert!(of_the_agents(&request(AGENT, words)), "{words}");
            assert!(!of_the_agents(&request(HARNESS_USER, words)), "{words}");
            assert!(!of_the_relay(&request(AGENT, words)), "{words}");
        }
        for other in [
            "system:serviceaccount:kube-system:tributary-agent",
            "system:apiserver",
            "",
        ] {
            let one = request(other, "update leases kube-system/it");
            assert!(!of_the_agents(&one), "{other}");
        }
    }

    #[test]
    fn what_the_relay_asks_counts_and_what_the_generator_asks_does_not() {
        let relay = "system:serviceaccount:bare-relay:bare-relay";
        for words in [
            "patch endpointslices floor/copy-of-cart-001",
            "patch endpointslices floor/cart-001",
            "watch endpointslices floor/",
            "list endpointslices floor/",
        ] {
            assert!(of_the_relay(&request(relay, words)), "{words}");
            for other in [HARNESS_USER, AGENT, "system:kube-controller-manager"] {
                assert!(!of_the_relay(&request(other, words)), "{other}: {words}");
            }
        }
    }
}
