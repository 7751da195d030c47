//! Owns: what travels between clusters that Tributary joins: every row asks from a pod and says who must answer.
//! Never: reads what Tributary says of itself.

use anyhow::Context;

use super::{
    client::{Answer, Answers, Asking, Pod, Protocol, export, shown},
    configuration::TOOLS_IMAGE,
    control::wait_for,
    labelled,
    layout::{Directory, ZONES},
    row::{Asked, Row, Verdict},
    running::Running,
};

/// Pods and Services.
const OBJECTS: &str = include_str!("../traffic.yaml");
/// Their namespace.
pub(super) const NAMESPACE: &str = "traffic";
/// The Services that every cluster exports.
const EVERYWHERE: [&str; 6] = ["echo", "conflict", "renamed", "sticky", "on-node", "in-zone"];
/// The one that only the last cluster exports, though all have it.
const PARTIAL: &str = "partial";
/// The port of most Services.
const PORT: u16 = 80;

/// Puts pods and Services into every cluster, exports them, and asks.
pub(super) fn traffic(directory: &Directory, asked: Asked) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let planes = running.planes();
    let clusters = planes.iter().map(|plane| Asking {
        plane,
        namespace: NAMESPACE,
    });
    let clusters: Vec<Asking<'_>> = clusters.collect();
    for (number, cluster) in clusters.iter().enumerate() {
        let port = usize::from(PORT) + number;
        let objects = OBJECTS
            .replace("@IMAGE@", TOOLS_IMAGE)
            .replace("@CLUSTER@", &cluster.plane.name)
            .replace("@PORT@", &port.to_string());
        cluster.plane.apply(&objects, "traffic.yaml")?;
    }
    for cluster in &clusters {
        for wanted in ["deployment/echo", "daemonset/client"] {
            cluster.kubectl(&["rollout", "status", wanted, "--timeout=120s"])?;
        }
    }
    let mut traffic = Traffic {
        answering: answering(&clusters)?,
        clusters,
        asked,
        rows: 0,
    };
    traffic.export()?;
    let mut wanted = ROWS.into_iter().filter(|row| asked.wants(*row));
    wanted.try_for_each(|row| traffic.ask(row))?;
    println!(
        "{} rows hold on {} clusters",
        traffic.rows,
        traffic.clusters.len()
    );
    Ok(())
}

/// A pod that answers, and where it runs.
struct Answering {
    answer: Answer,
    node: String,
    zone: String,
}

fn answering(clusters: &[Asking<'_>]) -> anyhow::Result<Vec<Answering>> {
    let mut all = Vec::new();
    for cluster in clusters {
        for Pod { name, node } in cluster.pods("echo")? {
            all.push(Answering {
                zone: zone(&node)?.to_owned(),
                node,
                answer: Answer {
                    cluster: cluster.plane.name.clone(),
                    pod: name,
                },
            });
        }
    }
    Ok(all)
}

/// The zone of a node, which is told by its number.
fn zone(node: &str) -> anyhow::Result<&'static str> {
    let number = node
        .rsplit('n')
        .next()
        .and_then(|number| number.parse::<usize>().ok());
    let zone = number.and_then(|number| ZONES.get(number.wrapping_sub(1)));
    zone.copied()
        .with_context(|| format!("{node} is no node of ours"))
}

/// The rows, in this order.
const ROWS: [Row; 8] = [
    Row::Echo,
    Row::Partial,
    Row::Conflict,
    Row::Renamed,
    Row::Labelled,
    Row::Sticky,
    Row::OnNode,
    Row::InZone,
];

/// Everybody who asks and answers.
struct Traffic<'a> {
    clusters: Vec<Asking<'a>>,
    answering: Vec<Answering>,
    asked: Asked,
    rows: usize,
}

