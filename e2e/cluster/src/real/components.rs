//! Owns: the command lines of etcd, kube-apiserver and kube-controller-manager.
//! Never: starts them.

use super::options::Options;
use std::path::Path;

/// Megabytes at which the API server would begin a new audit log: the reader expects one file.
const AUDIT_LOG_MEGABYTES_MAX: u32 = 4096;
/// Requests per second a controller manager may send: tests delete whole namespaces and wait for it.
const CONTROLLERS_REQUESTS_PER_SECOND: u32 = 200;
/// The controllers that users of a cluster see the work of, and that need no nodes.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,endpointslice-controller";

/// Every request with who, what and the answer's code, once it is answered. The API server's requests to
/// itself and probes for readiness are left out, for they are many; those of our programs are not, for nothing that
/// they ask may be denied.
pub(super) const AUDIT_POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: Metadata
  userGroups: ["system:serviceaccounts:tributary-system"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
"#;

/// The files of one cluster, all below its directory.
pub(super) struct Files<'a> {
    pub(super) directory: &'a Path,
}

impl Files<'_> {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

pub(super) fn etcd(directory: &Path, client_port: u16, peer_port: u16, options: &Options) -> Vec<String> {
    let client = format!("http://127.0.0.1:{client_port}");
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut flags = vec![
        "--name=fleet".to_owned(),
        format!("--data-dir={}", directory.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=fleet={peer}"),
        "--socket-reuse-port=true".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    if !options.sync_to_disk {
        flags.push("--unsafe-no-fsync=true".to_owned());
    }
    flags
}

pub(super) fn apiserver(
    cluster: &str,
    files: &Files<'_>,
    etcd_port: u16,
    port: u16,
    service_ranges: &str,
) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--etcd-prefix=/{cluster}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--permit-port-sharing=true".to_owned(),
        format!("--tls-cert-file={}", files.path("apiserver.crt")),
        format!("--tls-private-key-file={}", files.path("apiserver.key")),
        format!("--client-ca-file={}", files.path("ca.crt")),
        format!("--service-account-key-file={}", files.path("service-account.pub")),
        format!(
            "--service-account-signing-key-file={}",
            files.path("service-account.key")
        ),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-cluster-ip-range={service_ranges}"),
        "--authorization-mode=RBAC".to_owned(),
        // Without a token controller no Pod could have the token this plugin asks for.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        // A loopback address may not be an endpoint.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--audit-policy-file={}", files.path("audit-policy.yaml")),
        format!("--audit-log-path={}", files.path("audit.log")),
        format!("--audit-log-maxsize={AUDIT_LOG_MEGABYTES_MAX}"),
        "--audit-log-mode=blocking".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

pub(super) fn controllers(kubeconfig: &Path) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--controllers={CONTROLLERS}"),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--use-service-account-credentials=false".to_owned(),
        format!("--kube-api-qps={CONTROLLERS_REQUESTS_PER_SECOND}"),
        format!("--kube-api-burst={}", 2 * CONTROLLERS_REQUESTS_PER_SECOND),
        "--profiling=false".to_owned(),
    ]
}
