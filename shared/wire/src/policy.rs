//! The policy of a clusterset ↔ the document that says it, and the decisions that come of it ↔ protobuf.
//!
//! A document is read strictly, once by the hub that is given it and again wherever the log is replayed: what one
//! `apiVersion` meant it means for ever, and what is to mean something else gets another one.

mod brake;

use std::sync::Arc;

use proto::v1::{self, fact::Fact as ProtoFact};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    common::{Taken, cluster_from_proto, required, service_key_from_proto, service_key_to_proto},
    export::{created_at_from_proto, created_at_to_proto},
};
use model::{
    Fact, Policy, Precedence, PrecedenceClaim,
    name::is_dns_label,
    policy::{
        AddressRange, BudgetRule, ENTRIES_MAX, LOSS_DETECTED_MILLIS, LOSS_MILLIS_MAX, Limit, Loss,
        LossAction, MemberRule, POLICY_BRACKETS_MAX, POLICY_BYTES_MAX, Pattern, RECORDED_POLICY_BYTES_MAX,
        RULES_MAX, ServiceRule,
    },
    validate::{self, InvalidValue},
};

/// The one version there is.
pub const POLICY_API_VERSION: &str = "tributary.dev/v1alpha1";
/// The document's kind.
pub const POLICY_KIND: &str = "ClustersetPolicy";
/// The policy before one was applied: everything is as KEP-1645 has it.
pub const DEFAULT_POLICY: &str = "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec: {}\n";

