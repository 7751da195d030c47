//! The commands that messages advise, each as it can be typed: a test of each program parses what is built here.
//! Words in capitals and file names are to be filled in. Whatever another party said is quoted, so that no message
//! puts words of theirs into an operator's shell.

use std::fmt::Write;

use super::{ClusterId, KeyFingerprint, ServiceKey};

/// An operator's flags to reach the hub.
const ACCESS: &str = "--hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key";

/// Shows the members.
pub fn member_list() -> String {
    format!("tributary member list {ACCESS}")
}

/// Tries to end a membership.
pub fn member_evict(cluster: &ClusterId) -> String {
    format!("tributary member evict {cluster} {ACCESS}")
}

/// Tries to forget a cluster.
pub fn member_forget(cluster: &ClusterId) -> String {
    format!("tributary member forget {cluster} {ACCESS}")
}

/// Admits a key, a cluster fingerprint or both.
pub fn member_rekey(
    cluster: &ClusterId,
    key: Option<KeyFingerprint>,
    cluster_fingerprint: Option<&str>,
) -> String {
    let key = key.map(|key| key.to_string());
    confirm_member_rekey(cluster, key.as_deref(), cluster_fingerprint, ACCESS)
}

/// Tries to refuse a key of a cluster for ever.
pub fn member_revoke_key(cluster: &ClusterId, key: KeyFingerprint) -> String {
    format!("tributary member revoke-key {cluster} {key} {ACCESS}")
}

/// Adds a context, or changes one.
pub fn context_set(name: &str) -> String {
    format!("tributary context set {} {ACCESS}", quoted(name))
}

/// Makes a context the current one.
pub fn context_use(name: &str) -> String {
    format!("tributary context use {}", quoted(name))
}

/// The context of a name, as a flag.
pub fn context_flag(name: &str) -> String {
    format!("--context {}", quoted(name))
}

/// Lists what is not as it should be in the clusterset.
pub fn status() -> String {
    "tributary status".to_owned()
}

/// Explains one import.
pub fn explain(service: &ServiceKey) -> String {
    format!("tributary explain {service}")
}

/// Makes a clusterset.
pub fn init() -> String {
    "tributary init --context CONTEXT".to_owned()
}

/// Adds a cluster to a clusterset.
pub fn join() -> String {
    "tributary join my-cluster --context CONTEXT".to_owned()
}

/// Takes a cluster out of its clusterset.
pub fn leave(cluster: &str) -> String {
    format!("tributary leave {}", quoted(cluster))
}

/// Takes a cluster out of its clusterset without telling the hub.
pub fn leave_without_hub(cluster: &str) -> String {
    format!("tributary leave {} --without-hub", quoted(cluster))
}

/// Removes the hub from the cluster of a context.
pub fn uninstall(context: &str) -> String {
    format!("tributary uninstall --context {}", quoted(context))
}

/// Exports a Service, and waits until it has arrived.
pub fn export(context: &str) -> String {
    format!(
        "tributary export my-namespace/my-service --context {} --wait",
        quoted(context)
    )
}

/// Exports one Service from the cluster of a context, and waits until it has arrived.
pub fn export_service(service: &ServiceKey, context: &str) -> String {
    format!("tributary export {service} --context {} --wait", quoted(context))
}

/// Explains one import in one cluster.
pub fn explain_in(service: &ServiceKey, cluster: &str) -> String {
    format!("{} --cluster {}", explain(service), quoted(cluster))
}

/// Lets CoreDNS of a member answer the zone of the clusterset.
pub fn join_dns(cluster: &str, context: &str) -> String {
    format!(
        "tributary join {} --context {} --dns yes",
        quoted(cluster),
        quoted(context)
    )
}

/// Verifies that clusters reach one service.
pub fn verify(service: &str) -> String {
    format!("tributary verify {service}")
}

/// An operator's flags to reach the hub at these addresses, with the flags of [`tls_flags`].
pub fn access(hubs: &str, tls_flags: &str) -> String {
    format!("--hub {} {tls_flags}", quoted(hubs))
}

/// Ends a membership after so many seconds, or at once; `access` is that of [`access`], here and below.
pub fn confirm_member_evict(cluster: &ClusterId, after_seconds: Option<u64>, access: &str) -> String {
    let when = match after_seconds {
        Some(seconds) => format!("--after {seconds}s"),
        None => "--now".to_owned(),
    };
    format!("tributary member evict {cluster} {when} {access} --confirm")
}

/// Has a member leave after so many seconds.
pub fn confirm_member_drain(cluster: &ClusterId, after_seconds: u64, access: &str) -> String {
    format!("tributary member drain {cluster} --after {after_seconds}s {access} --confirm")
}

/// Has a member stay that was to leave.
pub fn confirm_member_stay(cluster: &ClusterId, access: &str) -> String {
    format!("tributary member stay {cluster} {access} --confirm")
}

