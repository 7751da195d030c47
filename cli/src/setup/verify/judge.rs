//! The verdict on the results: a row for each service, cluster, cluster and family, and each fault with the next step.
//! Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use agent::probe::TIMED_OUT;
use serde::Serialize;
use shared::{
    doctor::report::{EXIT_FAULT, EXIT_FINE, EXIT_UNSEEN},
    model::ServiceKey,
};

use super::{
    next::{self, Between},
    seen::{Asked, Exported, Family, Found, From, Import, Outcome, Unseen, name_of},
};

/// The state of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Failed,
    /// There is nothing to look at.
    None,
}

/// One service, from one cluster, to one cluster, in one family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) service: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) family: &'static str,
    /// The name resolves to the addresses of the import.
    pub(super) name: State,
    /// Connections to the clusterset IP open, whichever cluster answers.
    pub(super) ip: State,
    /// Connections to the endpoints of `to` open.
    pub(super) endpoints: State,
    /// Of the fastest of these connections.
    pub(super) latency_micros: Option<u64>,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weight {
    /// Something is broken.
    Fault,
    /// Something could not be looked at.
    Unseen,
    /// Somebody may want to know.
    Note,
}

/// The finding, and the next step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Finding {
    pub(super) weight: Weight,
    pub(super) about: String,
    pub(super) what: String,
    pub(super) next: String,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) rows: Vec<Row>,
    /// Faults first; none twice.
    pub(super) findings: Vec<Finding>,
}

impl Verdict {
    /// 0 if everything works, 1 if something is broken, 2 if nothing that was seen is broken and something, or everything,
    /// could not be looked at.
    pub(super) fn exit_code(&self) -> u8 {
        let has = |weight| self.findings.iter().any(|finding| finding.weight == weight);
        match (has(Weight::Fault), has(Weight::Unseen) || self.rows.is_empty()) {
            (true, _) => EXIT_FAULT,
            (false, true) => EXIT_UNSEEN,
            (false, false) => EXIT_FINE,
        }
    }

    fn find(&mut self, weight: Weight, about: impl Into<String>, (what, next): (String, String)) {
        self.findings.push(Finding {
            weight,
            about: about.into(),
            what,
            next,
        });
    }
}

/// Judges what was seen. `contexts` are those of the kubeconfig by cluster; `named` are the clusters that `--from` names.
pub(super) fn judge(
    asked: &[Asked],
    from: &[From],
    contexts: &BTreeMap<String, String>,
    named: &BTreeSet<String>,
) -> Verdict {
    let mut verdict = Verdict::default();
    if asked.is_empty() {
        verdict.find(Weight::Unseen, "clusterset", next::nothing_exported());
    }
    for asked in asked {
        exports(asked, contexts, &mut verdict);
    }
    for from in from {
        match &from.found {
            Err(Unseen { why, next }) => {
                let told = (why.clone(), next.clone());
                verdict.find(Weight::Unseen, &from.cluster, told);
            }
            Ok(found) => {
                for asked in asked {
                    let one = One {
                        asked,
                        from,
                        contexts,
                        named: named.contains(&from.cluster),
                    };
                    one.judge(found.get(&asked.service), &mut verdict);
                }
            }
        }
    }
    verdict.findings.sort();
    verdict.findings.dedup();
    verdict
}

/// The faults that the hub knows of.
fn exports(asked: &Asked, contexts: &BTreeMap<String, String>, verdict: &mut Verdict) {
    let service = &asked.service;
    if asked.exports.is_empty() {
        let told = next::exported_nowhere(service);
        verdict.find(Weight::Fault, service.to_string(), told);
    }
    for export in &asked.exports {
        let context = contexts.get(&export.cluster).map(String::as_str);
        let told = match export {
            Exported {
                is_exported: false, ..
            } => next::not_exported(service, &export.cluster, context),
            Exported { denial, .. } if !denial.is_empty() => next::denied(service, &export.cluster, denial),
            Exported { endpoints: 0, .. } => next::without_endpoints(service, &export.cluster, context),
            _ => continue,
        };
        verdict.find(Weight::Fault, service.to_string(), told);
    }
}

/// One service from one cluster.
struct One<'a> {
    asked: &'a Asked,
    from: &'a From,
    contexts: &'a BTreeMap<String, String>,
    named: bool,
}

