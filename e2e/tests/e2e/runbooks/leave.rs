//! The runbook of a cluster that leaves, and of one that is evicted.

use anyhow::ensure;
use cluster::clusterset::{
    Backend, LocalClusterset,
    questions::{self, kinds},
    shop::Shop,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use shared::api::names::TRIBUTARY_NAMESPACE;

use super::{Page, Player, recorded};

/// Commands that these clusters have nothing for, or that another line of the page types whole.
const LEFT_OUT: [(&str, &str); 7] = [
    (
        "tributary join",
        "nothing was installed by the client: `real::setup` plays it",
    ),
    ("tributary leave ID", "the same"),
    (
        "helm uninstall tributary-agent --namespace tributary-system",
        "nothing was installed by Helm: `cargo nodes uninstall` plays it",
    ),
    ("helm uninstall", "the same"),
    ("tributary-agent leave", "the listing has it with its flags"),
    (
        "tributary-agent corefile remove --apply",
        "there is no CoreDNS: `cargo nodes uninstall` plays it",
    ),
    (
        "kubectl delete validatingadmissionpolicybinding tributary-only-the-agent-writes \
         tributary-membership-is-immutable",
        "these clusters have no such policies: `cargo nodes uninstall` plays it",
    ),
];
/// Commands of the page that take the cluster's certificate out of its Secret.
const CERTIFICATE: [&str; 2] = [
    "kubectl -n tributary-system get secret tributary-agent-tls -o go-template='{{index .data \"tls.crt\" | \
     base64decode}}' > agent.crt",
    "kubectl -n tributary-system get secret tributary-agent-tls -o go-template='{{index .data \"tls.key\" | \
     base64decode}}' > agent.key",
];
/// The page's `tributary-agent leave`, with hub and certificate.
const LEAVE: &str = "tributary-agent leave --hub https://HOST:8443 --tls-ca certs/ca.crt --tls-cert agent.crt --tls-key \
                     agent.key --kubeconfig FILE";

/// The Secret in which a chart keeps the agent's certificate.
async fn keep_certificate(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<()> {
    let file = |end: &str| std::fs::read(clusterset.certificate(&format!("{cluster}.{end}")));
    let data = [("tls.crt", file("crt")?), ("tls.key", file("key")?)];
    let secret = Secret {
        data: Some(
            data.map(|(name, bytes)| (name.to_owned(), ByteString(bytes)))
                .into(),
        ),
        ..serde_json::from_value(json!({"metadata": {"name": "tributary-agent-tls"}}))?
    };
    let client = clusterset.cluster(cluster)?.client.clone();
    let secrets: Api<Secret> = Api::namespaced(client, TRIBUTARY_NAMESPACE);
    let person = PatchParams::apply("person").force();
    secrets
        .patch("tributary-agent-tls", &person, &Patch::Apply(&secret))
        .await?;
    Ok(())
}

/// The cluster's certificate as the page says, or where clusters have no Secrets, from its file.
async fn take_certificate(
    clusterset: &LocalClusterset,
    backend: &Backend,
    player: &Player,
    page: &mut Page,
) -> anyhow::Result<Vec<(&'static str, &'static str)>> {
    if matches!(backend, Backend::Simulated) {
        for end in ["crt", "key"] {
            let file = |name: &str| clusterset.certificate(&format!("{name}.{end}"));
            std::fs::copy(file("west"), file("agent"))?;
        }
        return Ok(CERTIFICATE
            .map(|command| (command, "simulated clusters serve no Secrets"))
            .to_vec());
    }
    keep_certificate(clusterset, "west").await?;
    for command in CERTIFICATE {
        player.play(clusterset, page.take(command)?).await?;
    }
    Ok(Vec::new())
}

/// Drained, taken back, and then gone of its own will; another one is evicted.
pub(super) async fn a_cluster_leaves(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = ["east", "north", "west"];
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &clusters).await?;
    questions::listed(&clusterset, &clusters).await?;
    let mut shop = Shop::open(&clusterset).await?;
    for cluster in ["east", "west"] {
        shop.export(&clusterset, cluster, "cart", &["10.96.0.7"]).await?;
    }
    shop.arrived(&clusterset).await?;
    let mut page = Page::of("guides/leaving.md", "Leaving")?;
    let file = |name: &str| clusterset.certificate(name).display().to_string();
    let mut player = Player::at(&clusterset)
        .with("ID", "west")
        .with(
            "FILE",
            clusterset.cluster("west")?.kubeconfig.display().to_string(),
        )
        .with("agent.crt", file("agent.crt"))
        .with("agent.key", file("agent.key"));
    player.kubeconfig = Some(clusterset.cluster("west")?.kubeconfig.clone());

    for (command, kind) in [
        ("tributary member drain ID --after 1h", "member_leaving"),
        ("tributary member stay ID", "member_stays"),
    ] {
        let said = player.play(&clusterset, page.take(command)?).await?;
        ensure!(
            !kinds(&clusterset, "west").await?.iter().any(|one| one == kind),
            "`{command}` did it without being told so"
        );
        player.confirm(&clusterset, &said).await?;
        recorded(&clusterset, "west", kind).await?;
    }

    let mut left = take_certificate(&clusterset, &backend, &player, &mut page).await?;
    left.extend(LEFT_OUT);
    clusterset.stop_agent("west").await?;
    player.play(&clusterset, page.take(LEAVE)?).await?;
    ensure!(
        !kinds(&clusterset, "west")
            .await?
            .iter()
            .any(|kind| kind == "member_left"),
        "a dry run told the hub"
    );
    let leave = format!("{LEAVE} --confirm");
    player.play(&clusterset, page.take(&leave)?).await?;
    recorded(&clusterset, "west", "member_left").await?;
    shop.forget_cluster("west");
    for cluster in ["east", "north"] {
        shop.arrived_in(&clusterset, cluster).await?;
    }
    let again = page.take("tributary-agent leave --without-hub --kubeconfig FILE --confirm")?;
    player.play(&clusterset, again).await?;

    let player = player.with("ID", "east");
    let said = player
        .play(&clusterset, page.take("tributary member evict ID")?)
        .await?;
    player.confirm(&clusterset, &said).await?;
    recorded(&clusterset, "east", "member_leaving").await?;
    let said = player
        .play(&clusterset, page.take("tributary member evict ID --now")?)
        .await?;
    player.confirm(&clusterset, &said).await?;
    recorded(&clusterset, "east", "member_evicted").await?;
    shop.forget_cluster("east");
    shop.arrived_in(&clusterset, "north").await?;
    page.all_played(&left)?;
    clusterset.end().await
}