/// Forgets a cluster.
pub fn confirm_member_forget(cluster: &ClusterId, access: &str) -> String {
    format!("tributary member forget {cluster} {access} --confirm")
}

/// Accepts a member's withdrawals.
pub fn confirm_member_release(cluster: &ClusterId, access: &str) -> String {
    format!("tributary member release {cluster} {access} --confirm")
}

/// Ends self-preservation.
pub fn confirm_release_self_preservation(access: &str) -> String {
    format!("tributary member release --self-preservation {access} --confirm")
}

/// Admits a key, a cluster fingerprint or both, as they were typed.
pub fn confirm_member_rekey(
    cluster: &ClusterId,
    key: Option<&str>,
    cluster_fingerprint: Option<&str>,
    access: &str,
) -> String {
    let options = rekey_options(key, cluster_fingerprint);
    format!("tributary member rekey {cluster} {options}{access} --confirm")
}

/// Refuses a key of a cluster for ever.
pub fn confirm_member_revoke_key(cluster: &ClusterId, key: &str, access: &str) -> String {
    format!(
        "tributary member revoke-key {cluster} {} {access} --confirm",
        quoted(key)
    )
}

/// Refuses the key of an operator's certificate for ever.
pub fn confirm_operator_revoke(name: &str, key: &str, access: &str) -> String {
    let (name, key) = (quoted(name), quoted(key));
    format!("tributary operator revoke {name} {key} {access} --confirm")
}

/// Refuses the key of a reader's certificate for ever.
pub fn confirm_reader_revoke(name: &str, key: &str, access: &str) -> String {
    let (name, key) = (quoted(name), quoted(key));
    format!("tributary reader revoke {name} {key} {access} --confirm")
}

/// The options of a rekey as typed, with a space behind each.
fn rekey_options(key: Option<&str>, cluster_fingerprint: Option<&str>) -> String {
    let mut options = String::new();
    for (flag, value) in [
        ("--key-fingerprint", key),
        ("--cluster-fingerprint", cluster_fingerprint),
    ] {
        if let Some(value) = value {
            // Writing to a String never fails.
            let _ = write!(options, "{flag} {} ", quoted(value));
        }
    }
    options
}

/// Makes a token for these ids: an id, or a pattern of ids.
pub fn token_create(ids: &str) -> String {
    let flag = if ids.contains('*') {
        "--id-pattern"
    } else {
        "--cluster-id"
    };
    format!("tributary token create {flag} {} {ACCESS}", quoted(ids))
}

/// Shows the tokens.
pub fn token_list() -> String {
    format!("tributary token list {ACCESS}")
}

/// Takes a token back.
pub fn confirm_token_revoke(id: &str, access: &str) -> String {
    format!("tributary token revoke {} {access} --confirm", quoted(id))
}

/// Makes the authority with which a hub lets clusters join; `directory` holds the authority.
pub fn certs_joining(directory: &str) -> String {
    format!("tributary-hub certs joining --ca {}", quoted(directory))
}

/// Gives the clusterset a policy; `file` is to be filled in or was typed.
pub fn policy_apply(file: &str) -> String {
    confirm_policy_apply(file, ACCESS)
}

/// Lets the oldest export of a service stand first again.
pub fn policy_release(service: &ServiceKey) -> String {
    format!("tributary policy release {service} {ACCESS}")
}

/// Gives the clusterset a policy, at this hub.
pub fn confirm_policy_apply(file: &str, access: &str) -> String {
    format!("tributary policy apply {} {access} --confirm", quoted(file))
}

/// Lets the oldest export of a service stand first again, at this hub.
pub fn confirm_policy_release(service: &ServiceKey, access: &str) -> String {
    format!("tributary policy release {service} {access} --confirm")
}

/// Makes an authority.
pub fn certs_ca() -> String {
    "tributary-hub certs ca --out DIR".to_owned()
}

/// Makes an authority for which the one in `directory` vouches.
pub fn certs_ca_replaces(directory: &str) -> String {
    format!(
        "tributary-hub certs ca --out DIR --replaces {}",
        quoted(directory)
    )
}

/// Issues a hub's certificate; `directory` holds the authority.
pub fn certs_hub(directory: &str) -> String {
    format!(
        "tributary-hub certs hub --ca {} --dns-name HOST",
        quoted(directory)
    )
}

/// Issues a member's certificate.
pub fn certs_member(directory: &str, cluster: Option<&ClusterId>) -> String {
    let cluster = cluster.map_or("my-cluster", ClusterId::as_str);
    format!(
        "tributary-hub certs member --ca {} --cluster-id {cluster}",
        quoted(directory)
    )
}

/// Issues an operator's certificate.
pub fn certs_operator(directory: &str) -> String {
    format!(
        "tributary-hub certs operator --ca {} --name NAME",
        quoted(directory)
    )
}

/// Issues a reader's certificate.
pub fn certs_reader(directory: &str) -> String {
    format!(
        "tributary-hub certs reader --ca {} --name NAME",
        quoted(directory)
    )
}

