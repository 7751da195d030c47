//! Which services are verified, from and to which clusters. Pure.

use std::collections::{BTreeMap, BTreeSet};

use proto::v1::{MemberState, RecordedExport, SourceState};
use shared::model::ServiceKey;

use super::{
    args::VerifyArgs,
    seen::{Asked, Exported},
};

/// Most services that are verified when none is named.
pub(super) const SERVICES_MAX: usize = 20;

/// The services, by name, and how many more are exported than are verified.
pub(super) fn services(exports: &[RecordedExport], args: &VerifyArgs) -> (Vec<Asked>, usize) {
    let mut services: BTreeMap<ServiceKey, Vec<Exported>> = BTreeMap::new();
    if let Some(service) = &args.service {
        services.insert(service.clone(), Vec::new());
    }
    for recorded in exports {
        let Some(service) = key(recorded) else { continue };
        if args.service.as_ref().is_some_and(|only| *only != service) {
            continue;
        }
        services.entry(service).or_default().push(Exported {
            cluster: recorded.cluster.clone(),
            is_exported: true,
            denial: denial(recorded),
            endpoints: recorded.endpoints,
        });
    }
    let to: BTreeSet<&str> = args.to.iter().map(|id| id.as_str()).collect();
    let mut asked: Vec<Asked> = services
        .into_iter()
        .map(|(service, exports)| Asked {
            service,
            exports: wanted(exports, &to, args.service.is_some()),
        })
        .filter(|asked| args.service.is_some() || !asked.exports.is_empty())
        .collect();
    let left_out = asked.len().saturating_sub(SERVICES_MAX);
    asked.truncate(SERVICES_MAX);
    (asked, left_out)
}

/// The exports of the clusters that `--to` names, and those that it names in vain if one service is asked for.
fn wanted(exports: Vec<Exported>, to: &BTreeSet<&str>, named: bool) -> Vec<Exported> {
    if to.is_empty() {
        return exports;
    }
    let mut wanted: Vec<Exported> = exports
        .into_iter()
        .filter(|export| to.contains(export.cluster.as_str()))
        .collect();
    let there: BTreeSet<String> = wanted.iter().map(|export| export.cluster.clone()).collect();
    let missing = to.iter().filter(|id| named && !there.contains(**id));
    wanted.extend(missing.map(|id| Exported {
        cluster: (*id).to_owned(),
        ..Exported::default()
    }));
    wanted
}

fn key(recorded: &RecordedExport) -> Option<ServiceKey> {
    let service = recorded.export.as_ref()?.service.as_ref()?;
    ServiceKey::new(&service.namespace, &service.name).ok()
}

fn denial(recorded: &RecordedExport) -> String {
    match (recorded.denial_reason.as_str(), recorded.denial_message.as_str()) {
        ("", _) => String::new(),
        (reason, "") => reason.to_owned(),
        (_, message) => message.to_owned(),
    }
}

/// The clusters from which connections are opened: those of `--from`, or all live members.
pub(super) fn from(members: &[MemberState], args: &VerifyArgs) -> Vec<String> {
    if !args.from.is_empty() {
        let named: BTreeSet<String> = args.from.iter().map(ToString::to_string).collect();
        return named.into_iter().collect();
    }
    let live = members
        .iter()
        .filter(|member| member.state() == SourceState::SourceLive);
    live.map(|member| member.cluster.clone()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proto::v1;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: VerifyArgs,
    }

    fn args(words: &[&str]) -> VerifyArgs {
        let line = std::iter::once("verify").chain(words.iter().copied());
        Line::try_parse_from(line).expect("a command line").args
    }

    fn export(cluster: &str, name: &str) -> RecordedExport {
        RecordedExport {
            cluster: cluster.to_owned(),
            export: Some(v1::Export {
                service: Some(v1::ServiceKey {
                    namespace: "shop".to_owned(),
                    name: name.to_owned(),
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn shown((asked, left_out): (Vec<Asked>, usize)) -> String {
        let each = asked.iter().map(|asked| {
            let to = asked.exports.iter().map(|export| {
                let not = if export.is_exported { "" } else { "!" };
                format!("{not}{}", export.cluster)
            });
            format!("{}:{}", asked.service.name, to.collect::<Vec<_>>().join(","))
        });
        format!("{} +{left_out}", each.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_is_exported_is_verified() {
        let exports = [
            export("west", "cart"),
            export("east", "cart"),
            export("east", "web"),
        ];
        let asked = |words: &[&str]| shown(services(&exports, &args(words)));
        assert_eq!(asked(&[]), "cart:west,east web:east +0");
        assert_eq!(asked(&["shop/cart"]), "cart:west,east +0");
        assert_eq!(asked(&["shop/nothing"]), "nothing: +0");
        assert_eq!(asked(&["--to", "west"]), "cart:west +0");
        assert_eq!(
            asked(&["shop/web", "--to", "east", "--to", "west"]),
            "web:east,!west +0"
        );
    }

    #[test]
    fn services_have_a_bound() {
        let exports: Vec<_> = (0..SERVICES_MAX + 3)
            .map(|number| export("east", &format!("s{number}")))
            .collect();
        let (asked, left_out) = services(&exports, &args(&[]));
        assert_eq!((asked.len(), left_out), (SERVICES_MAX, 3));
    }

    #[test]
    fn connections_are_opened_from_live_members() {
        let member = |cluster: &str, state: SourceState| MemberState {
            cluster: cluster.to_owned(),
            state: state.into(),
            ..Default::default()
        };
        let members = [
            member("east", SourceState::SourceLive),
            member("gone", SourceState::SourceLeft),
        ];
        assert_eq!(from(&members, &args(&[])), ["east"]);
        assert_eq!(from(&members, &args(&["--from", "west,east"])), ["east", "west"]);
    }
}
