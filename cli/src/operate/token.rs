//! `tributary token`: makes the token here, so that the hub is sent its hash only, and prints the one string with which
//! a cluster joins.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use client::{duration, failed, request};
use proto::v1::{self, join_tokens_client::JoinTokensClient};
use serde_json::json;
use shared::{
    model::{JoinString, KeyFingerprint, TokenHash, TokenScope, TokenSecret, advice, token::TOKEN_BYTES},
    tls::HubAddress,
};

use super::{
    decision::DecisionArgs,
    hub_args::{HubArgs, connect},
    print,
};

/// The right that only operators have.
const DECIDES: &str = "decides who joins";

/// Make, list and revoke the tokens with which clusters join.
#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print the string with which a cluster joins
    #[command(
        long_about = "Make a token and print the string with which a cluster joins. Whoever has the string can join: \
            send it as you would a password. It is shown once, and the hub knows only a hash of it.\n\n\
        A token is for one id, or for up to --uses clusters whose ids match a pattern.\n\n\
        Example:\n  tributary token create --cluster-id east --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key\n  \
        tributary token create --id-pattern 'prod-*' --uses 50 --expires 24h --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Create(CreateArgs),
    /// Show the tokens, and who joined with each
    List(ListArgs),
    /// Revoke a token
    #[command(
        long_about = "Revoke a token: nobody joins with it any more. Clusters that joined with it stay members \
            (`member evict` ends a membership).\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary token revoke 0123456789abcdef --hub https://HUB:8443 \\\n    --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct CreateArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Number of clusters that may join with it
    #[arg(long, env = "TRIBUTARY_TOKEN_USES", value_name = "COUNT", default_value_t = 1)]
    uses: u32,
    /// Lifetime of the token, as 90s, 30m, 24h or 7d
    #[arg(long, env = "TRIBUTARY_TOKEN_EXPIRES", value_name = "TIME", default_value = "24h", value_parser = duration)]
    expires: Duration,
    /// Join address of the hub; unless given, the hosts of --hub with the port at which the hub lets clusters join
    #[arg(
        long = "join-address",
        env = "TRIBUTARY_JOIN_ADDRESS",
        value_name = "https://HOST:PORT",
        value_delimiter = ','
    )]
    join_addresses: Vec<HubAddress>,
    #[command(flatten)]
    hub: HubArgs,
}

/// Clusters that may join: one of the two.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ScopeArgs {
    /// The id of the cluster that may join
    #[arg(long, env = "TRIBUTARY_CLUSTER_ID", value_name = "ID", value_parser = one_id)]
    cluster_id: Option<TokenScope>,
    /// A pattern of the ids of clusters that may join: '*' stands for any characters
    #[arg(long, env = "TRIBUTARY_ID_PATTERN", value_name = "PATTERN", value_parser = pattern)]
    id_pattern: Option<TokenScope>,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name of the token, as `token list` shows it
    #[arg(value_name = "TOKEN", value_parser = token_id)]
    token: String,
    #[command(flatten)]
    decision: DecisionArgs,
}

fn one_id(text: &str) -> Result<TokenScope, String> {
    match text.parse() {
        Ok(TokenScope::Pattern(_)) => Err("use --id-pattern for a pattern of ids".to_owned()),
        Ok(scope) => Ok(scope),
        Err(error) => Err(error.to_string()),
    }
}

fn pattern(text: &str) -> Result<TokenScope, String> {
    match text.parse() {
        Ok(TokenScope::Id(_)) => Err("it has no '*': use --cluster-id for one id".to_owned()),
        Ok(scope) => Ok(scope),
        Err(error) => Err(error.to_string()),
    }
}

fn token_id(text: &str) -> Result<String, String> {
    if TokenHash::is_id(text) {
        return Ok(text.to_owned());
    }
    Err("a token's name is 16 hexadecimal digits; it is not the join string".to_owned())
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: TokenArgs) -> anyhow::Result<String> {
    match args.command {
        TokenCommand::Create(args) => create(args).await,
        TokenCommand::List(args) => list(args).await,
        TokenCommand::Revoke(args) => revoke(args).await,
    }
}

