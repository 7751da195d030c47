//! Owns: what stands of each member's services in the clusters of the others, and whether a member's part stood, or went where
//! others answer and only there.
//! Never: says when either must be so.

use std::collections::{BTreeMap, BTreeSet};

use shared::api::names::{LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER};

use oracle::is_ours;
use sim::SimCluster;

/// A cluster, and a service that is imported there.
type Place = (String, String);
/// Addresses that are ready, by the member that they are of.
type Sources = BTreeMap<String, BTreeSet<String>>;

/// Imports of all clusters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Imported(BTreeMap<Place, Sources>);

impl Imported {
    /// The present imports.
    pub(super) fn of<'a>(clusters: impl Iterator<Item = &'a SimCluster>) -> Self {
        let mut places = BTreeMap::<Place, Sources>::new();
        for cluster in clusters {
            for slice in cluster
                .objects("EndpointSlice")
                .iter()
                .filter(|slice| is_ours(slice))
            {
                let label = |name: &str| slice["metadata"]["labels"][name].as_str().map(str::to_owned);
                let (Some(source), Some(service)) = (label(LABEL_SOURCE_CLUSTER), label(LABEL_SERVICE_NAME))
                else {
                    continue;
                };
                let place = (cluster.name().to_owned(), service);
                let addresses = places.entry(place).or_default().entry(source).or_default();
                let endpoints = slice["endpoints"].as_array().into_iter().flatten();
                let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
                let of = |endpoint: &serde_json::Value| endpoint["addresses"][0].as_str().map(str::to_owned);
                addresses.extend(ready.filter_map(of));
            }
        }
        Self(places)
    }

    /// Checks that all that came from this member, and stood in the clusters of others, stands as it did; how much that
    /// is.
    ///
    /// # Errors
    ///
    /// The first place where it does not.
    pub(super) fn stands(&self, now: &Self, member: &str) -> Result<u64, String> {
        self.each(now, member, |_, before, after| {
            let same = after.get(member) == before.get(member);
            same.then_some(()).ok_or("its endpoints are not what they were")
        })
    }

    /// Checks that what came from this member is gone wherever another answers, and stands as it did everywhere else;
    /// how much that is.
    ///
    /// # Errors
    ///
    /// The first place where it is not so.
    pub(super) fn let_go(&self, now: &Self, member: &str) -> Result<u64, String> {
        self.each(now, member, |_, before, after| {
            let answers =
                |(source, ready): (&String, &BTreeSet<String>)| source != member && !ready.is_empty();
            let is_served = after.iter().any(answers);
            match (is_served, after.get(member)) {
                (true, Some(_)) => Err("its endpoints stand beside those of others"),
                (false, mine) if mine != before.get(member) => {
                    Err("nobody else answers, and its endpoints are not what they were")
                }
                _ => Ok(()),
            }
        })
    }

    /// Checks that nothing is left in this cluster that came from others, and everything stands as it did in all
    /// others; in how many places something is gone.
    ///
    /// # Errors
    ///
    /// The first place where it is not so.
    pub(super) fn expired(&self, now: &Self, cluster: &str) -> Result<u64, String> {
        let none = Sources::new();
        let mut gone = 0;
        for (place, before) in &self.0 {
            let after = now.0.get(place).unwrap_or(&none);
            let is_here = place.0 == cluster;
            let mut others = after.keys().filter(|source| *source != cluster);
            if is_here && others.next().is_some() || !is_here && after != before {
                let (cluster, service) = place;
                return Err(format!(
                    "{service} in {cluster}: {}, now {}",
                    in_words(before),
                    in_words(after)
                ));
            }
            gone += u64::from(is_here && before.keys().any(|source| source != cluster));
        }
        Ok(gone)
    }

    fn each(
        &self,
        now: &Self,
        member: &str,
        judge: impl Fn(&Place, &Sources, &Sources) -> Result<(), &'static str>,
    ) -> Result<u64, String> {
        let none = Sources::new();
        let mut looked_at = 0;
        let elsewhere =
            |((cluster, _), sources): &(&Place, &Sources)| cluster != member && sources.contains_key(member);
        for (place, before) in self.0.iter().filter(elsewhere) {
            let after = now.0.get(place).unwrap_or(&none);
            judge(place, before, after).map_err(|why| {
                let (cluster, service) = place;
                format!(
                    "{service} of {member} in {cluster}: {why}: {}, now {}",
                    in_words(before),
                    in_words(after)
                )
            })?;
            looked_at += 1;
        }
        Ok(looked_at)
    }
}

