//! Every command that messages advise, and every example of a program's help, as the words that a shell would make
//! of them: for the tests in which each program parses its own.

use crate::{ClusterId, KeyFingerprint, ServiceKey, advice};

/// One of each command that [`advice`] builds.
pub fn advised() -> Vec<String> {
    let east = ClusterId::new("east").expect("valid");
    let (key, stated) = (KeyFingerprint([7; 32]), "uid of east's kube-system");
    let files = advice::tls_flags("a b/ca.crt", "east.crt", "east.key");
    let access = advice::access("https://one:8443,https://two:8443", &files);
    let typed = key.to_string();
    let service = ServiceKey::new("shop", "cart").expect("valid");
    vec![
        advice::context_set("prod"),
        advice::context_use("prod"),
        advice::status(),
        advice::init(),
        advice::join(),
        advice::leave("east"),
        advice::leave_without_hub("east"),
        advice::uninstall("hub"),
        advice::export("east"),
        advice::export_service(&service, "CONTEXT"),
        advice::join_dns("east", "admin@east"),
        advice::verify("my-namespace/my-service"),
        advice::explain(&service),
        advice::explain_in(&service, "east"),
        advice::confirm_member_stay(&east, &advice::context_flag("prod")),
        advice::member_list(),
        advice::member_evict(&east),
        advice::member_forget(&east),
        advice::member_rekey(&east, Some(key), None),
        advice::member_revoke_key(&east, key),
        advice::member_rekey(&east, None, Some(stated)),
        advice::member_rekey(&east, Some(key), Some(stated)),
        advice::confirm_member_evict(&east, None, &access),
        advice::confirm_member_evict(&east, Some(3_600), &access),
        advice::confirm_member_drain(&east, 3_600, &access),
        advice::confirm_member_stay(&east, &access),
        advice::confirm_member_forget(&east, &access),
        advice::confirm_member_release(&east, &access),
        advice::confirm_release_self_preservation(&access),
        advice::confirm_member_rekey(&east, Some(&typed), None, &access),
        advice::confirm_member_rekey(&east, None, Some(stated), &access),
        advice::confirm_member_rekey(&east, Some(&typed), Some(stated), &access),
        advice::confirm_member_revoke_key(&east, &typed, &access),
        advice::confirm_operator_revoke("bob", &typed, &access),
        advice::confirm_reader_revoke("dashboard", &typed, &access),
        advice::token_create("my-cluster"),
        advice::token_create("prod-*"),
        advice::token_list(),
        advice::confirm_token_revoke("0123456789abcdef", &access),
        advice::certs_joining("a directory"),
        advice::policy_apply("policy.yaml"),
        advice::policy_release(&service),
        advice::confirm_policy_apply("a directory/policy.yaml", &access),
        advice::confirm_policy_release(&service, &access),
        advice::certs_ca(),
        advice::certs_ca_replaces("certs"),
        advice::certs_hub("a directory"),
        advice::certs_member("DIR", Some(&east)),
        advice::certs_member("DIR", None),
        advice::certs_operator("DIR"),
        advice::certs_reader("DIR"),
        advice::hub_serve(&files),
        advice::agent_run(&files),
        advice::agent_join(Some(&east)),
        advice::kubectl_join_secret(),
        advice::join_values(Some(&east)),
        advice::agent_leave_without_hub(),
        advice::agent_adopt(None),
        advice::agent_adopt(Some("a directory/east.yaml")),
        advice::agent_corefile_add(&[]),
        advice::agent_corefile_add(&[("--zone", "set.example"), ("--file", "a directory/Corefile")]),
        advice::agent_corefile_remove(&[
            ("--kubeconfig", "east.yaml"),
            ("--namespace", "dns"),
            ("--configmap", "c"),
        ]),
        advice::kubectl_coredns_rights(),
        advice::kubectl_accept_withdrawals("tributary-agent", "tributary-agent", "example.org/a"),
        advice::kubectl_restart_coredns("kube-system", "coredns"),
        advice::log_verify("DIR"),
        advice::log_compact("a directory"),
        advice::log_restore("a backup", "DIR"),
    ]
}

/// The commands of a program in its help: lines that begin with its name, with their continuations.
pub fn examples(program: &str, help: &str) -> Vec<String> {
    let help = help.replace("\\\n", " ");
    let lines = help.lines().map(str::trim);
    let commands = lines.filter(|line| {
        line.strip_prefix(program)
            .is_some_and(|rest| rest.starts_with(' '))
    });
    commands.map(str::to_owned).collect()
}

/// The words of a command: split at spaces, but not between single quotes.
pub fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut escaped) = (Vec::new(), None::<String>, false, false);
    for c in command.chars() {
        match c {
            _ if escaped => {
                word.get_or_insert_default().push(c);
                escaped = false;
            }
            '\\' if !quoted => escaped = true,
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_one_word_again() {
        for word in ["plain", "", "two words", "it's", "$(reboot);"] {
            assert_eq!(words(&format!("a {} b", advice::quoted(word))), ["a", word, "b"]);
        }
    }
}
