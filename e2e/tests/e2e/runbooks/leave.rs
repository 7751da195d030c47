//! The runbook of a cluster that leaves, and of one that is evicted.

use anyhow::ensure;
use tributary_e2e::clusterset::{
    Backend, LocalClusterset, eventually::eventually, questions, questions::kinds, shop::Shop,
};

use super::{Page, Player};

/// Commands that a simulated cluster has nothing for, or that another line of the page types whole.
const LEFT_OUT: [(&str, &str); 7] = [
    (
        "helm uninstall tributary-agent --namespace tributary-system",
        "`cargo nodes uninstall` plays it on real clusters",
    ),
    ("helm uninstall", "the same"),
    ("tributary-agent leave", "the listing has it with its flags"),
    (
        "tributary-agent corefile remove --apply",
        "its own tests, and `cargo nodes uninstall`",
    ),
    (
        "kubectl -n tributary-system get secret tributary-agent-tls -o go-template='{{index .data \"tls.crt\" | \
         base64decode}}' > agent.crt",
        "simulated clusters serve no Secrets; the certificate is a file here",
    ),
    (
        "kubectl -n tributary-system get secret tributary-agent-tls -o go-template='{{index .data \"tls.key\" | \
         base64decode}}' > agent.key",
        "the same",
    ),
    (
        "kubectl delete validatingadmissionpolicybinding tributary-only-the-agent-writes \
         tributary-membership-is-immutable",
        "simulated clusters admit everything",
    ),
];
/// What `tributary-agent leave` of the page is told of hub and certificate.
const LEAVE: &str = "tributary-agent leave --hub https://HOST:8443 --tls-ca certs/ca.crt --tls-cert agent.crt --tls-key \
                     agent.key --kubeconfig FILE";

/// Whether an event of this kind is the latest of a member's leaving.
async fn told(clusterset: &LocalClusterset, cluster: &str, kind: &str) -> anyhow::Result<()> {
    eventually(&format!("{kind} of {cluster}"), async || {
        let kinds = kinds(clusterset, cluster).await?;
        Ok(kinds.iter().any(|one| one == kind).then_some(()))
    })
    .await
}

/// Drained, taken back, and then gone of its own will; another one is evicted.
pub(super) async fn a_cluster_leaves() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = ["east", "north", "west"];
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &clusters).await?;
    questions::listed(&clusterset, &clusters).await?;
    let mut shop = Shop::open(&clusterset).await?;
    for cluster in ["east", "west"] {
        shop.export(&clusterset, cluster, "cart", &["10.96.0.7"]).await?;
    }
    shop.arrived(&clusterset).await?;
    let mut page = Page::of("A cluster leaves")?;
    let file = |name: &str| clusterset.certificate(name).display().to_string();
    let player = Player::at(&clusterset)
        .with("ID", "west")
        .with(
            "FILE",
            clusterset.cluster("west")?.kubeconfig.display().to_string(),
        )
        .with("agent.crt", file("west.crt"))
        .with("agent.key", file("west.key"));

    for (command, kind) in [
        ("tributary-hub member drain ID --after 1h", "member_leaving"),
        ("tributary-hub member stay ID", "member_stays"),
    ] {
        let said = player.play(&clusterset, page.take(command)?).await?;
        ensure!(
            !kinds(&clusterset, "west").await?.iter().any(|one| one == kind),
            "`{command}` did it without being told so"
        );
        player.confirm(&clusterset, &said).await?;
        told(&clusterset, "west", kind).await?;
    }

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
    told(&clusterset, "west", "member_left").await?;
    shop.forget_cluster("west");
    for cluster in ["east", "north"] {
        shop.arrived_in(&clusterset, cluster).await?;
    }
    let again = page.take("tributary-agent leave --without-hub --kubeconfig FILE --confirm")?;
    player.play(&clusterset, again).await?;

    let player = player.with("ID", "east");
    let said = player
        .play(&clusterset, page.take("tributary-hub member evict ID")?)
        .await?;
    player.confirm(&clusterset, &said).await?;
    told(&clusterset, "east", "member_leaving").await?;
    let said = player
        .play(&clusterset, page.take("tributary-hub member evict ID --now")?)
        .await?;
    player.confirm(&clusterset, &said).await?;
    told(&clusterset, "east", "member_evicted").await?;
    shop.forget_cluster("east");
    shop.arrived_in(&clusterset, "north").await?;
    page.is_played(&LEFT_OUT)?;
    clusterset.end().await
}