async fn create(args: CreateArgs) -> anyhow::Result<String> {
    let scope = args
        .scope
        .cluster_id
        .or(args.scope.id_pattern)
        .context("give --cluster-id or --id-pattern")?;
    let token = TokenSecret::new(rand::random::<[u8; TOKEN_BYTES]>());
    let create = v1::CreateJoinTokenRequest {
        token_hash: token.hash().0.to_vec(),
        cluster_ids: scope.to_string(),
        uses: args.uses,
        valid_millis: u64::try_from(args.expires.as_millis()).unwrap_or(u64::MAX),
        ..Default::default()
    };
    let access = args.hub.access()?;
    let mut hub = JoinTokensClient::new(access.connect(Some(DECIDES)).await?);
    let answer = hub.create(request(create)).await;
    let answer = answer.map_err(|status| failed(&status))?.into_inner();
    let pin = <[u8; 32]>::try_from(answer.pin.as_slice());
    let pin =
        KeyFingerprint(pin.map_err(|_| anyhow::anyhow!("the hub's answer has no pin: update the hub"))?);
    let doors = match args.join_addresses {
        given if !given.is_empty() => given,
        _ => {
            let port = u16::try_from(answer.join_port).unwrap_or_default();
            let at = |hub: &HubAddress| HubAddress { port, ..hub.clone() };
            access.hubs.iter().map(at).collect()
        }
    };
    let texts = |addresses: &[HubAddress]| addresses.iter().map(ToString::to_string).collect();
    let join = JoinString {
        doors: texts(&doors),
        hubs: texts(&access.hubs),
        pin,
        token,
    };
    let Some(text) = join.encode() else {
        bail!("more addresses than a join string takes: give fewer --hub or --join-address");
    };
    let until = print::time(answer.expires_at.as_ref());
    Ok(match args.hub.output {
        output if output.is_document() => output.document(
            &json!({"id": answer.id, "clusterIds": scope.to_string(), "uses": args.uses, "expiresAt": until, "joinString": text})
        ),
        _ => {
            let uses = match args.uses {
                1 => "once".to_owned(),
                uses => format!("{uses} times"),
            };
            let id = answer.id;
            let said = format!(
                "{text}\n\nToken {id} is good for {scope}, {uses} until {until}. Whoever has the line above can join \
                with it; it is not shown again.\n"
            );
            said + &next(&scope)
        }
    })
}

/// The next step in the cluster that joins.
fn next(scope: &TokenScope) -> String {
    let cluster = match scope {
        TokenScope::Id(id) => Some(id),
        TokenScope::Pattern(_) => None,
    };
    let (secret, values) = (advice::kubectl_join_secret(), advice::join_values(cluster));
    let run = advice::agent_join(cluster);
    format!(
        "Next, in the cluster, with the line above in FILE. With the agent's chart:\n  {secret}\nand the values\n  {values}\n\
         Without the chart:\n  {run}\n"
    )
}

async fn list(args: ListArgs) -> anyhow::Result<String> {
    let mut hub = JoinTokensClient::new(connect(&args.hub, None).await?);
    let answer = hub.list(request(v1::ListJoinTokensRequest::default())).await;
    let tokens = answer.map_err(|status| failed(&status))?.into_inner().tokens;
    if args.hub.output.is_document() {
        let tokens: Vec<_> = tokens.iter().map(as_json).collect();
        return Ok(args.hub.output.document(&json!({ "tokens": tokens })));
    }
    if tokens.is_empty() {
        let create = advice::token_create("my-cluster");
        return Ok(format!("No tokens. One is made with:\n  {create}\n"));
    }
    let mut text = format!(
        "{:<18}{:<24}{:<10}{:<26}{:<10}{}\n",
        "TOKEN", "CLUSTER IDS", "USED", "EXPIRES", "REVOKED", "BY"
    );
    for token in &tokens {
        let revoked = if token.revoked_at.is_some() { "yes" } else { "no" };
        let used = format!("{} of {}", token.used.len(), token.uses);
        let expires = print::time(token.expires_at.as_ref());
        let line = format!(
            "{:<18}{:<24}{used:<10}{expires:<26}{revoked:<10}{}",
            token.id, token.cluster_ids, token.operator
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(text)
}

fn as_json(token: &v1::JoinTokenState) -> serde_json::Value {
    let used = token.used.iter().map(|used| {
        json!({"cluster": used.cluster, "keyFingerprint": used.key_fingerprint, "at": print::time(used.used_at.as_ref())})
    });
    json!({
        "id": token.id,
        "clusterIds": token.cluster_ids,
        "uses": token.uses,
        "operator": token.operator,
        "createdAt": print::time(token.created_at.as_ref()),
        "expiresAt": print::time(token.expires_at.as_ref()),
        "revoked": token.revoked_at.is_some(),
        "used": used.collect::<Vec<_>>(),
    })
}

async fn revoke(args: RevokeArgs) -> anyhow::Result<String> {
    let RevokeArgs { token, decision } = args;
    let revoke = v1::RevokeJoinTokenRequest {
        id: token.clone(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = JoinTokensClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.revoke(request(revoke)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_token_revoke(&token, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        scope: ScopeArgs,
    }

    #[test]
    fn who_may_join_is_an_id_or_a_pattern_and_the_refusal_names_both() {
        use clap::Parser;
        for typed in [
            &["x"][..],
            &["x", "--cluster-id", "east", "--id-pattern", "prod-*"],
        ] {
            let error = Typed::try_parse_from(typed)
                .expect_err("none or both")
                .to_string();
            assert!(
                error.contains("--cluster-id") && error.contains("--id-pattern"),
                "{error}"
            );
        }
        let typed = Typed::try_parse_from(["x", "--cluster-id", "east"]).expect("one");
        let text = next(&typed.scope.cluster_id.expect("an id"));
        for line in [
            "clusterId=east",
            "--cluster-id east",
            "join.secretName=tributary-join",
            "--from-file=join=FILE",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(next(&pattern("prod-*").expect("a pattern")).contains("--cluster-id ID"));
    }
}
