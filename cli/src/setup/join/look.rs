//! Looks at the cluster, the hub and this machine for `join`.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use kube::Api;
use proto::v1::{self, SourceState};
use shared::{
    api::{ClusterProperty, names::PROPERTY_CLUSTER_ID},
    identity::{CertificateFacts, Role},
    model::{Clusterset, JoinString},
};

use super::{
    AGENT, Shell, Tools,
    decide::{Certificate, Invitation, Member, Seen, Standing, Step, Token, plan},
};
use crate::setup::{
    cluster::Cluster,
    dns,
    helm::Definitions,
    home::{HubPlace, MemberPlace},
    plan::Planned,
    values::{AGENT_JOIN, AGENT_TLS, release_needs},
};

/// Looks, asks about CoreDNS, and plans.
pub(super) async fn look(tools: Tools<'_>) -> anyhow::Result<(Shell<'_>, Seen, Vec<Planned<Step>>)> {
    let (args, cluster) = (tools.args, &tools.cluster);
    let values = tools.values()?;
    let definitions = Definitions::look(cluster, &tools.helm, &tools.charts).await?;
    let release = tools.charts.release((cluster, &tools.helm), AGENT).await?;
    let clusterset = tools.home.clusterset_of(&tools.hub.operator)?;
    let remembered = tools.home.remembered()?.members.get(args.id.as_str()).cloned();
    let mut seen = Seen {
        fingerprint: cluster.fingerprint().await?,
        stated: stated_id(cluster).await?,
        members: tools.operator.members().await?.iter().map(member).collect(),
        tokens: tools.operator.tokens().await?.iter().map(token).collect(),
        remembered: remembered == Some(MemberPlace::from(&args.cluster)),
        namespace: cluster.has_namespace().await?,
        definitions: definitions.needs(),
        invitation: invitation(cluster, &tools.hub).await?,
        certificate: certificate(cluster, &clusterset).await?,
        release: release_needs(release.as_ref(), &values, tools.charts.given()),
        dns: false,
    };
    // Obstacles are reported before the first question.
    plan(&seen, args.id.as_str()).map_err(|why| anyhow!("nothing was changed: {why}"))?;
    let dns = dns::look(cluster, args.dns).await?;
    seen.dns = dns::decide(&dns, args.dns, dns::ask)?;
    let planned = plan(&seen, args.id.as_str()).map_err(|why| anyhow!(why))?;
    let shell = Shell {
        tools,
        definitions,
        release,
        values,
        dns,
    };
    Ok((shell, seen, planned))
}

/// The id that a cluster states of itself; a cluster without the definition states none.
pub(in crate::setup) async fn stated_id(cluster: &Cluster) -> anyhow::Result<Option<String>> {
    let properties = Api::<ClusterProperty>::all(cluster.client.clone());
    match properties.get_opt(PROPERTY_CLUSTER_ID).await {
        Ok(found) => Ok(found.map(|property| property.spec.value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(cluster.failed(error)),
    }
}

async fn invitation(cluster: &Cluster, hub: &HubPlace) -> anyhow::Result<Option<Invitation>> {
    let secret = cluster.secret(AGENT_JOIN).await?;
    let text = secret.and_then(|mut texts| texts.remove("join"));
    Ok(text
        .and_then(|text| JoinString::parse(&text).ok())
        .map(|join| Invitation {
            token: join.token.hash(),
            leads_to_hub: join.hubs == hub.hubs && join.doors == hub.joins,
        }))
}

async fn certificate(cluster: &Cluster, own: &Clusterset) -> anyhow::Result<Option<Certificate>> {
    let secret = cluster.secret(AGENT_TLS).await?;
    let pem = secret
        .and_then(|mut texts| texts.remove("tls.crt"))
        .unwrap_or_default();
    Ok(held(&pem, own, now_millis()))
}

/// A member's certificate (PEM), beside the clusterset that it should be of and the time in ms since 1970.
fn held(pem: &str, own: &Clusterset, now: u64) -> Option<Certificate> {
    let certificates = shared::tls::certificates_in("tls.crt", pem.as_bytes()).ok()?;
    let facts = CertificateFacts::read(certificates.first()?).ok()?;
    let Role::Cluster(id) = facts.identity.role else {
        return None;
    };
    Some(Certificate {
        cluster: id.as_str().to_owned(),
        of_clusterset: facts.identity.clusterset == *own,
        over: facts.not_after.0 <= now,
    })
}

fn now_millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn member(state: &v1::MemberState) -> Member {
    Member {
        id: state.cluster.clone(),
        fingerprint: state.cluster_fingerprint.clone(),
        standing: match state.state() {
            SourceState::SourceEvicted => Standing::Evicted,
            SourceState::SourceLeft | SourceState::SourceForgotten => Standing::Ended,
            _ => Standing::Member,
        },
    }
}

fn token(state: &v1::JoinTokenState) -> Token {
    let now = now_millis() / 1_000;
    let ends = state.expires_at.as_ref().map_or(0, |at| at.seconds);
    Token {
        id: state.id.clone(),
        cluster_ids: state.cluster_ids.clone(),
        operator: state.operator.clone(),
        over: state.revoked_at.is_some() || u64::try_from(ends).unwrap_or(0) <= now,
        uses: usize::try_from(state.uses).unwrap_or(usize::MAX),
        used_by: state.used.iter().map(|used| used.cluster.clone()).collect(),
    }
}

impl Tools<'_> {
    /// The values of the agent's chart.
    pub(super) fn values(&self) -> anyhow::Result<serde_json::Value> {
        super::chart_values(self.args, &self.hub)
    }
}

#[cfg(test)]
mod tests {
    use certs::{CertificateAuthority, Subject, Validity};
    use shared::model::ClusterId;

    use super::*;

    #[test]
    fn a_certificate_is_held_against_clusterset_and_time() {
        let set = |name: &str| Clusterset::new("example.org", name).expect("valid");
        let (own, year) = (set("default"), Validity::days_from_now(365));
        let authority = CertificateAuthority::generate(&own, year).expect("made");
        let subject = Subject::Member(ClusterId::new("east").expect("valid"));
        let pem = authority.issue(&subject, year).expect("issued").certificate_pem;
        let now = year.not_before.0 + 1_000;
        for (pem, own, now, found) in [
            (pem.as_str(), own.clone(), now, Some((true, false))),
            (&pem, set("other"), now, Some((false, false))),
            (&pem, own.clone(), year.not_after.0 + 1, Some((true, true))),
            ("", own.clone(), now, None),
            (authority.certificate_pem(), own, now, None),
        ] {
            let held = held(pem, &own, now);
            assert!(
                held.as_ref().is_none_or(|held| held.cluster == "east"),
                "{held:?}"
            );
            assert_eq!(held.map(|held| (held.of_clusterset, held.over)), found);
        }
    }
}
