//! Owns: the names of a clusterset: every row of the multicluster DNS specification, asked from pods of every cluster
//! through their own CoreDNS.
//! Never: asks a name server that pods do not ask, or that no guide adds.

use std::net::IpAddr;

use anyhow::Context;
use cluster::charts;

use super::{
    client::{Asking, Pod, export},
    configuration::{COREDNS_IMAGE, TOOLS_IMAGE},
    control::wait_for,
    dns::{self, Said},
    layout::Directory,
    row::Asked,
    running::Running,
};

/// Pods and Services.
const OBJECTS: &str = include_str!("../names.yaml");
/// Their namespace.
pub(super) const NAMESPACE: &str = "names";
/// The Services that every cluster exports.
const EXPORTED: [&str; 4] = ["web", "set", "plain", "never"];
/// The zone of the clusterset, below it the namespace.
const ZONE: &str = "names.svc.clusterset.local";
/// The namespace, Deployment and Service of a server of the zone alone.
const SERVER: &str = "tributary-dns";
/// CoreDNS's schema version: of cluster DNS, where the specification of multicluster DNS says 1.0.0.
const SCHEMA: &str = "TXT \"1.1.0\"";

/// Puts Services into every cluster, exports them, and asks for every name.
pub(super) fn names(directory: &Directory, asked: Asked) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let planes = running.planes();
    let clusters: Vec<Asking<'_>> = planes
        .iter()
        .map(|plane| Asking {
            plane,
            namespace: NAMESPACE,
        })
        .collect();
    for cluster in &clusters {
        let objects = OBJECTS.replace("@IMAGE@", TOOLS_IMAGE);
        cluster.plane.apply(&objects, "names.yaml")?;
        EXPORTED.iter().try_for_each(|service| export(cluster, service))?;
    }
    for cluster in &clusters {
        for wanted in ["statefulset/set", "daemonset/client"] {
            cluster.kubectl(&["rollout", "status", wanted, "--timeout=120s"])?;
        }
    }
    let members: Vec<Vec<Member>> = clusters.iter().map(members).collect::<anyhow::Result<_>>()?;
    let members: Vec<Member> = members.into_iter().flatten().collect();
    let mut rows = 0;
    for (index, cluster) in clusters.iter().enumerate() {
        let names = Names {
            asked,
            client: cluster.pods("client")?.remove(0),
            cluster,
        };
        rows += names.all(&members)?;
        if index == 0 {
            rows += names.of_a_server_of_its_own()?;
        }
    }
    println!("{rows} names are right, asked from {} clusters", clusters.len());
    Ok(())
}

/// A pod of the StatefulSet.
struct Member {
    cluster: String,
    name: String,
    addresses: Vec<IpAddr>,
}

impl Member {
    /// Its name in the clusterset.
    fn host(&self) -> String {
        format!("{}.{}.set.{ZONE}", self.name, self.cluster)
    }
}

fn members(cluster: &Asking<'_>) -> anyhow::Result<Vec<Member>> {
    let member = |pod: Pod| {
        Ok(Member {
            cluster: cluster.plane.name.clone(),
            addresses: addresses(cluster, &format!("pod/{}", pod.name), ".status.podIPs[*].ip")?,
            name: pod.name,
        })
    };
    cluster.pods("set")?.into_iter().map(member).collect()
}

fn addresses(cluster: &Asking<'_>, object: &str, path: &str) -> anyhow::Result<Vec<IpAddr>> {
    let parse = |text: String| text.parse().with_context(|| format!("{text} is no address"));
    cluster.field(object, path)?.into_iter().map(parse).collect()
}

/// The records of a family.
fn records<'a>(kind: &str, addresses: impl IntoIterator<Item = &'a IpAddr>) -> Vec<String> {
    let of_kind = addresses
        .into_iter()
        .filter(|address| address.is_ipv4() == (kind == "A"));
    of_kind.map(|address| format!("{kind} {address}")).collect()
}

/// A cluster that is asked.
struct Names<'a> {
    asked: Asked,
    cluster: &'a Asking<'a>,
    client: Pod,
}

