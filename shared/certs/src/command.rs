//! `tributary-hub certs`: the flags, what is written, and what to do next.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use shared::model::{ClusterId, Clusterset, advice};

use super::{
    authority::{CertificateAuthority, Subject},
    files::{Directory, read_authority},
    validity::Validity,
};

/// Name of the clusterset unless another is asked for.
const DEFAULT_CLUSTERSET: &str = "default";
/// Most days that a certificate can be asked to be valid: a hundred years.
const DAYS_MAX: i64 = 36_500;

/// Make a certificate authority and certificates.
#[derive(Debug, Args)]
pub struct CertsArgs {
    #[command(subcommand)]
    command: CertsCommand,
}

#[derive(Debug, Subcommand)]
enum CertsCommand {
    /// Make a certificate authority: once per clusterset
    #[command(long_about = "Make a certificate authority: once per clusterset.\n\n\
        Its certificate (ca.crt) goes to the hub and every member; its key (ca.key) admits new members, so keep \
        it off both and in a safe place.\n\n\
        Example:\n  tributary-hub certs ca --out certs --clusterset default")]
    Ca(CaArgs),
    /// Issue the hub's certificate
    #[command(long_about = "Issue the hub's certificate.\n\n\
        Agents check the identity in it, not its names; tools such as grpcurl check the names.\n\n\
        Example:\n  tributary-hub certs hub --ca certs --dns-name hub.example.org --ip 192.0.2.10")]
    Hub(HubArgs),
    /// Issue a member cluster's certificate
    #[command(
        long_about = "Issue a member cluster's certificate. It admits the cluster to the clusterset, and the id in \
            it is the cluster's id from then on.\n\n\
        Example:\n  tributary-hub certs member --ca certs --cluster-id east"
    )]
    Member(MemberArgs),
    /// Make the authority that signs for joining clusters
    #[command(
        long_about = "Make the authority that signs for joining clusters. It is an intermediate of the CA. Its own \
            certificate says that it signs members' certificates only, so the hub can have its key: whoever steals \
            it cannot make a hub or an operator.\n\n\
        Example:\n  tributary-hub certs joining --ca certs"
    )]
    Joining(JoiningArgs),
    /// Issue a certificate for a person or a tool, to inspect the clusterset and manage its members
    #[command(
        long_about = "Issue a certificate for a person or a tool, to inspect the clusterset and manage \
        its members.\n\n\
        Example:\n  tributary-hub certs operator --ca certs --name alice\n  \
        grpcurl -cacert certs/ca.crt -cert certs/alice.crt -key certs/alice.key HOST:PORT list"
    )]
    Operator(OperatorArgs),
    /// Issue a certificate for a person or a tool that reads the clusterset and decides nothing
    #[command(
        long_about = "Issue a certificate for a person or a tool that reads: members, exports, imports, the policy and the \
        event log. It cannot decide, try a decision or copy the log: it is for a dashboard, or for a colleague who \
        only looks.\n\n\
        Example:\n  tributary-hub certs reader --ca certs --name dashboard\n  \
        tributary member list --hub https://HUB:8443 --tls-ca certs/ca.crt \\\n    \
        --tls-cert certs/dashboard.crt --tls-key certs/dashboard.key"
    )]
    Reader(ReaderArgs),
}

#[derive(Debug, Args)]
struct CaArgs {
    /// Directory for ca.crt and ca.key; made if missing
    #[arg(long, env = "TRIBUTARY_CERTS_OUT", value_name = "DIR")]
    out: PathBuf,
    /// Name of the clusterset to issue for (a DNS label); `default`, or that of --replaces, unless given
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME")]
    clusterset: Option<String>,
    /// Trust domain of all identities (a DNS name); a fresh one unless given
    #[arg(long, env = "TRIBUTARY_TRUST_DOMAIN", value_name = "DOMAIN")]
    trust_domain: Option<String>,
    /// Days until the authority expires
    #[arg(
        long,
        env = "TRIBUTARY_CERTS_CA_DAYS",
        value_name = "DAYS",
        default_value_t = Validity::AUTHORITY_DAYS,
        value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX)
    )]
    days: u32,
    /// Directory of the authority that the new one replaces, for the same trust domain and clusterset: it vouches for the
    /// new one, without which agents that renew their certificates do not trust it
    #[arg(long, env = "TRIBUTARY_CERTS_REPLACES", value_name = "DIR", conflicts_with_all = ["trust_domain"])]
    replaces: Option<PathBuf>,
    /// Replace existing files. Certificates of the old authority are refused under the new one
    #[arg(long)]
    force: bool,
}