fn in_words(sources: &Sources) -> String {
    if sources.is_empty() {
        return "nothing".to_owned();
    }
    let each = sources.iter().map(|(source, ready)| {
        let ready: Vec<&str> = ready.iter().map(String::as_str).collect();
        format!("{source} [{}]", ready.join(", "))
    });
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member, and its addresses that are ready.
    type Answers<'a> = (&'a str, &'a [&'a str]);

    /// Imports of east: the answering clusters of each service.
    fn imported(services: &[(&str, &[Answers<'_>])]) -> Imported {
        let sources = |sources: &[Answers<'_>]| {
            let ready = |addresses: &[&str]| addresses.iter().map(|one| (*one).to_owned()).collect();
            let one = |(source, addresses): &Answers<'_>| ((*source).to_owned(), ready(addresses));
            sources.iter().map(one).collect()
        };
        let place = |service: &str| ("east".to_owned(), service.to_owned());
        Imported(
            services
                .iter()
                .map(|(service, of)| (place(service), sources(of)))
                .collect(),
        )
    }

    #[test]
    fn who_is_let_go_goes_where_others_answer_and_nowhere_else() {
        let before = imported(&[
            ("cart", &[("north", &["n"]), ("west", &["w"])]),
            ("price", &[("west", &["w"])]),
        ]);
        assert!(before.let_go(&before, "west").unwrap_err().contains("beside"));
        let gone = imported(&[("cart", &[("north", &["n"])]), ("price", &[("west", &["w"])])]);
        assert_eq!(before.let_go(&gone, "west"), Ok(2));
        let too_much = imported(&[("cart", &[("north", &["n"])])]);
        assert!(before.let_go(&too_much, "west").unwrap_err().contains("nobody"));
        let silent = imported(&[
            ("cart", &[("north", &[]), ("west", &["w"])]),
            ("price", &[("west", &["w"])]),
        ]);
        assert_eq!(
            before.let_go(&silent, "west"),
            Ok(2),
            "north has none that is ready"
        );
    }

    #[test]
    fn what_came_from_others_expires_here_and_not_elsewhere() {
        let before = imported(&[("cart", &[("east", &["e"]), ("west", &["w"])])]);
        assert!(before.expired(&before, "east").is_err());
        let gone = imported(&[("cart", &[("east", &["e"])])]);
        assert_eq!(before.expired(&gone, "east"), Ok(1));
        assert_eq!(before.expired(&Imported::default(), "east"), Ok(1));
        assert!(before.expired(&gone, "west").is_err(), "it stood in east");
        assert_eq!(before.expired(&before, "west"), Ok(0));
    }

    #[test]
    fn who_stands_loses_no_address_and_what_is_at_home_does_not_count() {
        let before = imported(&[("cart", &[("east", &["e"]), ("west", &["w", "x"])])]);
        assert_eq!(before.stands(&before, "west"), Ok(1));
        assert_eq!(before.stands(&before, "east"), Ok(0));
        let fewer = imported(&[("cart", &[("east", &["e"]), ("west", &["w"])])]);
        assert!(
            before
                .stands(&fewer, "west")
                .unwrap_err()
                .contains("cart of west in east")
        );
        assert!(before.stands(&Imported::default(), "west").is_err());
    }
}