impl Names<'_> {
    /// Every row; how many there were.
    fn all(&self, members: &[Member]) -> anyhow::Result<usize> {
        let mut rows = self.of_the_clusterset_ip()?;
        rows += self.of_headless(members)?;
        rows += self.of_nobody()?;
        rows += self.of_the_cluster()?;
        println!("{}: {rows} names", self.cluster.plane.name);
        Ok(rows)
    }

    fn row(&self, name: &str, kind: &str, wanted: &Said) -> anyhow::Result<usize> {
        let ask = || match kind {
            "PTR" => dns::ask_back(self.cluster, &self.client, name),
            _ => dns::ask(self.cluster, &self.client, name, kind),
        };
        let asked = format!("{name} {kind}, asked in {}", self.cluster.plane.name);
        self.asked.until(&asked, &self.cluster.plane.directory, || {
            let said = ask()?;
            Ok(if said == *wanted {
                Ok(())
            } else {
                Err(format!("{} instead of {}", said.shown(), wanted.shown()))
            })
        })?;
        Ok(1)
    }

    fn of_the_clusterset_ip(&self) -> anyhow::Result<usize> {
        wait_for("web has a clusterset IP", &self.cluster.plane.directory, || {
            self.cluster
                .field("serviceimport/web", ".spec.ips[*]")
                .is_ok_and(|found| !found.is_empty())
        })?;
        let ips = addresses(self.cluster, "serviceimport/web", ".spec.ips[*]")?;
        let name = format!("web.{ZONE}");
        let mut rows = self.row(
            "dns-version.clusterset.local",
            "TXT",
            &Said::records([SCHEMA.into()]),
        )?;
        for kind in ["A", "AAAA"] {
            rows += self.row(&name, kind, &Said::records(records(kind, &ips)))?;
        }
        for (port, number) in [("_http._tcp", 80), ("_query._udp", 53)] {
            let target = Said::records([format!("SRV {number} {name}.")]);
            rows += self.row(&format!("{port}.{name}"), "SRV", &target)?;
        }
        Ok(rows)
    }

    fn of_headless(&self, members: &[Member]) -> anyhow::Result<usize> {
        let name = format!("set.{ZONE}");
        let mut rows = 0;
        for kind in ["A", "AAAA"] {
            let all = members.iter().flat_map(|member| &member.addresses);
            rows += self.row(&name, kind, &Said::records(records(kind, all)))?;
            for member in members {
                let own = Said::records(records(kind, &member.addresses));
                rows += self.row(&member.host(), kind, &own)?;
            }
        }
        let targets = members.iter().map(|member| format!("SRV 80 {}.", member.host()));
        rows += self.row(&format!("_http._tcp.{name}"), "SRV", &Said::records(targets))?;
        Ok(rows)
    }

    /// The server that guides add where a cluster's own cannot answer the zone.
    fn of_a_server_of_its_own(&self) -> anyhow::Result<usize> {
        let plane = self.cluster.plane;
        let file = charts::root().join("deploy/coredns/server/server.yaml");
        let manifest = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let published = manifest
            .lines()
            .find_map(|line| line.trim().strip_prefix("image: "));
        let manifest = manifest.replace(published.context("the server has an image")?, COREDNS_IMAGE);
        plane.apply(&manifest, "server.yaml")?;
        let server = Asking {
            plane,
            namespace: SERVER,
        };
        let deployment = format!("deployment/{SERVER}");
        server.kubectl(&["rollout", "status", &deployment, "--timeout=120s"])?;
        let ips = addresses(self.cluster, "serviceimport/web", ".spec.ips[*]")?;
        let name = format!("web.{ZONE}");
        let mut rows = 0;
        for address in addresses(&server, &format!("service/{SERVER}"), ".spec.clusterIPs[*]")? {
            for kind in ["A", "AAAA"] {
                let wanted = Said::records(records(kind, &ips));
                let asked = format!("{name} {kind}, asked of {address} in {}", plane.name);
                self.asked.until(&asked, &plane.directory, || {
                    let said = dns::ask_at(self.cluster, &self.client, address, (&name, kind))?;
                    Ok(if said == wanted {
                        Ok(())
                    } else {
                        Err(format!("{} instead of {}", said.shown(), wanted.shown()))
                    })
                })?;
                rows += 1;
            }
        }
        let file = file.to_string_lossy();
        plane.kubectl(&["delete", "--filename", &file, "--timeout=120s"])?;
        Ok(rows)
    }

    /// Names that must not be there.
    fn of_nobody(&self) -> anyhow::Result<usize> {
        let cluster = &self.cluster.plane.name;
        let mut rows = 0;
        for name in [
            format!("never.{ZONE}"),
            format!("home.{ZONE}"),
            format!("nothing.{ZONE}"),
            format!("{cluster}.web.{ZONE}"),
            format!("{cluster}.set.{ZONE}"),
            "web.elsewhere.svc.clusterset.local".to_owned(),
        ] {
            for kind in ["A", "AAAA"] {
                rows += self.row(&name, kind, &Said::no_such_name())?;
            }
        }
        rows += self.row(&format!("_http._tcp.plain.{ZONE}"), "SRV", &Said::no_such_name())?;
        Ok(rows)
    }

    /// Checks that the cluster's own zone answers as before.
    fn of_the_cluster(&self) -> anyhow::Result<usize> {
        let own = addresses(self.cluster, "service/web", ".spec.clusterIPs[*]")?;
        let name = "web.names.svc.cluster.local";
        let mut rows = 0;
        for kind in ["A", "AAAA"] {
            rows += self.row(name, kind, &Said::records(records(kind, &own)))?;
        }
        for address in own {
            let back = Said::records([format!("PTR {name}.")]);
            rows += self.row(&address.to_string(), "PTR", &back)?;
        }
        Ok(rows)
    }
}
