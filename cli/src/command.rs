//! The command line.
//! It holds what was typed; the modules that are called with it give it a meaning.

use clap::{Parser, Subcommand};
use completion::{CompletionArgs, ManArgs};

use crate::{
    context::command::ContextCommand,
    doctor::DoctorArgs,
    operate::{EventsArgs, GatherArgs, MemberArgs, OperatorArgs, PolicyArgs, ReaderArgs, TokenArgs},
    setup,
    show::{ExplainArgs, GetArgs, StatusArgs},
};

/// The client of a Tributary clusterset
#[derive(Debug, Parser)]
#[command(
    name = "tributary",
    version,
    long_about = "The client of a Tributary clusterset.\n\n\
        It asks the hub over mutual TLS, with the certificate of an operator or a reader. A context remembers the address \
        and the certificate:\n  \
        tributary context set prod --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/alice.crt --tls-key certs/alice.key\n  \
        tributary status\n\n\
        Flags and environment variables override the context. As kubectl-tributary in a directory of PATH it is also \
        `kubectl tributary`.\n\n\
        Exit codes: 0 the command did its work, 1 it failed, 2 the arguments are wrong or incomplete."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// All commands of the client.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Commands that make a clusterset, add clusters to it, and remove both.
    #[command(flatten)]
    Setup(setup::Command),
    /// Show members, the state of the clusterset, and what needs attention
    #[command(
        long_about = "Show members, the state of the clusterset, and what needs attention: each problem with the next \
        step.\n\n\
        With --check the exit code is 1 if there is a problem.\n\n\
        Example:\n  tributary status"
    )]
    Status(StatusArgs),
    /// List members, exports, imports, profiles or the slices of a service
    #[command(
        long_about = "List members, exports, imports, profiles or the slices of a service.\n\n\
        A table shows the columns that fit the terminal; -o wide shows all. -o json prints the hub's answer with the names \
        of the protocol, as grpcurl does.\n\n\
        Examples:\n  tributary get exports --namespace shop\n  tributary get slices shop/cart\n  \
        tributary get imports -o json"
    )]
    Get(Box<GetArgs>),
    /// Explain why an import looks as it does, and where it arrived
    #[command(
        long_about = "Explain why an import looks as it does, or why there is none: the exports in order of precedence, \
        which of them decides each property, what is refused, the clusters in which it arrived, and the recorded events.\n\n\
        With --topology it explains a Cluster of Cluster API instead.\n\n\
        Examples:\n  tributary explain shop/cart\n  tributary explain shop/cart --cluster west\n  \
        tributary explain --topology prod/east"
    )]
    Explain(Box<ExplainArgs>),
    /// Verify that clusters reach a service of each other: names, connections, latency
    #[command(
        long_about = "Verify that clusters reach a service of each other: from each cluster, for each cluster that exports it \
        and each IP family, the name resolves, the clusterset IP and the pods behind it open connections, and how long that \
        takes. What is broken is named, with the next step.\n\n\
        A pod for some seconds looks from inside each cluster. It has the image of the agent there, runs in the namespace of \
        the service, meets the restricted Pod Security Standard, and is removed at the end and after Ctrl-C; the next run \
        removes what a killed one left. Clusters that joined from this machine are known; --cluster names the context of \
        others. Your user needs the rights to create, get, list and delete pods, and to read imports there.\n\n\
        Without a service every exported one is verified, at most 20.\n\n\
        NAME is the DNS name, IP the clusterset IP whichever cluster answers, ENDPOINTS the pods of TO themselves; TCP ports \
        only.\n\n\
        Exit code 0 if everything works, 1 if something is broken, 2 if nothing that was seen is broken and something could \
        not be checked.\n\n\
        Examples:\n  tributary verify shop/cart\n  tributary verify shop/cart --from west --to east\n  \
        tributary verify shop/cart --cluster west=admin@west -o json"
    )]
    Verify(Box<setup::VerifyArgs>),
    /// Show and change the contexts
    #[command(subcommand)]
    Context(ContextCommand),
    /// See the members and decide about them
    #[command(
        long_about = "See the members and decide about them, with an operator's certificate; a reader's lists them.\n\n\
        Every decision is a dry run first: without --confirm the command prints what would happen, and the command \
        that confirms it. Each decision is an event of the log, with the operator's name.\n\n\
        Example:\n  \
        tributary member list --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Member(MemberArgs),
    /// Decide about operators' certificates
    #[command(
        long_about = "Decide about operators' certificates, with an operator's certificate.\n\n\
        Every decision is a dry run first: without --confirm the command prints what would happen, and the command \
        that confirms it.\n\n\
        Example:\n  \
        tributary operator revoke bob 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    \
        --hub https://HUB:8443 --tls-ca certs/ca.crt --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Operator(OperatorArgs),
    /// Decide about readers' certificates
    #[command(
        long_about = "Decide about readers' certificates, with an operator's certificate.\n\n\
        Every decision is a dry run first: without --confirm the command prints what would happen, and the command \
        that confirms it.\n\n\
        Example:\n  \
        tributary reader revoke dashboard 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \\\n    \
        --hub https://HUB:8443 --tls-ca certs/ca.crt --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Reader(ReaderArgs),
    /// Make, list and revoke the tokens with which clusters join
    #[command(
        long_about = "Make, list and revoke the tokens with which clusters join, with an operator's certificate.\n\n\
        A cluster that joins with a token makes its own key and receives a certificate for it: nobody carries keys \
        around. The hub must run with --join-listen.\n\n\
        Example:\n  \
        tributary token create --cluster-id east --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Token(TokenArgs),
    /// See the policy of the clusterset and decide about it
    #[command(
        long_about = "See the policy of the clusterset and decide about it: what each member may export, the ranges \
            of its endpoints' addresses, and which export of a service comes first. It is one YAML document; \
            docs/guides/policy.md has an example.\n\n\
        Every decision is a dry run first: without --confirm the command prints what would happen, and the command \
        that confirms it.\n\n\
        Example:\n  \
        tributary policy test policy.yaml --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Policy(PolicyArgs),
    /// Show the events of the log
    #[command(
        long_about = "Show the events of the log, a page at a time, oldest first.\n\n\
        Times are those at which the hub recorded the events, by its own clock.\n\n\
        Example:\n  \
        tributary events --since 10m --namespace shop --hub https://HUB:8443 \\\n    \
        --tls-ca certs/ca.crt --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Events(Box<EventsArgs>),
    /// Collect what a maintainer needs to help, without keys
    #[command(
        long_about = "Collect what a maintainer needs to help, without keys, with an operator's or a reader's \
        certificate.\n\n\
        The directory has the hub's view of its members and their services, the policy, and recent events: within a \
        minute, and 48 MiB. Private keys and tokens are removed; names and addresses stay in it. Add what the doctor on \
        the hub's host says, and the hub's log lines.\n\n\
        Example:\n  \
        tributary gather --out gathered --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/alice.crt --tls-key certs/alice.key"
    )]
    Gather(Box<GatherArgs>),
    /// Find faults between this machine and the hub, each with its fix
    #[command(
        long_about = "Find faults between this machine and the hub, each with its fix: the certificate, and each \
            address of the hub: name, port, TLS, one call, clock.\n\n\
        Exit code 0 if nothing is wrong, 1 if there is a fault, 2 if there is none but something could not be \
        checked.\n\n\
        Example:\n  tributary doctor"
    )]
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    #[command(long_about = "Print the completions of a shell.\n\n\
        Examples:\n  tributary completion bash")]
    Completion(CompletionArgs),
    /// Write the manual pages into a directory
    #[command(
        long_about = "Write the manual pages into a directory, one for each command.\n\n\
        Example:\n  tributary man --out man1"
    )]
    Man(ManArgs),
}

#[cfg(test)]
mod tests;
