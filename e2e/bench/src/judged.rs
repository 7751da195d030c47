//! Owns: whether the clusters that were measured hold what the oracle says: asked behind the measured time, and how
//! many objects that guarded is printed.
//! Never: changes a figure, or lets a shape stand whose clusters are wrong.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use kube::Client;

use super::report::Section;
use cluster::clusterset::picture::picture;
use oracle::{self, Judgement};

/// Longest wait until everything is right. A rate that the machine does not sustain leaves work behind.
const RIGHT_WAIT: Duration = Duration::from_secs(120);
const RIGHT_POLL: Duration = Duration::from_secs(1);
/// Number of wrong objects to print.
const WRONG_PRINTED_MAX: usize = 10;

/// Waits until a namespace is right in every cluster, and adds how many objects were judged.
pub(super) async fn judge_clusters(
    section: &mut Section,
    clusters: &[(&str, &Client)],
    namespace: &str,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + RIGHT_WAIT;
    let mut poll = tokio::time::interval(RIGHT_POLL);
    loop {
        poll.tick().await;
        let mut pictures = Vec::new();
        for (cluster, client) in clusters {
            pictures.push(picture(client, cluster, namespace).await?);
        }
        match require(section, &oracle::judge(&pictures)) {
            Err(_) if Instant::now() < deadline => {}
            judged => {
                let waited = RIGHT_WAIT.as_secs();
                return judged.with_context(|| format!("in namespace {namespace}, after {waited} s"));
            }
        }
    }
}

/// Adds how many objects were guarded, if there were any and all of them are right.
pub(super) fn require(section: &mut Section, judgement: &Judgement) -> anyhow::Result<()> {
    let wrong: Vec<String> = judgement.wrong().collect();
    let printed = wrong.iter().take(WRONG_PRINTED_MAX).map(String::as_str);
    let (count, printed) = (wrong.len(), printed.collect::<Vec<_>>().join("\n"));
    ensure!(count == 0, "the oracle finds {count} objects wrong:\n{printed}");
    ensure!(
        judgement.guarded > 0,
        "the oracle had nothing to judge: what was measured carried no export"
    );
    section.figure(
        "objects that the oracle found right",
        judgement.guarded as f64,
        "",
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use kube::api::{Api, Patch, PatchParams};
    use serde_json::json;
    use shared::api::{ServiceExport, names};

    use super::*;
    use oracle::example::Example;
    use sim::{SimCluster, SimConfig};

    fn judged(example: &Example) -> (Section, anyhow::Result<()>) {
        let mut section = Section::begin("judged");
        let judged = require(&mut section, &oracle::judge(&example.pictures()));
        (section, judged)
    }

    fn right() -> Example {
        let mut example = Example::new(&["east", "west"]);
        example.export("east", "cart");
        example.import_everywhere("cart");
        example
    }

    #[test]
    fn what_is_right_is_counted_in_the_table() {
        let (section, judged) = judged(&right());
        judged.expect("all is right");
        // Two imports and an export.
        assert!(
            section.figures[0].line().ends_with(" 3.00"),
            "{}",
            section.figures[0].line()
        );
    }

    #[test]
    fn what_is_wrong_fails_the_shape_and_is_named() {
        let mut example = right();
        example.import_address("west", "cart", "10.9.9.9");
        let (section, judged) = judged(&example);
        let why = judged.expect_err("an address too many").to_string();
        assert!(why.contains("import shop/cart in west"), "{why}");
        assert!(why.contains("10.9.9.9"), "{why}");
        assert!(section.figures.is_empty());
    }

    #[test]
    fn where_nothing_is_guarded_the_shape_fails() {
        let (_, judged) = judged(&Example::new(&["east", "west"]));
        let why = judged.expect_err("nothing is exported").to_string();
        assert!(why.contains("nothing to judge"), "{why}");
    }

    #[tokio::test]
    async fn clusters_are_judged_through_their_api_servers() {
        let cluster = SimCluster::new(SimConfig::default()).expect("it starts");
        let export = json!({"apiVersion": names::MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
            "metadata": {"name": "cart", "namespace": "shop"}});
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
            export.clone(),
        ] {
            cluster.apply(object).expect("taken");
        }
        let client = cluster.client_named("judged");
        // What an agent says of an export without a Service.
        let said = |kind, reason| {
            json!({"type": kind, "status": "False", "reason": reason, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let mut answered = export;
        answered["status"] = json!({"conditions": [said("Valid", "NoService"), said("Ready", "Pending")]});
        let exports: Api<ServiceExport> = Api::namespaced(client.clone(), "shop");
        let parameters = PatchParams::apply("judged").force();
        let patched = exports
            .patch_status("cart", &parameters, &Patch::Apply(&answered))
            .await;
        patched.expect("taken");
        let mut section = Section::begin("judged");
        let judged = judge_clusters(&mut section, &[("east", &client)], "shop").await;
        judged.expect("it is as it must be");
        assert!(section.figures[0].line().ends_with(" 1.00"));
    }
}
