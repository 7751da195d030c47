//! Owns: asking an API server what an account may do, as that account.
//! Never: judges; it returns answers, or waits for one.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{
    Client,
    api::{Api, PostParams},
};

use super::{Account, Right, Table};
use crate::real::Cluster;

/// Time for the authorizer to see a role: it reads them from a watch of its own.
const IN_FORCE_WAIT: Duration = Duration::from_secs(30);
/// Interval of asking it; nothing tells from outside when it has seen one.
const IN_FORCE_POLL: Duration = Duration::from_millis(20);

/// Returns true if the account that `client` asks as has a right.
pub async fn allowed(client: &Client, right: &Right) -> anyhow::Result<bool> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = SelfSubjectAccessReview {
        spec: question(right),
        ..SelfSubjectAccessReview::default()
    };
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.context("a review is answered")?.allowed)
}

/// Waits until a right is in force, or is not any more.
pub async fn until(client: &Client, right: &Right, wanted: bool) -> anyhow::Result<()> {
    let mut poll = tokio::time::interval(IN_FORCE_POLL);
    let answered = async {
        loop {
            poll.tick().await;
            if allowed(client, right).await? == wanted {
                return anyhow::Ok(());
            }
        }
    };
    let waited = tokio::time::timeout(IN_FORCE_WAIT, answered).await;
    waited.with_context(|| {
        let is = if wanted { "may not" } else { "still may" };
        format!("{is}: {right}")
    })?
}

/// Waits until every right of an account is in force in a cluster, except perhaps one.
pub async fn until_all(cluster: &Cluster, account: Account, except: Option<&Right>) -> anyhow::Result<()> {
    let client = account.in_cluster(cluster)?.client().await?;
    let table = Table::read()?;
    for (right, _) in table.rights(account) {
        if except != Some(&right) {
            until(&client, &right, true).await?;
        }
    }
    Ok(())
}

fn question(right: &Right) -> SelfSubjectAccessReviewSpec {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let verb = Some(right.verb.clone());
    if !right.path.is_empty() {
        let path = Some(right.path.replace('*', "v3"));
        return SelfSubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes { path, verb }),
            ..SelfSubjectAccessReviewSpec::default()
        };
    }
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let attributes = ResourceAttributes {
        group: Some(right.group.clone()),
        resource: Some(resource.to_owned()),
        subresource: some(subresource),
        namespace: some(&right.namespace),
        name: some(&right.name),
        verb,
        ..ResourceAttributes::default()
    };
    SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    }
}