/// The files of a process, as its flags.
pub fn tls_flags(ca: &str, cert: &str, key: &str) -> String {
    let (ca, cert, key) = (quoted(ca), quoted(cert), quoted(key));
    format!("--tls-ca {ca} --tls-cert {cert} --tls-key {key}")
}

/// Serves a clusterset.
pub fn hub_serve(tls_flags: &str) -> String {
    format!("tributary-hub serve --data data {tls_flags}")
}

/// The Secret in which a cluster's agent finds its join string, as the commands below name it.
const JOIN_SECRET: &str = "tributary-join";

/// Puts the join string in a file into the Secret of the agent's chart.
pub fn kubectl_join_secret() -> String {
    format!("kubectl --namespace tributary-system create secret generic {JOIN_SECRET} --from-file=join=FILE")
}

/// The values of the agent's chart for a cluster that joins.
pub fn join_values(cluster: Option<&ClusterId>) -> String {
    let cluster = cluster.map_or("ID", ClusterId::as_str);
    format!("--set join.secretName={JOIN_SECRET},clusterId={cluster}")
}

/// Runs the agent of a cluster that joins with the string in a file.
pub fn agent_join(cluster: Option<&ClusterId>) -> String {
    let cluster = cluster.map_or("ID", ClusterId::as_str);
    format!(
        "tributary-agent run --join-file FILE --cluster-id {cluster} {}",
        tls_flags("ca.crt", "agent.crt", "agent.key")
    )
}

/// Runs a member's agent.
pub fn agent_run(tls_flags: &str) -> String {
    format!("tributary-agent run --hub https://HUB:8443 {tls_flags}")
}

/// Removes what agents wrote in a cluster whose membership has ended, or whose hub is gone.
pub fn agent_leave_without_hub() -> String {
    "tributary-agent leave --without-hub --kubeconfig FILE --confirm".to_owned()
}

/// Takes over what a restored backup left without an owner.
pub fn agent_adopt(kubeconfig: Option<&str>) -> String {
    let kubeconfig = kubeconfig.map(|path| format!(" --kubeconfig {}", quoted(path)));
    format!(
        "tributary-agent adopt{} --confirm",
        kubeconfig.unwrap_or_default()
    )
}

/// Puts the clusterset's zone into a Corefile; `flags` are those that say which, with their values.
pub fn agent_corefile_add(flags: &[(&str, &str)]) -> String {
    format!("tributary-agent corefile add --apply{}", typed_flags(flags))
}

/// Takes it out again.
pub fn agent_corefile_remove(flags: &[(&str, &str)]) -> String {
    format!("tributary-agent corefile remove --apply{}", typed_flags(flags))
}

/// Flags as they are typed, with a space before each.
fn typed_flags(flags: &[(&str, &str)]) -> String {
    let typed = flags
        .iter()
        .map(|(flag, value)| format!(" {flag} {}", quoted(value)));
    typed.collect()
}

/// Lets CoreDNS read ServiceImports.
pub fn kubectl_coredns_rights() -> String {
    "kubectl apply -f deploy/coredns".to_owned()
}

/// Starts CoreDNS again; its Deployment has the name of its ConfigMap.
pub fn kubectl_restart_coredns(namespace: &str, deployment: &str) -> String {
    let (namespace, deployment) = (quoted(namespace), quoted(deployment));
    format!("kubectl -n {namespace} rollout restart deployment {deployment}")
}

/// Confirms, with an annotation on the agent's Lease in this namespace, that imports on hold may go.
pub fn kubectl_accept_withdrawals(namespace: &str, lease: &str, annotation: &str) -> String {
    let namespace = quoted(namespace);
    format!("kubectl annotate lease {lease} --namespace {namespace} --overwrite {annotation}=true")
}

/// Verifies the log below a hub's data directory.
pub fn log_verify(data: &str) -> String {
    format!("tributary-hub log verify --data {}", quoted(data))
}

/// Removes old history of the log below a stopped hub's data directory.
pub fn log_compact(data: &str) -> String {
    format!("tributary-hub log compact --data {}", quoted(data))
}

/// Puts a backup in the place of the log below a hub's data directory.
pub fn log_restore(backup: &str, data: &str) -> String {
    format!(
        "tributary-hub log restore {} --data {}",
        quoted(backup),
        quoted(data)
    )
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_takes_them() {
        for (word, typed) in [
            ("https://hub:8443", "https://hub:8443"),
            ("/a b/c", "'/a b/c'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(word), typed);
        }
    }

    /// An operator copies the command out of a refusal that an unauthenticated peer's Hello has caused.
    #[test]
    fn what_a_member_says_of_itself_stays_one_word() {
        let east = ClusterId::new("east").expect("valid");
        let advice = member_rekey(&east, None, Some("uid;$(reboot)"));
        assert!(
            advice.contains("--cluster-fingerprint 'uid;$(reboot)' --hub"),
            "{advice}"
        );
    }
}
