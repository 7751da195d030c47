//! Owns: what of a Cluster's kubeconfig the hub takes: an address and credentials that are in it. A writer of the
//! Secret chooses neither a program that the hub runs nor a file that it reads.
//! Never: connects.

use anyhow::{Context, bail, ensure};
use kube::config::{AuthInfo, Cluster, Kubeconfig};

/// Longest kubeconfig that is read, in bytes.
pub(super) const KUBECONFIG_BYTES_MAX: usize = 256 * 1024;

/// Reads a kubeconfig.
///
/// # Errors
///
/// It is none, or it says something that is not taken; what, and never a value of it.
pub(super) fn read(bytes: &[u8]) -> anyhow::Result<Kubeconfig> {
    ensure!(
        bytes.len() <= KUBECONFIG_BYTES_MAX,
        "it is longer than {KUBECONFIG_BYTES_MAX} bytes"
    );
    let text = std::str::from_utf8(bytes).ok().context("it is no text")?;
    // The parser's message may repeat the content.
    let config = Kubeconfig::from_yaml(text).ok().context("it is no kubeconfig")?;
    for cluster in config.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        takes_cluster(cluster)?;
    }
    for user in config
        .auth_infos
        .iter()
        .filter_map(|named| named.auth_info.as_ref())
    {
        takes_user(user)?;
    }
    Ok(config)
}

fn takes_cluster(cluster: &Cluster) -> anyhow::Result<()> {
    let server = cluster.server.as_deref().unwrap_or_default();
    ensure!(
        server.starts_with("https://"),
        "its server is not reached by https://"
    );
    ensure!(
        !cluster.insecure_skip_tls_verify.unwrap_or(false),
        "it has insecure-skip-tls-verify: give it the authority of the API server"
    );
    if cluster.certificate_authority.is_some() {
        bail!("it names a file (certificate-authority): give certificate-authority-data");
    }
    ensure!(
        cluster.proxy_url.is_none(),
        "it has a proxy-url, which is not supported"
    );
    Ok(())
}

fn takes_user(user: &AuthInfo) -> anyhow::Result<()> {
    ensure!(
        user.exec.is_none() && user.auth_provider.is_none(),
        "it runs a program for its credentials (exec, auth-provider): give a certificate or a token"
    );
    let files = [&user.token_file, &user.client_certificate, &user.client_key];
    ensure!(
        files.iter().all(|file| file.is_none()),
        "it names files (tokenFile, client-certificate, client-key): give token, client-certificate-data and client-key-data"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(server: &str, cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: {server}\n{cluster}users:\n- name: u\n  \
             user:\n    token: hidden\n{user}contexts:\n- name: x\n  context: {{cluster: c, user: u}}\ncurrent-context: x\n"
        )
    }

    #[test]
    fn what_cluster_api_writes_is_taken() {
        read(config("https://a:6443", "    certificate-authority-data: aGk=\n", "").as_bytes()).unwrap();
    }

    #[test]
    fn what_would_run_read_or_trust_something_else_is_not() {
        for (server, cluster, user, said) in [
            ("http://a", "", "", "https://"),
            (
                "https://a",
                "    insecure-skip-tls-verify: true\n",
                "",
                "insecure-skip-tls-verify",
            ),
            (
                "https://a",
                "    certificate-authority: /etc/ca\n",
                "",
                "names a file",
            ),
            ("https://a", "    proxy-url: http://p\n", "", "proxy-url"),
            ("https://a", "", "    exec: {command: sh}\n", "runs a program"),
            (
                "https://a",
                "",
                "    auth-provider: {name: oidc, config: {}}\n",
                "runs a program",
            ),
            ("https://a", "", "    tokenFile: /var/run/token\n", "names files"),
            (
                "https://a",
                "",
                "    client-certificate: /etc/tls.crt\n",
                "names files",
            ),
            ("https://a", "", "    client-key: /etc/tls.key\n", "names files"),
        ] {
            let error = read(config(server, cluster, user).as_bytes())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(said) && !error.contains("hidden"),
                "{said}: {error}"
            );
        }
        for text in ["", "clusters: 3", "\u{1}"] {
            let read = read(text.as_bytes());
            assert!(read.is_err() || read.unwrap().current_context.is_none(), "{text}");
        }
        assert!(read(&[0xff]).is_err());
        assert!(read(&vec![b' '; KUBECONFIG_BYTES_MAX + 1]).is_err());
    }
}
