//! Calls to the hub as its operator.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use proto::v1::{
    self, join_tokens_client::JoinTokensClient, membership_client::MembershipClient,
    state_client::StateClient,
};
use shared::{
    model::{JoinString, KeyFingerprint, TokenSecret, token::TOKEN_BYTES},
    tls::{Credentials, HubAddress, HubConnector, HubDial, LiveCredentials, TlsMetrics, explain},
};
use tonic::{Code, Request, Status, transport::Channel};

use super::home::{Home, HubPlace};

/// Longest time for one request.
const REQUEST_WAIT: Duration = Duration::from_secs(15);
/// Lifetime of a token: a person may take that long to correct an installation.
const TOKEN_GOOD: Duration = Duration::from_secs(24 * 60 * 60);

/// A connection to the hub.
pub(super) struct Operator {
    channel: Channel,
    name: String,
}

impl Operator {
    /// Connects to the hub of a clusterset, with the operator's certificate that is kept here.
    pub(super) async fn connect(home: &Home, hub: &HubPlace) -> anyhow::Result<Self> {
        let addresses: Result<Vec<HubAddress>, _> = hub.hubs.iter().map(|text| text.parse()).collect();
        let credentials = LiveCredentials::new(Credentials::from_pem(&home.operator(&hub.operator)?)?);
        let connector = HubConnector::new(
            addresses?,
            credentials,
            Arc::new(HubDial::from_environment()?),
            TlsMetrics::default(),
        );
        let channel = connector
            .connect_once()
            .await
            .map_err(|error| match explain(&error) {
                Some(reason) => anyhow!(reason),
                None => anyhow!(error),
            });
        let channel =
            channel.with_context(|| format!("the hub cannot be reached at {}", hub.hubs.join(", ")))?;
        Ok(Self {
            channel,
            name: hub.operator.clone(),
        })
    }

    /// All members, those that ended included.
    pub(super) async fn members(&self) -> anyhow::Result<Vec<v1::MemberState>> {
        let mut client = MembershipClient::new(self.channel.clone());
        let mut members = Vec::new();
        let mut page_token = String::new();
        loop {
            let ask = v1::ListMembersRequest {
                page_token,
                ..Default::default()
            };
            let page = client
                .list(request(ask))
                .await
                .map_err(|status| failed(&status))?
                .into_inner();
            members.extend(page.members);
            if page.next_page_token.is_empty() {
                return Ok(members);
            }
            page_token = page.next_page_token;
        }
    }

    /// Exports of a cluster, or profiles, as the hub has them.
    async fn state(&self, part: v1::StatePart, cluster: &str) -> anyhow::Result<Vec<v1::GetStateResponse>> {
        let mut client = StateClient::new(self.channel.clone());
        let mut pages = Vec::new();
        let mut page_token = String::new();
        loop {
            let ask = v1::GetStateRequest {
                parts: vec![part.into()],
                cluster: cluster.to_owned(),
                page_token,
                ..Default::default()
            };
            let page = client
                .get(request(ask))
                .await
                .map_err(|status| failed(&status))?
                .into_inner();
            page_token = page.next_page_token.clone();
            pages.push(page);
            if page_token.is_empty() {
                return Ok(pages);
            }
        }
    }

    /// The condition `Joined` of a member's ClusterProfile: true, or the reason.
    pub(super) async fn is_joined(&self, cluster: &str) -> anyhow::Result<Result<(), String>> {
        let pages = self.state(v1::StatePart::Profiles, cluster).await?;
        let mut profiles = pages.into_iter().flat_map(|page| page.profiles);
        let Some(profile) = profiles.find(|profile| profile.cluster == cluster) else {
            return Ok(Err("the hub has no profile of it yet".to_owned()));
        };
        let joined = profile
            .conditions
            .into_iter()
            .find(|condition| condition.r#type == "Joined");
        Ok(match joined {
            Some(condition) if condition.status == "True" => Ok(()),
            Some(condition) => Err(condition.message),
            None => Err("its profile has no condition Joined yet".to_owned()),
        })
    }

    /// An export as the hub has it; `None`: the hub does not know it.
    pub(super) async fn export(
        &self,
        cluster: &str,
        (namespace, name): (&str, &str),
    ) -> anyhow::Result<Option<v1::RecordedExport>> {
        let pages = self.state(v1::StatePart::StateExports, cluster).await?;
        let is_it = |recorded: &v1::RecordedExport| {
            let service = recorded
                .export
                .as_ref()
                .and_then(|export| export.service.as_ref());
            recorded.cluster == cluster
                && service.is_some_and(|service| service.namespace == namespace && service.name == name)
        };
        Ok(pages.into_iter().flat_map(|page| page.exports).find(is_it))
    }

    /// All tokens.
    pub(super) async fn tokens(&self) -> anyhow::Result<Vec<v1::JoinTokenState>> {
        let mut client = JoinTokensClient::new(self.channel.clone());
        let answer = client.list(request(v1::ListJoinTokensRequest::default())).await;
        Ok(answer.map_err(|status| failed(&status))?.into_inner().tokens)
    }

    /// Makes a token for one cluster, and returns the join string.
    pub(super) async fn make_token(&self, cluster: &str, hub: &HubPlace) -> anyhow::Result<String> {
        let token = TokenSecret::new(rand::random::<[u8; TOKEN_BYTES]>());
        let ask = v1::CreateJoinTokenRequest {
            token_hash: token.hash().0.to_vec(),
            cluster_ids: cluster.to_owned(),
            uses: 1,
            valid_millis: u64::try_from(TOKEN_GOOD.as_millis()).unwrap_or(u64::MAX),
            ..Default::default()
        };
        let mut client = JoinTokensClient::new(self.channel.clone());
        let answer = client
            .create(request(ask))
            .await
            .map_err(|status| failed(&status))?
            .into_inner();
        let pin = <[u8; 32]>::try_from(answer.pin.as_slice());
        let pin = KeyFingerprint(pin.map_err(|_| anyhow!("the hub's answer has no pin: update the hub"))?);
        let join = JoinString {
            doors: hub.joins.clone(),
            hubs: hub.hubs.clone(),
            pin,
            token,
        };
        join.encode()
            .context("the hub has more addresses than a join string takes")
    }

    /// Revokes a token.
    pub(super) async fn revoke_token(&self, id: &str) -> anyhow::Result<()> {
        let ask = v1::RevokeJoinTokenRequest {
            id: id.to_owned(),
            confirm: true,
            ..Default::default()
        };
        let mut client = JoinTokensClient::new(self.channel.clone());
        client
            .revoke(request(ask))
            .await
            .map(drop)
            .map_err(|status| failed(&status))
    }

    /// Its name in decisions.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// A request that does not wait for ever.
fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(REQUEST_WAIT);
    request
}

fn failed(status: &Status) -> anyhow::Error {
    if let Some(reason) = explain(status) {
        return anyhow!(reason);
    }
    let message = status.message();
    match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => {
            anyhow!("the hub did not answer within {} s", REQUEST_WAIT.as_secs())
        }
        Code::Unavailable => anyhow!("the hub cannot answer now: {message}"),
        Code::PermissionDenied => anyhow!("the hub refuses: {message}"),
        _ => anyhow!("the hub answers: {message}"),
    }
}