/// The flags that all but `ca` share.
#[derive(Debug, Args)]
struct IssueArgs {
    /// Directory with the authority's ca.crt and ca.key
    #[arg(long, env = "TRIBUTARY_CERTS_CA", value_name = "DIR")]
    ca: PathBuf,
    /// Directory for the certificate and its key; the authority's unless given
    #[arg(long, env = "TRIBUTARY_CERTS_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Name of the clusterset; the one that the authority was made for unless given
    #[arg(long, env = "TRIBUTARY_CLUSTERSET", value_name = "NAME")]
    clusterset: Option<String>,
    /// Trust domain; needed only with an authority that `certs ca` did not make
    #[arg(long, env = "TRIBUTARY_TRUST_DOMAIN", value_name = "DOMAIN")]
    trust_domain: Option<String>,
    /// Days until the certificate expires; it ends with the authority at the latest
    #[arg(
        long,
        env = "TRIBUTARY_CERTS_DAYS",
        value_name = "DAYS",
        default_value_t = Validity::LEAF_DAYS,
        value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX)
    )]
    days: u32,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct HubArgs {
    /// Name of the hub (a DNS label)
    #[arg(long, env = "TRIBUTARY_HUB_NAME", value_name = "NAME", default_value = "hub")]
    name: String,
    /// DNS names that tools reach the hub by; several with commas or by repeating the flag
    #[arg(
        long = "dns-name",
        env = "TRIBUTARY_HUB_DNS_NAMES",
        value_name = "NAME",
        value_delimiter = ','
    )]
    dns_names: Vec<String>,
    /// IP addresses that tools reach the hub by. Without names and addresses: localhost, 127.0.0.1, ::1
    #[arg(
        long = "ip",
        env = "TRIBUTARY_HUB_IPS",
        value_name = "IP",
        value_delimiter = ','
    )]
    ips: Vec<IpAddr>,
    #[command(flatten)]
    issue: IssueArgs,
}

#[derive(Debug, Args)]
struct MemberArgs {
    /// Id of the cluster (a DNS label), unique in the clusterset. If the cluster has the ClusterProperty
    /// cluster.clusterset.k8s.io, take its value
    #[arg(long, env = "TRIBUTARY_CLUSTER_ID", value_name = "ID", value_parser = cluster_id)]
    cluster_id: ClusterId,
    #[command(flatten)]
    issue: IssueArgs,
}

#[derive(Debug, Args)]
struct JoiningArgs {
    #[command(flatten)]
    issue: IssueArgs,
}

#[derive(Debug, Args)]
struct OperatorArgs {
    /// Name of the person or tool (a DNS label); decisions are recorded under it
    #[arg(long, env = "TRIBUTARY_OPERATOR_NAME", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    issue: IssueArgs,
}

#[derive(Debug, Args)]
struct ReaderArgs {
    /// Name of the person or tool (a DNS label)
    #[arg(long, env = "TRIBUTARY_READER_NAME", value_name = "NAME")]
    name: String,
    #[command(flatten)]
    issue: IssueArgs,
}

/// Runs the command and returns what to tell the user.
pub fn run(args: CertsArgs) -> anyhow::Result<String> {
    match args.command {
        CertsCommand::Ca(args) => make_authority(args),
        CertsCommand::Hub(args) => issue_hub(args),
        CertsCommand::Member(args) => {
            let MemberArgs { cluster_id, issue } = args;
            let next = |files: &Files| {
                format!(
                    "Next: give the three files to the cluster's agent and nobody else:\n  {}\n",
                    advice::agent_run(&files.flags())
                )
            };
            issue_subject(&issue, &Subject::Member(cluster_id), next)
        }
        CertsCommand::Joining(args) => make_joining(&args.issue),
        CertsCommand::Operator(args) => {
            let OperatorArgs { name, issue } = args;
            issue_subject(&issue, &Subject::Operator(name), ask_with)
        }
        CertsCommand::Reader(args) => {
            let ReaderArgs { name, issue } = args;
            issue_subject(&issue, &Subject::Reader(name), ask_with)
        }
    }
}

/// The next step with the hub.
fn ask_with(files: &Files) -> String {
    let Files { ca, cert, key } = files;
    format!("Next:\n  grpcurl -cacert {ca} -cert {cert} -key {key} HOST:PORT list\n")
}

/// Paths of what a process needs for TLS.
struct Files {
    ca: String,
    cert: String,
    key: String,
}

