//! Asks a hub for all its members.

use client::{failed, request};
use proto::v1::{self, membership_client::MembershipClient};
use shared::model::sync::MESSAGE_BYTES_MAX;
use tonic::{Code, Status, transport::Channel};

/// Attempts at a listing whose revision the hub dropped between pages.
const LISTING_STARTS_MAX: u32 = 5;

/// All members, of one revision.
pub(crate) async fn listed(channel: Channel) -> anyhow::Result<v1::ListMembersResponse> {
    let mut membership = MembershipClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut starts = 1;
    loop {
        match pages(&mut membership).await {
            Ok(members) => return Ok(members),
            // The hub does not keep the revision of the first pages any more.
            Err(status) if status.code() == Code::Aborted && starts < LISTING_STARTS_MAX => starts += 1,
            Err(status) => return Err(failed(&status)),
        }
    }
}

/// All pages of the members, which are of one revision, as one answer.
async fn pages(membership: &mut MembershipClient<Channel>) -> Result<v1::ListMembersResponse, Status> {
    let mut all = v1::ListMembersResponse::default();
    let mut page_token = String::new();
    loop {
        let asked = v1::ListMembersRequest {
            page_token,
            ..Default::default()
        };
        let page = membership.list(request(asked)).await?.into_inner();
        page_token = page.next_page_token;
        all.members.extend(page.members);
        all.revoked_keys.extend(page.revoked_keys);
        if page_token.is_empty() {
            let (members, revoked_keys) = (all.members, all.revoked_keys);
            return Ok(v1::ListMembersResponse {
                members,
                revoked_keys,
                next_page_token: page_token,
                ..page
            });
        }
    }
}
