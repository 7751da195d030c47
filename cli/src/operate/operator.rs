//! `tributary operator revoke` and `tributary reader revoke`: what is decided about the certificates of people and
//! tools.

use clap::{Args, Subcommand};
use client::{failed, request};
use proto::v1::{self, membership_client::MembershipClient};
use shared::model::{advice, name::is_dns_label};

use super::{decision::DecisionArgs, hub_args::connect, member::key_fingerprint, print};

/// The right that only operators have.
const DECIDES: &str = "decides about certificates";

/// Decide about operators' certificates.
#[derive(Debug, Args)]
pub struct OperatorArgs {
    #[command(subcommand)]
    command: OperatorCommand,
}

/// Decide about readers' certificates.
#[derive(Debug, Args)]
pub struct ReaderArgs {
    #[command(subcommand)]
    command: ReaderCommand,
}

#[derive(Debug, Subcommand)]
enum OperatorCommand {
    /// Refuse the key of an operator's certificate for ever
    #[command(
        long_about = "Refuse the key of an operator's certificate for ever: because it was stolen, or its holder \
            must not decide any more. From then on the hub refuses calls with it, and ends its watches. Other \
            certificates of the same name stay valid. You cannot revoke the key that you use.\n\n\
        The key fingerprint is the sha256 of the public key.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary operator revoke bob 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    --hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Revoke(RevokeArgs),
}

#[derive(Debug, Subcommand)]
enum ReaderCommand {
    /// Refuse the key of a reader's certificate for ever
    #[command(
        long_about = "Refuse the key of a reader's certificate for ever: because it was stolen, or its holder must \
            not read any more. From then on the hub refuses calls with it, and ends its watches. Other certificates \
            of the same name stay valid.\n\n\
        The key fingerprint is the sha256 of the public key.\n\n\
        Without --confirm it shows what would happen and changes nothing.\n\n\
        Example:\n  tributary reader revoke dashboard 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    --hub https://HUB:8443 --tls-ca ca.crt --tls-cert operator.crt --tls-key operator.key"
    )]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name in the certificate
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// sha256 of the public key (64 hexadecimal digits)
    #[arg(value_name = "SHA256", value_parser = key_fingerprint)]
    revoked: String,
    #[command(flatten)]
    decision: DecisionArgs,
}

fn name(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("write the last part of the URI in the certificate, an RFC 1123 DNS label".to_owned())
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: OperatorArgs) -> anyhow::Result<String> {
    let OperatorCommand::Revoke(RevokeArgs {
        name,
        revoked: key,
        decision,
    }) = args.command;
    let revoke = v1::RevokeOperatorRequest {
        name: name.clone(),
        key_fingerprint: key.clone(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.revoke_operator(request(revoke)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_operator_revoke(&name, &key, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}

/// The same of readers.
pub(super) async fn run_reader(args: ReaderArgs) -> anyhow::Result<String> {
    let ReaderCommand::Revoke(RevokeArgs {
        name,
        revoked: key,
        decision,
    }) = args.command;
    let revoke = v1::RevokeReaderRequest {
        name: name.clone(),
        key_fingerprint: key.clone(),
        confirm: decision.confirm,
        ..Default::default()
    };
    let mut hub = MembershipClient::new(connect(&decision.hub, Some(DECIDES)).await?);
    let answer = hub.revoke_reader(request(revoke)).await;
    let answer = answer.map_err(|status| failed(&status))?;
    let again = advice::confirm_reader_revoke(&name, &key, &decision.hub.typed());
    Ok(print::decision(answer.get_ref(), &again, decision.hub.output))
}
