//! Owns: what an access provider has to be to stand in a ClusterProfile: the limits of v1alpha2, and no secret.
//! Never: reads a file.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use http::Uri;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Map, Value};
use shared::{
    api::cluster_profile::{AccessCluster, AccessProvider, NamedExtension},
    model::policy::Pattern,
};

use super::{
    Group, PROVIDERS_MAX,
    document::{Cluster, ClusterGroup, Extension, Provider},
};

/// Longest name of a provider or an extension, and longest `tls-server-name`, in characters.
const NAME_CHARS_MAX: usize = 253;
/// Longest URL, in characters.
const URL_CHARS_MAX: usize = 2_048;
/// Schemes of a proxy.
const PROXY_SCHEMES: [&str; 3] = ["http", "https", "socks5"];
/// Words under which a kubeconfig, or the configuration of a plugin, holds what nobody else may have.
const SECRET_WORDS: [&str; 8] = [
    "clientkeydata",
    "token",
    "accesstoken",
    "bearertoken",
    "idtoken",
    "refreshtoken",
    "password",
    "clientsecret",
];
/// The beginning of a key in PEM.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Takes a group if everything in it may be shown.
pub(super) fn group(group: ClusterGroup) -> anyhow::Result<Group> {
    ensure!(
        !group.ids.is_empty(),
        "ids is empty: name members, by id or pattern"
    );
    let mut clusters = Vec::new();
    for id in group.ids {
        let pattern: Pattern = id.parse().with_context(|| format!("ids: {id}"))?;
        clusters.push(pattern);
    }
    let count = group.access_providers.len();
    ensure!(
        count <= PROVIDERS_MAX,
        "accessProviders has {count} entries, more than {PROVIDERS_MAX}"
    );
    let (mut providers, mut names) = (Vec::new(), BTreeSet::new());
    for (place, provider) in group.access_providers.into_iter().enumerate() {
        let at = || format!("accessProviders[{place}]");
        name(&provider.name).with_context(at)?;
        if !names.insert(provider.name.clone()) {
            bail!("{}: the name {} is there before", at(), provider.name);
        }
        let Provider {
            name,
            cluster: written,
        } = provider;
        let cluster = Some(cluster(written).with_context(at)?);
        providers.push(AccessProvider { name, cluster });
    }
    Ok(Group {
        clusters,
        providers: providers.into(),
    })
}

fn name(name: &str) -> anyhow::Result<()> {
    let count = name.chars().count();
    ensure!(
        (1..=NAME_CHARS_MAX).contains(&count),
        "a name has 1 to {NAME_CHARS_MAX} characters, this one {count}"
    );
    Ok(())
}

fn cluster(written: Cluster) -> anyhow::Result<AccessCluster> {
    ensure!(
        written.certificate_authority.is_none(),
        "certificate-authority is a path, which means nothing to who reads the profile: use certificate-authority-data"
    );
    ensure!(
        written.insecure_skip_tls_verify != Some(true),
        "insecure-skip-tls-verify lets anybody answer for the cluster: use certificate-authority-data"
    );
    url(&written.server, &["https"]).context("server")?;
    if let Some(proxy) = &written.proxy_url {
        url(proxy, &PROXY_SCHEMES).context("proxy-url")?;
    }
    if let Some(server_name) = &written.tls_server_name {
        name(server_name).context("tls-server-name")?;
    }
    let authority = &written.certificate_authority_data;
    if let Some(authority) = authority {
        certificates(&authority.0).context("certificate-authority-data")?;
    }
    let data = authority.as_ref().map(serde_json::to_value).transpose()?;
    Ok(AccessCluster {
        server: written.server,
        tls_server_name: written.tls_server_name,
        insecure_skip_tls_verify: None,
        certificate_authority: None,
        certificate_authority_data: data.and_then(|data| data.as_str().map(str::to_owned)),
        proxy_url: written.proxy_url,
        disable_compression: written.disable_compression,
        extensions: extensions(written.extensions)?,
    })
}

/// A URL with a host and without a user, who would have a password.
fn url(url: &str, schemes: &[&str]) -> anyhow::Result<()> {
    let count = url.chars().count();
    ensure!(
        count <= URL_CHARS_MAX,
        "{count} characters are more than {URL_CHARS_MAX}"
    );
    let wanted = format!("needs to be {}://HOST[:PORT]", schemes.join(":// or "));
    let parsed: Uri = url.parse().with_context(|| wanted.clone())?;
    let host = parsed.host().unwrap_or_default();
    let scheme = parsed.scheme_str().unwrap_or_default();
    ensure!(!host.is_empty() && schemes.contains(&scheme), wanted);
    let has_user = parsed
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    ensure!(
        !has_user,
        "names a user: everybody who may read a ClusterProfile would read it"
    );
    Ok(())
}

/// Certificates in PEM, and nothing else.
fn certificates(pem: &[u8]) -> anyhow::Result<()> {
    let text = str::from_utf8(pem).context("is no PEM in base64")?;
    ensure!(
        !text.contains(PRIVATE_KEY),
        "holds a private key: everybody who may read a ClusterProfile would read it"
    );
    let read: Result<Vec<CertificateDer<'_>>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.context("is no PEM in base64")?;
    ensure!(!read.is_empty(), "holds no certificate (PEM in base64)");
    Ok(())
}

fn extensions(written: Vec<Extension>) -> anyhow::Result<Vec<NamedExtension>> {
    let (mut extensions, mut names) = (Vec::new(), BTreeSet::new());
    for (place, one) in written.into_iter().enumerate() {
        let at = || format!("extensions[{place}]");
        name(&one.name).with_context(at)?;
        if !names.insert(one.name.clone()) {
            bail!("{}: the name {} is there before", at(), one.name);
        }
        if let Some(secret) = secret_in(&one.extension) {
            bail!(
                "{}: the field {secret} holds a secret: everybody who may read a ClusterProfile would read it",
                at()
            );
        }
        let Extension { name, extension } = one;
        extensions.push(NamedExtension { name, extension });
    }
    Ok(extensions)
}

/// The field, however deep, whose name or value says that it is a secret.
fn secret_in(fields: &Map<String, Value>) -> Option<&str> {
    fields.iter().find_map(|(name, value)| {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let is_secret = SECRET_WORDS.contains(&&*plain.to_ascii_lowercase());
        (is_secret || holds_a_key(value))
            .then_some(&**name)
            .or_else(|| secret_below(value))
    })
}

fn secret_below(value: &Value) -> Option<&str> {
    match value {
        Value::Object(fields) => secret_in(fields),
        Value::Array(items) => items.iter().find_map(secret_below),
        _ => None,
    }
}

fn holds_a_key(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(PRIVATE_KEY),
        Value::Array(items) => items.iter().any(holds_a_key),
        _ => false,
    }
}
