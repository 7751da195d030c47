//! The runbooks of members that are lost, many at one time among them, and of one that takes back most of its exports.

use anyhow::ensure;
use cluster::clusterset::{
    Backend, LocalClusterset,
    eventually::eventually,
    questions::{self, kinds},
    shop::Shop,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use shared::api::{
    ServiceImport,
    names::{AGENT_LEASE, ANNOTATION_ACCEPT_WITHDRAWALS, TRIBUTARY_NAMESPACE},
};

use super::{Page, Player, recorded};

/// A loss is noticed within ten seconds, and nobody is withdrawn before.
const SOON: &str = "
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  loss:
    after: 10s
";
/// Exports of a member that withdraws all but one.
const SERVICES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Types a command until what it prints has all of this in it.
async fn until_it_says(
    player: &Player,
    clusterset: &LocalClusterset,
    command: &str,
    wanted: &[&str],
) -> anyhow::Result<()> {
    eventually(&format!("`{command}` says {wanted:?}"), async || {
        let said = player.play(clusterset, command).await?;
        ensure!(wanted.iter().all(|one| said.contains(one)), "{said}");
        Ok(Some(()))
    })
    .await
}

/// Two of three fall silent: nobody is withdrawn until the operator says that it is so. One comes back, one is evicted.
pub(super) async fn half_of_the_members_are_lost_and_one_never_comes_back(
    backend: Backend,
) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = ["east", "north", "west"];
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &clusters).await?;
    questions::listed(&clusterset, &clusters).await?;
    clusterset.apply_policy(SOON).await?;
    let mut shop = Shop::open(&clusterset).await?;
    for cluster in clusters {
        shop.export(&clusterset, cluster, "cart", &["10.96.0.7"]).await?;
    }
    shop.arrived(&clusterset).await?;
    let mut page = Page::of("runbooks/member-lost.md", "A member is lost")?;
    let player = Player::at(&clusterset).with("ID", "east");

    clusterset.kill_agent("east").await?;
    clusterset.kill_agent("west").await?;
    let list = page.take("tributary member list")?;
    until_it_says(&player, &clusterset, list, &["self-preservation", "east", "west"]).await?;
    let release = page.take("tributary member release --self-preservation")?;
    let said = player.play(&clusterset, release).await?;
    for cluster in ["east", "west"] {
        let kinds = kinds(&clusterset, cluster).await?;
        ensure!(
            !kinds.iter().any(|kind| kind == "member_withdrawn"),
            "{cluster} was withdrawn before anybody said so"
        );
    }
    player.confirm(&clusterset, &said).await?;
    // Until fewer than a third are lost: the last one of two is one of three.
    recorded(&clusterset, "east", "member_withdrawn").await?;

    clusterset.start_agent("west").await?;
    questions::listed(&clusterset, &["north", "west"]).await?;
    let evict = page.take("tributary member evict ID")?;
    let said = player.play(&clusterset, evict).await?;
    player.confirm(&clusterset, &said).await?;
    recorded(&clusterset, "east", "member_leaving").await?;
    let said = player.play_with(&clusterset, evict, &["--now"]).await?;
    player.confirm(&clusterset, &said).await?;
    recorded(&clusterset, "east", "member_evicted").await?;
    shop.forget_cluster("east");
    for cluster in ["north", "west"] {
        shop.arrived_in(&clusterset, cluster).await?;
    }
    page.all_played(&[])?;
    clusterset.end().await
}

/// Waits until the agent of a cluster holds what the hub took away, and confirms it as the runbook says.
async fn confirm_withdrawals(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<()> {
    let client = clusterset.cluster(cluster)?.client.clone();
    let imports: Api<ServiceImport> = Api::all(client.clone());
    let is_held = |import: &ServiceImport| {
        let mut conditions = import.status.iter().flat_map(|status| &status.conditions);
        conditions.any(|one| one.reason == "WithdrawalHeld")
    };
    eventually("imports on hold", || async {
        let all = imports.list(&ListParams::default()).await?;
        Ok(all.items.iter().any(is_held).then_some(()))
    })
    .await?;
    let leases: Api<Lease> = Api::namespaced(client, TRIBUTARY_NAMESPACE);
    let confirmed = json!({"metadata": {"annotations": {ANNOTATION_ACCEPT_WITHDRAWALS: "true"}}});
    leases
        .patch(AGENT_LEASE, &PatchParams::default(), &Patch::Merge(&confirmed))
        .await?;
    Ok(())
}

/// Its exports count until the operator lets them go.
pub(super) async fn a_member_took_back_most_of_its_exports(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusters = ["east", "north"];
    let clusterset = LocalClusterset::start(dir.path(), &backend, &clusters).await?;
    questions::listed(&clusterset, &clusters).await?;
    let mut shop = Shop::open(&clusterset).await?;
    for service in SERVICES {
        shop.export(&clusterset, "east", service, &["10.96.0.7"]).await?;
    }
    shop.arrived(&clusterset).await?;
    let mut page = Page::of(
        "runbooks/mass-withdrawal.md",
        "A member withdrew most of its exports",
    )?;
    let mut player = Player::at(&clusterset).with("ID", "east");
    player.kubeconfig = Some(clusterset.cluster("east")?.kubeconfig.clone());

    for service in &SERVICES[1..] {
        shop.withdraw(&clusterset, "east", service).await?;
    }
    let list = page.take("tributary member list")?;
    until_it_says(&player, &clusterset, list, &["east", "on hold"]).await?;
    let look = "kubectl get crd serviceexports.multicluster.x-k8s.io";
    let left: &[_] = match &backend {
        Backend::Simulated => &[(look, "simulated clusters serve no definitions to look at")],
        Backend::Real(_) => {
            player.play(&clusterset, page.take(look)?).await?;
            &[]
        }
    };
    let release = page.take("tributary member release ID")?;
    let said = player.play(&clusterset, release).await?;
    ensure!(
        !kinds(&clusterset, "east")
            .await?
            .iter()
            .any(|kind| kind == "brake_released"),
        "a dry run let them go"
    );
    player.confirm(&clusterset, &said).await?;
    recorded(&clusterset, "east", "brake_released").await?;
    for cluster in clusters {
        confirm_withdrawals(&clusterset, cluster).await?;
    }
    shop.arrived(&clusterset).await?;
    page.all_played(left)?;
    clusterset.end().await
}
