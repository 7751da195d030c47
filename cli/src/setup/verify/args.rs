//! The flags of `verify`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use shared::model::{ClusterId, ServiceKey, name::is_dns_label};

use super::super::args::duration;
use crate::operate::HubArgs;

/// The flags of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Service to verify; every exported one unless given
    #[arg(value_name = "NAMESPACE/SERVICE", value_parser = service)]
    pub(super) service: Option<ServiceKey>,
    /// Cluster from which connections are opened; repeat it for several, all live members unless given
    #[arg(long, env = "TRIBUTARY_FROM", value_name = "ID", value_delimiter = ',', value_parser = ClusterId::new)]
    pub(super) from: Vec<ClusterId>,
    /// Cluster whose pods must answer; repeat it for several, all that export the service unless given
    #[arg(long, env = "TRIBUTARY_TO", value_name = "ID", value_delimiter = ',', value_parser = ClusterId::new)]
    pub(super) to: Vec<ClusterId>,
    /// Context of the kubeconfig for a cluster that did not join from this machine
    #[arg(long = "cluster", env = "TRIBUTARY_CLUSTERS", value_name = "ID=CONTEXT", value_delimiter = ',', value_parser = cluster)]
    pub(super) clusters: Vec<(String, String)>,
    /// Kubeconfig with the contexts of --cluster; that of kubectl unless given
    #[arg(long, env = "TRIBUTARY_KUBECONFIG", value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Namespace for the pods; that of the service unless given, or the agent's if its image needs a pull secret
    #[arg(long, short, env = "TRIBUTARY_VERIFY_NAMESPACE", value_name = "NAMESPACE", value_parser = label)]
    pub(super) namespace: Option<String>,
    /// Image with tributary-agent for the pods; that of the agent in each cluster unless given
    #[arg(long, env = "TRIBUTARY_VERIFY_IMAGE", value_name = "IMAGE")]
    pub(super) image: Option<String>,
    /// The longest that a pod is waited for, as 90s or 5m
    #[arg(long, env = "TRIBUTARY_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(super) timeout: Duration,
    #[command(flatten)]
    pub(super) hub: HubArgs,
}

fn service(text: &str) -> Result<ServiceKey, String> {
    let (namespace, name) = text
        .split_once('/')
        .ok_or("write NAMESPACE/SERVICE, such as shop/cart")?;
    ServiceKey::new(namespace, name).map_err(|error| error.to_string())
}

fn cluster(text: &str) -> Result<(String, String), String> {
    let (id, context) = text
        .split_once('=')
        .filter(|(_, context)| !context.is_empty())
        .ok_or("write ID=CONTEXT, such as east=admin@east")?;
    let id = ClusterId::new(id).map_err(|error| error.to_string())?;
    Ok((id.to_string(), context.to_owned()))
}

fn label(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        return Ok(text.to_owned());
    }
    Err("write a DNS label: a-z, 0-9 and '-', at most 63 characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_an_id_and_a_context() {
        assert_eq!(
            cluster("east=admin@east"),
            Ok(("east".to_owned(), "admin@east".to_owned()))
        );
        assert!(cluster("east").is_err() && cluster("east=").is_err() && cluster("a b=c").is_err());
        assert!(service("cart").is_err() && service("shop/cart").is_ok());
    }
}
