//! Owns: asking an API server what it serves, and what the account that asks may do. Every question has a time.
//! Never: says what is wrong, or writes anything.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, Client, api::PostParams};
use tokio::time::timeout;

use super::{
    look::STEP_WAIT,
    rights::{Answered, Right},
};

/// Questions about rights at the same time.
const QUESTIONS_AT_ONCE: usize = 8;
/// Most versions of a group that are looked at.
const VERSIONS_MAX: usize = 16;

/// The served resources of some groups: plural names by `GROUP/VERSION`.
pub type Served = BTreeMap<String, BTreeSet<String>>;

/// Waits for an answer, and gives an API server's refusal in its own words.
pub async fn within<T>(asked: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match timeout(STEP_WAIT, asked).await {
        Ok(answer) => answer.map_err(|error| told(&error)),
        Err(_) => Err(format!("no answer within {} s", STEP_WAIT.as_secs())),
    }
}

/// An API server's refusal in its own words: printed as it is, kube's error is a Rust value.
pub fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} (HTTP {})", status.message, status.code),
        other => other.to_string(),
    }
}

/// Reads the served resources of these groups.
pub async fn served(client: &Client, groups: &[&str]) -> Result<Served, String> {
    let all = within(client.list_api_groups()).await?;
    let mut served = Served::new();
    for group in all.groups.iter().filter(|group| groups.contains(&&*group.name)) {
        for version in group.versions.iter().take(VERSIONS_MAX) {
            let version = &version.group_version;
            let resources = within(client.list_api_group_resources(version)).await?;
            let names = resources.resources.into_iter().map(|resource| resource.name);
            served.insert(version.clone(), names.collect());
        }
    }
    Ok(served)
}

/// Asks for the rights of the account of `client`, in this order.
pub async fn rights(client: &Client, rights: Vec<Right>) -> Vec<Answered> {
    let asked = rights.into_iter().map(|right| async {
        let answer = may(client, &right).await;
        (right, answer)
    });
    stream::iter(asked).buffered(QUESTIONS_AT_ONCE).collect().await
}

async fn may(client: &Client, right: &Right) -> Result<bool, String> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let review = SelfSubjectAccessReview {
        spec: question(right),
        ..SelfSubjectAccessReview::default()
    };
    let answer = within(reviews.create(&PostParams::default(), &review)).await?;
    let status = answer.status.ok_or("the question was not answered")?;
    Ok(status.allowed)
}

fn question(right: &Right) -> SelfSubjectAccessReviewSpec {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let verb = Some(right.verb.to_owned());
    let of = right.of;
    if !of.path.is_empty() {
        // A rule may end in `*`; what is asked for is one path below.
        let path = Some(of.path.replace('*', "v3"));
        return SelfSubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes { path, verb }),
            ..SelfSubjectAccessReviewSpec::default()
        };
    }
    let (resource, subresource) = of.resource.split_once('/').unwrap_or((of.resource, ""));
    SelfSubjectAccessReviewSpec {
        resource_attributes: Some(ResourceAttributes {
            group: Some(of.group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource: some(subresource),
            namespace: some(&right.namespace),
            name: some(of.name),
            verb,
            ..ResourceAttributes::default()
        }),
        ..SelfSubjectAccessReviewSpec::default()
    }
}
