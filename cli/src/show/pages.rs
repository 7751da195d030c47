//! All pages of an answer, which are of one revision, as one answer.

use proto::v1::{self, state_client::StateClient};
use shared::model::sync::MESSAGE_BYTES_MAX;
use tonic::{Code, Status, transport::Channel};

use client::{failed, request};

/// Attempts at a listing whose first page's revision the hub no longer keeps.
const STARTS_MAX: u32 = 5;

/// Everything that `asked` asks for.
pub(crate) async fn state(
    channel: &Channel,
    asked: v1::GetStateRequest,
) -> anyhow::Result<v1::GetStateResponse> {
    let client = StateClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut starts = 1;
    loop {
        match state_pages(client.clone(), asked.clone()).await {
            Ok(all) => return Ok(all),
            Err(status) if status.code() == Code::Aborted && starts < STARTS_MAX => starts += 1,
            Err(status) => return Err(failed(&status)),
        }
    }
}

async fn state_pages(
    mut client: StateClient<Channel>,
    mut asked: v1::GetStateRequest,
) -> Result<v1::GetStateResponse, Status> {
    let mut all = v1::GetStateResponse::default();
    loop {
        let page = client.get(request(asked.clone())).await?.into_inner();
        all.members.extend(page.members);
        all.exports.extend(page.exports);
        all.imports.extend(page.imports);
        all.profiles.extend(page.profiles);
        asked.page_token = page.next_page_token;
        if asked.page_token.is_empty() {
            let v1::GetStateResponse {
                members,
                exports,
                imports,
                profiles,
                ..
            } = all;
            return Ok(v1::GetStateResponse {
                clusterset: page.clusterset,
                epoch: page.epoch,
                revision: page.revision,
                members,
                exports,
                imports,
                profiles,
                answered_by: page.answered_by,
                next_page_token: String::new(),
            });
        }
    }
}

/// All members, with the settings of the policy for lost ones.
pub(crate) async fn members(channel: &Channel) -> anyhow::Result<v1::ListMembersResponse> {
    crate::operate::all_members(channel.clone()).await
}

/// One explanation.
pub(super) async fn explanation(
    channel: &Channel,
    asked: v1::ExplainRequest,
) -> anyhow::Result<v1::ExplainResponse> {
    let client = StateClient::new(channel.clone());
    let mut client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let answer = client.explain(request(asked)).await;
    Ok(answer.map_err(|status| failed(&status))?.into_inner())
}
