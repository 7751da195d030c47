//! The life of the pods: made, awaited, read and removed; and those of a run that was killed.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use agent::probe::{Report, Request};
use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};

use super::{
    super::{
        cluster::{Cluster, pod_waits_for},
        plan::{Look, until},
        progress::Progress,
    },
    pod::{LABEL_RUN, Template, is_left_over, pod, report},
    seen::{Family, Outcome},
};

/// Left-over pods that one run removes in a namespace.
const LEFT_OVER_MAX: u32 = 100;

/// The pods of a run.
pub(super) struct Pods {
    run: String,
    timeout: Duration,
    /// Those that were made, or are just being made, and are not removed yet.
    made: Mutex<Vec<Made>>,
}

struct Made {
    name: String,
    api: Api<Pod>,
}

/// A namespace of a cluster, and what pods there are like.
pub(super) struct Place<'a> {
    pub(super) id: &'a str,
    pub(super) cluster: &'a Cluster,
    pub(super) namespace: &'a str,
    pub(super) template: &'a Template,
}

impl Pods {
    /// Of a new run, which waits so long for each.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            run: format!("{:08x}", rand::random::<u32>()),
            timeout,
            made: Mutex::default(),
        }
    }

    /// Has pods in a namespace carry out these requests, one after the other, and removes pods that an earlier run left.
    pub(super) async fn carry_out(
        &self,
        place: &Place<'_>,
        requests: &[Request],
        progress: &Progress,
    ) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        for (number, request) in requests.iter().enumerate() {
            let (ended, found) = self.one(place, request, progress).await?;
            outcome.add(request, found);
            outcome.families.extend(families(&ended));
            if number == 0 {
                self.remove_left_over(place, &ended, progress).await?;
            }
        }
        Ok(outcome)
    }

    async fn one(
        &self,
        place: &Place<'_>,
        request: &Request,
        progress: &Progress,
    ) -> anyhow::Result<(Pod, Report)> {
        let (cluster, namespace) = (place.cluster, place.namespace);
        let api = Api::<Pod>::namespaced(cluster.client.clone(), namespace);
        let name = format!("tributary-verify-{}-{:04x}", self.run, rand::random::<u16>());
        let own = namespace == cluster.namespace();
        let object = pod(
            place.template,
            (&name, &self.run),
            own,
            request,
            self.timeout.as_secs(),
        )?;
        // Before the request: it may be interrupted, and still have been carried out.
        self.kept(|made| {
            made.push(Made {
                name: name.clone(),
                api: api.clone(),
            });
        });
        let made = api.create(&PostParams::default(), &object).await;
        made.map_err(|error| cluster.failed(error))?;
        progress.note(&format!("{}: pod {namespace}/{name} was made", place.id));
        let ended = until(progress, self.timeout, async || {
            let pod = api.get_opt(&name).await.map_err(|error| cluster.failed(error))?;
            let pod = pod.context("somebody deleted the pod")?;
            Ok(match report(&pod)? {
                Some(report) => Look::Ready((pod, report)),
                None => Look::Waiting(format!("{}: {}", place.id, waits_for(&pod))),
            })
        })
        .await;
        let removed = removed(&api, &name).await;
        self.kept(|made| made.retain(|one| one.name != name || removed.is_err()));
        ended
    }

    /// Removes pods that runs made that were killed. A person may lack the right to list pods: then they stay.
    async fn remove_left_over(
        &self,
        place: &Place<'_>,
        own: &Pod,
        progress: &Progress,
    ) -> anyhow::Result<()> {
        let api = Api::<Pod>::namespaced(place.cluster.client.clone(), place.namespace);
        let Some(now) = own.creation_timestamp().map(|at| at.0.as_second()) else {
            return Ok(());
        };
        let labelled = ListParams::default()
            .labels(&format!("{LABEL_RUN},{LABEL_RUN}!={}", self.run))
            .limit(LEFT_OVER_MAX);
        let pods = match api.list(&labelled).await {
            Ok(pods) => pods.items,
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(()),
            Err(error) => return Err(place.cluster.failed(error)),
        };
        for pod in pods.iter().filter(|pod| is_left_over(pod, now)) {
            let name = pod.name_any();
            removed(&api, &name)
                .await
                .map_err(|error| place.cluster.failed(error))?;
            progress.note(&format!(
                "{}: removed pod {}/{name}, which an earlier run left",
                place.id, place.namespace
            ));
        }
        Ok(())
    }

    /// Removes all that are left of this run; the names of those that are still there.
    pub(super) async fn remove_all(&self) -> Vec<String> {
        let made = self.kept(std::mem::take);
        let mut left = Vec::new();
        for Made { name, api } in made {
            if removed(&api, &name).await.is_err() {
                left.push(name);
            }
        }
        left
    }

    fn kept<T>(&self, change: impl FnOnce(&mut Vec<Made>) -> T) -> T {
        change(&mut self.made.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn waits_for(pod: &Pod) -> String {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let reason = match phase {
        Some("Running") => None,
        _ => pod_waits_for(pod),
    };
    reason.unwrap_or_else(|| match phase {
        Some("Running") => format!("pod {} looks", pod.name_any()),
        _ => format!("pod {}: no kubelet has taken it yet", pod.name_any()),
    })
}

/// Removes a pod at once; one that is not there is removed.
async fn removed(api: &Api<Pod>, name: &str) -> Result<(), kube::Error> {
    match api.delete(name, &DeleteParams::default().grace_period(0)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(drop),
    }
}

fn families(pod: &Pod) -> impl Iterator<Item = Family> {
    let status = pod.status.clone().unwrap_or_default();
    let listed = status.pod_ips.unwrap_or_default().into_iter().map(|ip| ip.ip);
    let all = listed.chain(status.pod_ip);
    all.filter_map(|ip| ip.parse().ok()).map(Family::of)
}
