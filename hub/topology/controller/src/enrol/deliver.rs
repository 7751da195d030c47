//! Owns: giving one Cluster the means to join, or revoking its tokens. A token is made last, so that a Cluster that
//! cannot be reached costs none.
//! Never: tells a token to anybody else.

use std::sync::Arc;

use shared::model::{ClusterId, JoinToken, TokenHash, TokenScope, TokenSecret, token::TOKEN_BYTES};
use tracing::info;

use super::{
    Decides, expiry, name,
    objects::{self, Said},
    server::Management,
    settings::Settings,
    standing::OPERATOR,
};
use crate::{model::Key, observe::Life};
use fold::Command;
use hub_core::clock::Clock;

/// The inputs of a delivery.
pub(super) struct Deliverer {
    pub(super) management: Management,
    pub(super) decisions: Arc<dyn Decides>,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
}

/// To whom.
pub(super) struct Way {
    pub(super) key: Key,
    id: ClusterId,
    pub(super) life: Arc<Life>,
}

impl Way {
    pub(super) fn new(key: &Key, id: &ClusterId, life: &Arc<Life>) -> Self {
        Self {
            key: key.clone(),
            id: id.clone(),
            life: life.clone(),
        }
    }
}

impl Deliverer {
    /// Revokes undelivered tokens, makes a token and delivers it: returns its name. The delivery has to be recorded
    /// then.
    pub(super) async fn deliver(&self, way: &Way, revoked: Vec<TokenHash>) -> anyhow::Result<String> {
        let Way { key, id, life } = way;
        let manifests = &self.settings.manifests;
        let installing = if self.settings.terms().installs {
            let installing = self.management.of_cluster(key).await?;
            installing.install(manifests).await?;
            Some(installing)
        } else {
            None
        };
        self.revoke(&revoked).await?;
        let (token, join) = self.made(id).await?;
        match installing {
            Some(installing) => installing.apply(&manifests.secret(id, &join)).await?,
            None => {
                let text = manifests.bundle(id, &join)?;
                let version = self.management.api_version().await?;
                let secret = objects::bundle(key, life, &version, &text);
                self.management.write_secret(&secret).await?;
            }
        }
        info!(cluster = %name(key), member = %id, token, "a Cluster was given what it needs to join");
        Ok(token)
    }

    /// Says of a Cluster what we say.
    pub(super) async fn say(&self, key: &Key, life: &Life, said: &Said<'_>) -> anyhow::Result<()> {
        let version = self.management.api_version().await?;
        self.management
            .say(&objects::cluster(key, life, &version, said))
            .await
    }

    /// Takes tokens back.
    pub(super) async fn revoke(&self, tokens: &[TokenHash]) -> anyhow::Result<()> {
        for token in tokens {
            let (token, operator) = (*token, OPERATOR.into());
            self.decisions
                .decide(Command::RevokeToken { token, operator })
                .await?;
        }
        Ok(())
    }

    /// A token for one id and one use: its name, and the join string.
    async fn made(&self, id: &ClusterId) -> anyhow::Result<(String, String)> {
        let secret = TokenSecret::new(rand::random::<[u8; TOKEN_BYTES]>());
        let at = self.clock.wall();
        let token = JoinToken {
            hash: secret.hash(),
            scope: TokenScope::Id(id.clone()),
            uses: 1,
            expires_at: expiry(at),
        };
        let named = token.hash.id();
        let operator = OPERATOR.into();
        self.decisions
            .decide(Command::CreateToken { token, operator, at })
            .await?;
        Ok((named, self.settings.join_string(secret)?))
    }
}