impl Files {
    fn flags(&self) -> String {
        advice::tls_flags(&self.ca, &self.cert, &self.key)
    }
}

fn make_authority(args: CaArgs) -> anyhow::Result<String> {
    let CaArgs {
        out,
        clusterset,
        trust_domain,
        days,
        replaces,
        force,
    } = args;
    let validity = Validity::days_from_now(days);
    let authority = match &replaces {
        Some(old) => read_authority(old, None, clusterset.as_deref())?.successor(validity)?,
        None => {
            let domain =
                trust_domain.unwrap_or_else(|| format!("tributary-{:016x}.internal", rand::random::<u64>()));
            let set = clusterset.as_deref().unwrap_or(DEFAULT_CLUSTERSET);
            CertificateAuthority::generate(&Clusterset::new(&domain, set)?, validity)?
        }
    };
    let trust_domain = authority.clusterset().trust_domain();
    let [cert, key] = Directory::open(&out, force)?.write_authority(&authority)?;
    let (set, last_day) = (authority.clusterset().name(), authority.validity().last_day());
    let (cert, key, out) = (cert.display(), key.display(), out.display().to_string());
    if let Some(old) = replaces {
        let (old, joining) = (old.display(), advice::certs_joining(&out));
        return Ok(format!(
            "Made an authority for clusterset {set} in trust domain {trust_domain}, valid until {last_day}. The one in {old} \
             vouches for it.\n  {cert}  to add to what hub and members trust, beside {old}/ca.crt\n  {key}  keep it secret and \
             away from both: it admits members\nNext, once the hub trusts both:\n  {joining} --out {old} --force\n"
        ));
    }
    Ok(format!(
        "Made an authority for clusterset {set} in trust domain {trust_domain}, valid until {last_day}.\n  \
         {cert}  for the hub and every member\n  \
         {key}  keep it secret and away from both: it admits members\n\
         Next:\n  \
         {}\n  {}\n  {}\n",
        advice::certs_hub(&out),
        advice::certs_member(&out, None),
        advice::certs_operator(&out)
    ))
}

fn issue_hub(args: HubArgs) -> anyhow::Result<String> {
    let HubArgs {
        name,
        mut dns_names,
        mut ips,
        issue,
    } = args;
    if dns_names.is_empty() && ips.is_empty() {
        dns_names.push("localhost".to_owned());
        ips = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    let subject = Subject::Hub { name, dns_names, ips };
    issue_subject(&issue, &subject, |files| {
        format!("Next:\n  {}\n", advice::hub_serve(&files.flags()))
    })
}

fn make_joining(args: &IssueArgs) -> anyhow::Result<String> {
    let authority = read_authority(&args.ca, args.trust_domain.as_deref(), args.clusterset.as_deref())?;
    let joining = authority.members_only(Validity::days_from_now(args.days))?;
    let directory = Directory::open(args.out.as_deref().unwrap_or(&args.ca), args.force)?;
    directory.ensure_ca(&authority)?;
    let [cert, key] = directory.write_joining(&joining)?;
    let (cert, key) = (cert.display(), key.display());
    Ok(format!(
        "Made an authority for members of clusterset {} only, valid until {}.\n  {cert}\n  {key}  keep it secret: it \
         admits members\nNext: give both to the hub, and have it let clusters join:\n  tributary-hub serve … \
         --join-listen 0.0.0.0:8444 --join-cert {cert} --join-key {key}\n",
        authority.clusterset().name(),
        joining.validity.last_day(),
    ))
}

fn issue_subject(
    args: &IssueArgs,
    subject: &Subject,
    next: impl FnOnce(&Files) -> String,
) -> anyhow::Result<String> {
    let authority = read_authority(&args.ca, args.trust_domain.as_deref(), args.clusterset.as_deref())?;
    let issued = authority.issue(subject, Validity::days_from_now(args.days))?;
    let directory = Directory::open(args.out.as_deref().unwrap_or(&args.ca), args.force)?;
    let ca = directory.ensure_ca(&authority)?;
    let [cert, key] = directory.write_issued(&issued)?;
    let text = |path: &Path| path.display().to_string();
    let files = Files {
        ca: text(&ca),
        cert: text(&cert),
        key: text(&key),
    };
    let Files { cert, key, .. } = &files;
    Ok(format!(
        "Issued a certificate for {}, valid until {}.\n  {cert}\n  {key}  keep it secret\n{}",
        issued.identity,
        issued.validity.last_day(),
        next(&files)
    ))
}

fn cluster_id(text: &str) -> Result<ClusterId, String> {
    ClusterId::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