/// A text that is no policy, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy is not taken: {0}")]
pub struct InvalidPolicy(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Document {
    api_version: String,
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    precedence: Order,
    #[serde(default, deserialize_with = "stated")]
    loss: Option<LossRule>,
    #[serde(default, deserialize_with = "stated")]
    brake: Option<brake::BrakeRule>,
    #[serde(default)]
    members: Vec<Rule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
enum Order {
    #[default]
    Oldest,
    Incumbent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LossRule {
    #[serde(default)]
    action: Action,
    #[serde(default, deserialize_with = "stated")]
    after: Option<String>,
    #[serde(default, deserialize_with = "stated")]
    self_preservation: Option<SelfPreservation>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
enum Action {
    #[default]
    Withdraw,
    NotReady,
    Retain,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SelfPreservation {
    #[serde(default, deserialize_with = "stated")]
    percent: Option<u8>,
    #[serde(default, deserialize_with = "stated")]
    longest: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rule {
    name: String,
    members: Vec<String>,
    #[serde(default, deserialize_with = "stated")]
    exports: Option<Vec<Services>>,
    #[serde(default, deserialize_with = "stated")]
    endpoints: Option<Vec<String>>,
    #[serde(default, deserialize_with = "stated")]
    imports: Option<Vec<Services>>,
    #[serde(default, deserialize_with = "stated")]
    budget: Option<Limits>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Limits {
    #[serde(default, deserialize_with = "stated")]
    exports: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    endpoint_slices: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    endpoints: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    properties: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    fact_bytes: Option<u64>,
    #[serde(default, deserialize_with = "stated")]
    events_per_minute: Option<u64>,
}

impl Limits {
    fn most(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::Exports => self.exports,
            Limit::EndpointSlices => self.endpoint_slices,
            Limit::Endpoints => self.endpoints,
            Limit::Properties => self.properties,
            Limit::FactBytes => self.fact_bytes,
            Limit::EventsPerMinute => self.events_per_minute,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Services {
    namespaces: Vec<String>,
    #[serde(default, deserialize_with = "stated")]
    services: Option<Vec<String>>,
}

/// Refuses an empty value (`exports:` and nothing behind it), most likely a mistake: it is neither an empty list nor
/// absent.
fn stated<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let stated: Option<T> = Option::deserialize(deserializer)?;
    let empty =
        || D::Error::custom("a field is left empty: write what is meant ([] for nothing), or take it out");
    stated.ok_or_else(empty).map(Some)
}

/// Reads a document that is to be applied. Its bounds are checked before it is parsed, so that no document takes
/// more than a moment.
///
/// # Errors
///
/// [`InvalidPolicy`], which says where it is wrong and what would do.
pub fn read_policy(document: &str) -> Result<Policy, InvalidPolicy> {
    at_most_bytes(document, POLICY_BYTES_MAX)?;
    let brackets = document
        .bytes()
        .filter(|byte| matches!(byte, b'[' | b'{'))
        .count();
    if brackets > POLICY_BRACKETS_MAX {
        return Err(InvalidPolicy(format!(
            "it has {brackets} opening brackets, and at most {POLICY_BRACKETS_MAX} are taken: write lists with one \
             entry on a line (- ENTRY)"
        )));
    }
    parse(document)
}

/// Reads a document that was recorded: what was taken when it was applied is taken for ever.
///
/// # Errors
///
/// [`InvalidPolicy`], which says where it is wrong.
pub fn read_recorded_policy(document: &str) -> Result<Policy, InvalidPolicy> {
    at_most_bytes(document, RECORDED_POLICY_BYTES_MAX)?;
    parse(document)
}

fn at_most_bytes(document: &str, most: usize) -> Result<(), InvalidPolicy> {
    if document.len() <= most {
        return Ok(());
    }
    Err(InvalidPolicy(format!(
        "it has {} bytes, and at most {most} are taken: use patterns, or fewer comments",
        document.len()
    )))
}

fn parse(document: &str) -> Result<Policy, InvalidPolicy> {
    let read: Document = serde_norway::from_str(document).map_err(|error| in_one_line(&error.to_string()))?;
    for (field, said, meant) in [
        ("apiVersion", &read.api_version, POLICY_API_VERSION),
        ("kind", &read.kind, POLICY_KIND),
    ] {
        if said != meant {
            let problem = format!("is {}; this hub reads {meant}", validate::shown(said));
            return Err(InvalidValue::new(field, problem).into());
        }
    }
    Ok(Policy {
        document: document.into(),
        precedence: match read.spec.precedence {
            Order::Oldest => Precedence::Oldest,
            Order::Incumbent => Precedence::Incumbent,
        },
        loss: loss(read.spec.loss).map_err(|problem| problem.within("spec.loss"))?,
        brake: brake::read(read.spec.brake).map_err(|problem| problem.within("spec.brake"))?,
        rules: rules(read.spec.members)?,
    })
}

impl From<InvalidValue> for InvalidPolicy {
    fn from(problem: InvalidValue) -> Self {
        in_one_line(&problem.to_string())
    }
}

fn in_one_line(problem: &str) -> InvalidPolicy {
    InvalidPolicy(problem.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn loss(stated: Option<LossRule>) -> Taken<Loss> {
    let mut loss = Loss::default();
    let Some(stated) = stated else {
        return Ok(loss);
    };
    loss.action = match stated.action {
        Action::Withdraw => LossAction::Withdraw,
        Action::NotReady => LossAction::NotReady,
        Action::Retain => LossAction::Retain,
    };
    if let Some(after) = stated.after {
        loss.after_millis = duration("after", &after, LOSS_DETECTED_MILLIS)?;
    }
    let Some(stated) = stated.self_preservation else {
        return Ok(loss);
    };
    if let Some(stated) = stated.percent {
        loss.self_preservation_percent = percent("selfPreservation.percent", stated)?;
    }
    if let Some(longest) = stated.longest {
        loss.self_preservation_millis = duration("selfPreservation.longest", &longest, 0)?;
    }
    Ok(loss)
}

/// A share of what there is.
fn percent(field: &'static str, stated: u8) -> Taken<u8> {
    if (1..=100).contains(&stated) {
        return Ok(stated);
    }
    Err(InvalidValue::new(field, format!("is {stated}; use 1 to 100")))
}

/// A duration of whole milliseconds, from `least` on.
fn duration(field: &'static str, text: &str, least: u64) -> Taken<u64> {
    let wrong = |problem: String| InvalidValue::new(field, problem);
    let stated: jiff::SignedDuration = text.parse().map_err(|_| {
        wrong(format!(
            "{} is no duration: write it as 90s, 5m or 2h",
            validate::shown(text)
        ))
    })?;
    let millis = u64::try_from(stated.as_millis()).unwrap_or_default();
    if millis < least {
        return Err(wrong(format!(
            "{} is less than {} s, in which a loss is noticed",
            validate::shown(text),
            least / 1_000
        )));
    }
    if millis > LOSS_MILLIS_MAX {
        let days = LOSS_MILLIS_MAX / 86_400_000;
        return Err(wrong(format!(
            "{} is more than {days} days",
            validate::shown(text)
        )));
    }
    Ok(millis)
}

fn rules(rules: Vec<Rule>) -> Taken<Vec<MemberRule>> {
    if rules.len() > RULES_MAX {
        let problem = format!("has {} rules; at most {RULES_MAX} are taken", rules.len());
        return Err(InvalidValue::new("spec.members", problem));
    }
    let mut read: Vec<MemberRule> = Vec::with_capacity(rules.len());
    for (index, one) in rules.into_iter().enumerate() {
        let within = |problem: InvalidValue| problem.within(format_args!("spec.members[{index}]"));
        let one = rule(one).map_err(within)?;
        if read.iter().any(|other| other.name == one.name) {
            let problem = format!(
                "{} is another rule's; give each a name of its own",
                validate::shown(&one.name)
            );
            return Err(within(InvalidValue::new("name", problem)));
        }
        read.push(one);
    }
    Ok(read)
}

fn rule(rule: Rule) -> Taken<MemberRule> {
    if !is_dns_label(&rule.name) {
        let problem = format!(
            "{} is no name of a rule: use a DNS label (1 to 63 of a-z, 0-9 and '-')",
            validate::shown(&rule.name)
        );
        return Err(InvalidValue::new("name", problem));
    }
    let exports = |exports: Vec<Services>| list("exports", exports, services);
    let imports = |imports: Vec<Services>| list("imports", imports, services);
    let range = |text: String| {
        let range: Result<AddressRange, _> = text.parse();
        range.map_err(|error| InvalidValue::new("", format!("{} {error}", validate::shown(&text))))
    };
    Ok(MemberRule {
        members: patterns("members", rule.members)?,
        exports: rule.exports.map(exports).transpose()?,
        endpoints: rule
            .endpoints
            .map(|ranges| list("endpoints", ranges, range))
            .transpose()?,
        imports: rule.imports.map(imports).transpose()?.map(Arc::from),
        budget: budget(&rule.budget.unwrap_or_default()),
        name: rule.name.into(),
    })
}

fn budget(limits: &Limits) -> BudgetRule {
    Limit::ALL
        .into_iter()
        .fold(BudgetRule::default(), |budget, limit| {
            budget.with(limit, limits.most(limit))
        })
}

fn services(services: Services) -> Taken<ServiceRule> {
    Ok(ServiceRule {
        namespaces: patterns("namespaces", services.namespaces)?,
        services: match services.services {
            Some(services) => patterns("services", services)?,
            None => vec![Pattern::any()],
        },
    })
}

/// Patterns without one would match nothing, which nobody writes on purpose.
fn patterns(field: &str, texts: Vec<String>) -> Taken<Vec<Pattern>> {
    if texts.is_empty() {
        return Err(InvalidValue::new(field, "names nothing; write \"*\" for all"));
    }
    list(field, texts, |text| {
        let pattern: Result<Pattern, _> = text.parse();
        pattern.map_err(|error| InvalidValue::new("", format!("{} {error}", validate::shown(&text))))
    })
}

fn list<T, U>(field: &str, entries: Vec<T>, read: impl Fn(T) -> Taken<U>) -> Taken<Vec<U>> {
    if entries.len() > ENTRIES_MAX {
        let problem = format!("has {} entries; at most {ENTRIES_MAX} are taken", entries.len());
        return Err(InvalidValue::new(field, problem));
    }
    let entries = entries.into_iter().enumerate();
    let read = entries.map(|(index, entry)| {
        read(entry).map_err(|problem| {
            let place = format!("{field}[{index}]");
            if problem.field.is_empty() {
                InvalidValue::new(place, problem.problem)
            } else {
                problem.within(place)
            }
        })
    });
    read.collect()
}

/// A decision about the policy or the precedence as protobuf; nothing for others.
pub(super) fn to_proto(fact: &Fact) -> Option<ProtoFact> {
    Some(match fact {
        Fact::PolicyApplied { operator, policy } => ProtoFact::PolicyApplied(v1::PolicyApplied {
            operator: operator.to_string(),
            document: policy.document.to_string(),
        }),
        Fact::PrecedenceContested {
            service,
            standing,
            challenger,
            held,
        } => ProtoFact::PrecedenceContested(v1::PrecedenceContested {
            service: Some(service_key_to_proto(service)),
            standing: Some(claim_to_proto(standing)),
            challenger: Some(claim_to_proto(challenger)),
            held: *held,
        }),
        Fact::PrecedenceReleased { operator, service } => {
            ProtoFact::PrecedenceReleased(v1::PrecedenceReleased {
                operator: operator.to_string(),
                service: Some(service_key_to_proto(service)),
            })
        }
        _ => return None,
    })
}

pub(super) fn applied_from_proto(applied: v1::PolicyApplied) -> Taken<Fact> {
    let policy = read_recorded_policy(&applied.document);
    let policy = policy.map_err(|error| InvalidValue::new("document", error.to_string()))?;
    Ok(Fact::PolicyApplied {
        operator: applied.operator.into(),
        policy: Arc::new(policy),
    })
}

pub(super) fn contested_from_proto(contested: v1::PrecedenceContested) -> Taken<Fact> {
    Ok(Fact::PrecedenceContested {
        service: service_key_from_proto("service", contested.service)?,
        standing: claim_from_proto("standing", contested.standing)?,
        challenger: claim_from_proto("challenger", contested.challenger)?,
        held: contested.held,
    })
}

pub(super) fn released_from_proto(released: v1::PrecedenceReleased) -> Taken<Fact> {
    Ok(Fact::PrecedenceReleased {
        operator: released.operator.into(),
        service: service_key_from_proto("service", released.service)?,
    })
}

/// A claim as protobuf, for facts, snapshots and services that show it.
pub fn claim_to_proto(claim: &PrecedenceClaim) -> v1::PrecedenceClaim {
    v1::PrecedenceClaim {
        cluster: claim.cluster.to_string(),
        uid: claim.uid.to_string(),
        created_at: Some(created_at_to_proto(claim.created_at)),
    }
}

/// The inverse of [`claim_to_proto`]; `field` is its place.
///
/// # Errors
///
/// [`InvalidValue`] if it is missing, or is none.
pub fn claim_from_proto(
    field: &str,
    claim: Option<v1::PrecedenceClaim>,
) -> Result<PrecedenceClaim, InvalidValue> {
    let claim = required(field, claim)?;
    Ok(PrecedenceClaim {
        cluster: cluster_from_proto("cluster", &claim.cluster)?,
        uid: claim.uid.into(),
        created_at: created_at_from_proto(claim.created_at)?,
    })
}

#[cfg(test)]
mod tests;