impl Traffic<'_> {
    fn ask(&mut self, row: Row) -> anyhow::Result<()> {
        match row {
            Row::Echo => self.all_answer(),
            Row::Partial => self.only_the_exporter_answers(),
            Row::Conflict => self.only_who_won_answers(),
            Row::Renamed => self.all_answer_at_a_renamed_port(),
            Row::Labelled => self.an_edit_of_metadata_is_not_noticed(),
            Row::Sticky => self.one_pod_stays(),
            Row::OnNode => self.stays_on_the_node(),
            Row::InZone => self.stays_in_the_zone(),
            // Asked by `names.rs` and `churn`.
            Row::Names | Row::Churn => Ok(()),
        }
    }

    fn export(&self) -> anyhow::Result<()> {
        for cluster in &self.clusters {
            EVERYWHERE
                .iter()
                .try_for_each(|service| export(cluster, service))?;
            // Who exports first wins, and times are whole seconds: what won must be seen before the next one exports.
            if cluster.plane.name == self.first() {
                export(cluster, labelled::SERVICE)?;
                wait_for("the first exports are in force", &cluster.plane.directory, || {
                    EVERYWHERE.iter().all(|service| is_imported(cluster, service))
                })?;
                let created = cluster.field("serviceexport/conflict", ".metadata.creationTimestamp")?;
                later_than(created.first().context("an export has its time")?)?;
            }
        }
        let last = self.clusters.last().context("there are clusters")?;
        export(last, PARTIAL)
    }

    fn first(&self) -> &str {
        &self.clusters[0].plane.name
    }

    fn who(&self, wanted: impl Fn(&Answering) -> bool) -> Answers {
        let who = self.answering.iter().filter(|one| wanted(one));
        who.map(|one| one.answer.clone()).collect()
    }

    /// One row: from a node, at all addresses of a service, these and no others answer.
    fn row(
        &mut self,
        what: &str,
        from: (usize, &str),
        addresses: &str,
        protocol: Protocol,
        wanted: &dyn Fn(&Answers) -> Verdict,
    ) -> anyhow::Result<()> {
        let (cluster, node) = from;
        let cluster = &self.clusters[cluster];
        let client = cluster.client(node)?;
        let (object, path) = addresses.split_once(' ').context("an object and a field")?;
        let mut found = Vec::new();
        wait_for(
            &format!("{object} has addresses"),
            &cluster.plane.directory,
            || cluster.field(object, path).is_ok_and(|found| !found.is_empty()),
        )?;
        for address in cluster.field(object, path)? {
            let said = format!("{what}, asked from {node} at {address} by {protocol}");
            self.asked.until(&said, &cluster.plane.directory, || {
                let answers = cluster.answers(&client, &address, PORT, protocol)?;
                Ok(wanted(&answers))
            })?;
            found.push(address);
        }
        println!("{node}: {what}: {} by {protocol}", found.join(" and "));
        self.rows += found.len();
        Ok(())
    }

    /// Every node of every cluster with its cluster's place.
    fn nodes(&self) -> anyhow::Result<Vec<(usize, String)>> {
        let mut nodes = Vec::new();
        for (number, cluster) in self.clusters.iter().enumerate() {
            nodes.extend(cluster.pods("client")?.into_iter().map(|pod| (number, pod.node)));
        }
        nodes.sort();
        Ok(nodes)
    }

    fn all_answer(&mut self) -> anyhow::Result<()> {
        let all = self.who(|_| true);
        for (cluster, node) in self.nodes()? {
            for protocol in [Protocol::Tcp, Protocol::Udp] {
                self.row(
                    "pods of all clusters answer for echo",
                    (cluster, &node),
                    "serviceimport/echo .spec.ips[*]",
                    protocol,
                    &|answers| exactly(answers, &all),
                )?;
            }
        }
        Ok(())
    }

    fn only_the_exporter_answers(&mut self) -> anyhow::Result<()> {
        let last = self.clusters.last().map(|cluster| cluster.plane.name.clone());
        let exporter = self.who(|one| Some(&one.answer.cluster) == last.as_ref());
        for (cluster, node) in self.nodes()? {
            self.row(
                "a service that all have is answered by the one that exports it",
                (cluster, &node),
                "serviceimport/partial .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &exporter),
            )?;
            let name = self.clusters[cluster].plane.name.clone();
            let own = self.who(|one| one.answer.cluster == name);
            self.row(
                "the local Service of that name is answered by the cluster's own pods",
                (cluster, &node),
                "service/partial .spec.clusterIPs[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &own),
            )?;
        }
        Ok(())
    }

    fn only_who_won_answers(&mut self) -> anyhow::Result<()> {
        let winner = self.first().to_owned();
        let won = self.who(|one| one.answer.cluster == winner);
        for (cluster, node) in self.nodes()? {
            self.row(
                "a port in conflict is answered by the cluster whose definition won",
                (cluster, &node),
                "serviceimport/conflict .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &won),
            )?;
        }
        Ok(())
    }

    fn all_answer_at_a_renamed_port(&mut self) -> anyhow::Result<()> {
        let all = self.who(|_| true);
        for (cluster, node) in self.nodes()? {
            self.row(
                "a port that each cluster names differently is answered by pods of all",
                (cluster, &node),
                "serviceimport/renamed .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &all),
            )?;
        }
        Ok(())
    }

    fn an_edit_of_metadata_is_not_noticed(&mut self) -> anyhow::Result<()> {
        self.the_first_answers("the only cluster that exports a service answers")?;
        labelled::edit(&self.clusters, self.asked)?;
        self.the_first_answers("it still answers after an edit of its labels and annotations")?;
        labelled::undo(&self.clusters)
    }

    fn the_first_answers(&mut self, what: &str) -> anyhow::Result<()> {
        let first = self.first().to_owned();
        let own = self.who(|one| one.answer.cluster == first);
        for (cluster, node) in self.nodes()? {
            self.row(
                what,
                (cluster, &node),
                "serviceimport/labelled .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &own),
            )?;
        }
        Ok(())
    }

    fn one_pod_stays(&mut self) -> anyhow::Result<()> {
        let all = self.who(|_| true);
        for (cluster, node) in self.nodes()? {
            self.row(
                "session affinity keeps a client with one pod",
                (cluster, &node),
                "serviceimport/sticky .spec.ips[*]",
                Protocol::Tcp,
                &|answers| {
                    if answers.len() == 1 && answers.is_subset(&all) {
                        Ok(())
                    } else {
                        Err(format!("{} answered", shown(answers)))
                    }
                },
            )?;
        }
        Ok(())
    }

    fn stays_on_the_node(&mut self) -> anyhow::Result<()> {
        for (cluster, node) in self.nodes()? {
            let on_node = self.who(|one| one.node == node);
            self.row(
                "internalTrafficPolicy Local stays on the node",
                (cluster, &node),
                "serviceimport/on-node .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &on_node),
            )?;
        }
        Ok(())
    }

    fn stays_in_the_zone(&mut self) -> anyhow::Result<()> {
        for (cluster, node) in self.nodes()? {
            let own = zone(&node)?;
            let in_zone = self.who(|one| one.zone == own);
            self.row(
                "trafficDistribution stays in the zone, across clusters",
                (cluster, &node),
                "serviceimport/in-zone .spec.ips[*]",
                Protocol::Tcp,
                &|answers| exactly(answers, &in_zone),
            )?;
        }
        Ok(())
    }
}

fn exactly(answers: &Answers, wanted: &Answers) -> Verdict {
    if answers == wanted {
        Ok(())
    } else {
        Err(format!(
            "{} answered instead of {}",
            shown(answers),
            shown(wanted)
        ))
    }
}

fn is_imported(cluster: &Asking<'_>, service: &str) -> bool {
    let import = cluster.field(&format!("serviceimport/{service}"), ".status.clusters[*].cluster");
    import.is_ok_and(|clusters| !clusters.is_empty())
}

/// Waits until the second after a time has begun: an export made in the same one is not younger.
fn later_than(time: &str) -> anyhow::Result<()> {
    let time: jiff::Timestamp = time.parse().with_context(|| format!("{time} is no time"))?;
    let later = time.checked_add(std::time::Duration::from_secs(1))?;
    // The clock itself is what is waited for.
    while let Ok(left) = std::time::Duration::try_from(later.duration_since(jiff::Timestamp::now())) {
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left);
    }
    Ok(())
}
