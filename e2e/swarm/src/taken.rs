//! Owns: whether a member may take an import, by an own reading of the policy's words, which in the swarm are names or
//! one star; and the law on what is sent by it.
//! Never: asks the hub what it makes of them.

use model::{
    ClusterId, Policy, ServiceKey,
    policy::Pattern,
    sync::{DesiredKey, HubMessage, Told},
};

use oracle::laws::Law;

/// Returns true if a rule speaks of what a cluster takes.
fn is_about(policy: &Policy, cluster: &ClusterId) -> bool {
    let mut rules = policy.rules.iter().filter(|rule| rule.imports.is_some());
    rules.any(|rule| says(&rule.members, cluster.as_str()))
}

/// Returns true if a cluster may take a service by this policy.
pub(super) fn may_take(policy: &Policy, cluster: &ClusterId, service: &ServiceKey) -> bool {
    let rules = policy
        .rules
        .iter()
        .filter(|rule| says(&rule.members, cluster.as_str()));
    let mut lists = rules
        .filter_map(|rule| rule.imports.as_ref())
        .flat_map(|list| list.iter());
    !is_about(policy, cluster)
        || lists.any(|one| says(&one.namespaces, &service.namespace) && says(&one.services, &service.name))
}

fn says(patterns: &[Pattern], name: &str) -> bool {
    let words = patterns.iter().map(Pattern::to_string);
    words.into_iter().any(|word| word == "*" || word == name)
}

/// **Nobody is sent what it may not take**, a removal neither: of a message to a cluster, while this policy is what it is
/// sent by. How many objects were looked at comes back.
pub(super) fn sent(policy: &Policy, cluster: &ClusterId, message: &HubMessage) -> Result<u64, String> {
    let HubMessage::Desired { items, .. } = message else {
        return Ok(0);
    };
    if !is_about(policy, cluster) {
        return Ok(0);
    }
    for item in items {
        let key = match wire::decode_told(item.clone()).expect("a hub encoded it") {
            Told::Difference(difference) => difference.key,
            Told::Whole(item) => item.change.key(),
            Told::Unreadable { why, .. } => unreachable!("a hub encoded it: {why}"),
        };
        let service = match &key {
            DesiredKey::Import(service) => service,
            DesiredKey::Slice(slice) => &slice.service,
            DesiredKey::ExportStatus(_) => continue,
        };
        if !may_take(policy, cluster, service) {
            return Err(Law::Taken.broken(format!("{cluster} is sent something of {service}")));
        }
    }
    Ok(items.len() as u64)
}

#[cfg(test)]
mod tests {
    use model::{
        Revision,
        sync::{DesiredChange, DesiredItem},
    };
    use wire::{POLICY_API_VERSION, POLICY_KIND, encode_desired, read_policy};

    use super::*;

    #[test]
    fn a_message_with_anything_that_a_member_may_not_take_is_seen() {
        let document = format!(
            "apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  members:\n  - name: few\n    \
             members: [east]\n    imports: [{{namespaces: [shop], services: [cart]}}]\n"
        );
        let policy = read_policy(&document).expect("a policy");
        let cluster = |name: &str| ClusterId::new(name).expect("valid");
        let told = |keys: &[DesiredKey]| HubMessage::Desired {
            interest_generation: 1,
            items: keys
                .iter()
                .map(|key| {
                    encode_desired(&DesiredItem {
                        revision: Revision(1),
                        change: DesiredChange::Removed(key.clone()),
                    })
                })
                .collect(),
        };
        let service = |name: &str| ServiceKey::new("shop", name).expect("valid");
        let (cart, user) = (
            DesiredKey::Import(service("cart")),
            DesiredKey::Import(service("user")),
        );
        let status = DesiredKey::ExportStatus(service("user"));
        let both = told(&[cart.clone(), user]);
        assert_eq!(sent(&policy, &cluster("east"), &told(&[cart, status])), Ok(2));
        assert!(
            sent(&policy, &cluster("east"), &both).is_err(),
            "a removal tells of it too"
        );
        assert_eq!(
            sent(&policy, &cluster("west"), &both),
            Ok(0),
            "no rule is about it"
        );
    }
}