impl One<'_> {
    fn service(&self) -> &ServiceKey {
        &self.asked.service
    }

    fn about(&self) -> String {
        format!("{} from {}", self.service(), self.from.cluster)
    }

    /// The exports that should answer.
    fn sources(&self) -> impl Iterator<Item = &Exported> {
        let all = self.asked.exports.iter();
        all.filter(|export| export.should_answer())
    }

    fn judge(&self, found: Option<&Found>, verdict: &mut Verdict) {
        let (service, cluster) = (self.service(), &self.from.cluster);
        if self.sources().next().is_none() {
            return;
        }
        let import = match found {
            Some(Found::Import(import)) => import,
            Some(Found::NoNamespace) => {
                let weight = if self.named { Weight::Fault } else { Weight::Note };
                let told = next::without_namespace(service, cluster, &self.from.context);
                return verdict.find(weight, self.about(), told);
            }
            Some(Found::NoImport) | None => {
                return verdict.find(Weight::Fault, self.about(), next::not_imported(service, cluster));
            }
        };
        match self.from.ran.get(service) {
            Some(Ok(outcome)) => self.seen(import, outcome, verdict),
            Some(Err(Unseen { why, next })) => {
                verdict.find(Weight::Unseen, cluster, (why.clone(), next.clone()));
            }
            None => {}
        }
    }

    fn seen(&self, import: &Import, outcome: &Outcome, verdict: &mut Verdict) {
        let mut rows = Vec::new();
        for export in self.sources() {
            let families = self.families(import, &export.cluster, outcome, verdict);
            for family in families {
                if let Some(row) = self.row((import, outcome), &export.cluster, family, verdict) {
                    rows.push(row);
                }
            }
        }
        for family in Family::ALL {
            let mut own: Vec<&mut Row> = rows
                .iter_mut()
                .filter(|row| row.family == family.name())
                .collect();
            if own.is_empty() {
                continue;
            }
            let name = self.name((import, outcome), family, verdict);
            let all_open = own.iter().all(|row| row.endpoints == State::Ok);
            let ip = self.front((import, outcome), family, all_open, verdict);
            for row in &mut own {
                (row.name, row.ip) = (name, ip);
            }
        }
        verdict.rows.extend(rows);
    }

    /// The families in which a source is reached from here.
    fn families(
        &self,
        import: &Import,
        source: &str,
        outcome: &Outcome,
        verdict: &mut Verdict,
    ) -> BTreeSet<Family> {
        let theirs = import.families(source);
        let own: BTreeSet<Family> = if import.headless {
            outcome.families.clone()
        } else {
            import.ips.iter().map(|ip| Family::of(*ip)).collect()
        };
        let common: BTreeSet<Family> = theirs.intersection(&own).copied().collect();
        let context = self.contexts.get(source).map(String::as_str);
        if theirs.is_empty() {
            let has_any = import.endpoints.get(source).is_some_and(|all| !all.is_empty());
            let told = if has_any {
                next::none_ready(self.service(), source, context)
            } else {
                next::endpoints_missing(self.service(), source, &self.from.cluster)
            };
            verdict.find(Weight::Fault, self.about(), told);
        } else if common.is_empty() {
            let told = next::no_common_family(source, &theirs, &self.from.cluster, &own);
            verdict.find(Weight::Fault, self.about(), told);
        }
        common
    }

    /// A row without name and IP; `None` if there is nothing to dial.
    fn row(
        &self,
        (import, outcome): (&Import, &Outcome),
        source: &str,
        family: Family,
        verdict: &mut Verdict,
    ) -> Option<Row> {
        let dialled = import.behind(source, family);
        if dialled.is_empty() {
            verdict.find(
                Weight::Unseen,
                self.about(),
                next::no_tcp_port(self.service(), source),
            );
            return None;
        }
        let between = Between {
            service: self.service(),
            from: &self.from.cluster,
            to: source,
            to_context: self.contexts.get(source).map(String::as_str),
        };
        let mut latency: Option<u64> = None;
        let mut failed = false;
        for at in dialled {
            match outcome.dials.get(&at) {
                Some(Ok(micros)) => latency = Some(latency.map_or(*micros, |best| best.min(*micros))),
                Some(Err(why)) => {
                    failed = true;
                    let about = format!("{} to {source}, {}", self.about(), family.name());
                    verdict.find(Weight::Fault, about, between.closed(at, why));
                }
                None => failed = true,
            }
        }
        Some(Row {
            service: self.service().to_string(),
            from: self.from.cluster.clone(),
            to: source.to_owned(),
            family: family.name(),
            name: State::None,
            ip: State::None,
            endpoints: if failed { State::Failed } else { State::Ok },
            latency_micros: latency,
        })
    }

    /// The name in a family: it must resolve to the clusterset IP, or to endpoints of a headless service.
    fn name(&self, (import, outcome): (&Import, &Outcome), family: Family, verdict: &mut Verdict) -> State {
        let name = name_of(self.service());
        let cluster = &self.from.cluster;
        let about = format!("{}, {}", self.about(), family.name());
        let answer = outcome.names.get(&format!("{name}."));
        let found = match answer {
            Some(Ok(found)) => found,
            Some(Err(why)) => {
                let told = next::unresolved(&name, why, cluster, &self.from.context);
                verdict.find(Weight::Fault, self.about(), told);
                return State::Failed;
            }
            None => return State::None,
        };
        let own: Vec<String> = found
            .iter()
            .filter(|address| Family::of(**address) == family)
            .map(ToString::to_string)
            .collect();
        let wanted: BTreeSet<String> = if import.headless {
            let all = import.endpoints.values().flatten();
            all.map(|endpoint| endpoint.address.to_string()).collect()
        } else {
            import.ips.iter().map(ToString::to_string).collect()
        };
        if !own.is_empty() && own.iter().all(|address| wanted.contains(address)) {
            return State::Ok;
        }
        let told = next::other_answer(&name, &own, cluster, &self.from.context);
        verdict.find(Weight::Fault, about, told);
        State::Failed
    }

    /// The clusterset IP in a family. Where endpoints fail, it fails because of them.
    fn front(
        &self,
        (import, outcome): (&Import, &Outcome),
        family: Family,
        all_open: bool,
        verdict: &mut Verdict,
    ) -> State {
        let mut state = State::None;
        let fronts = import
            .fronts()
            .filter(|at: &SocketAddr| Family::of(at.ip()) == family);
        for at in fronts {
            match outcome.dials.get(&at) {
                Some(Ok(_)) if state == State::None => state = State::Ok,
                Some(Ok(_)) | None => {}
                Some(Err(why)) => {
                    state = State::Failed;
                    if all_open {
                        let told =
                            next::front_closed(at, why == TIMED_OUT, &self.from.cluster, &self.from.context);
                        let about = format!("{}, {}", self.about(), family.name());
                        verdict.find(Weight::Fault, about, told);
                    }
                }
            }
        }
        state
    }
}

#[cfg(test)]
mod tests;
