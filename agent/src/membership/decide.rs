//! Owns: the content of the two ClusterProperties of a member, and what follows from the existing ones. Pure.
//! Never: reads an object, or writes one.

use std::fmt;

use shared::{
    api::names::{PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET},
    model::ClusterId,
};

/// The member's cluster id and clusterset, from the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// Its id.
    pub cluster: ClusterId,
    /// The clusterset's name, without its trust domain.
    pub clusterset: Box<str>,
}

/// A property as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: &'a str,
}

/// The maker of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// An agent, and what it says is what the agent wrote.
    Agent,
    /// An agent, and somebody else wrote the value since.
    AgentAndOther,
    /// Somebody else.
    Other,
}

/// A property that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its value.
    pub value: Box<str>,
    /// Its maker.
    pub maker: Maker,
    /// It is being deleted.
    pub deleting: bool,
}

/// The decision about an existing property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is right as it is, or will be gone: nothing is written.
    Leave,
    /// There is none: it is made.
    Make,
    /// It is the agent's and somebody changed what it says: it is written again.
    Restore,
    /// It says another thing and is not ours to change.
    Contradicts,
    /// It is the agent's and is not true any more: it is deleted.
    Remove,
}

/// One property that says another thing than the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    name: &'static str,
    stated: Box<str>,
    certified: Box<str>,
    by_agent: bool,
}

impl Membership {
    /// Both properties.
    pub fn properties(&self) -> [Wanted<'_>; 2] {
        [
            Wanted {
                name: PROPERTY_CLUSTER_ID,
                value: self.cluster.as_str(),
            },
            Wanted {
                name: PROPERTY_CLUSTERSET,
                value: &self.clusterset,
            },
        ]
    }
}

impl Wanted<'_> {
    /// Decides about a property.
    pub fn decide(&self, standing: Option<&Standing>) -> Decision {
        let Some(standing) = standing else {
            return Decision::Make;
        };
        if *standing.value == *self.value {
            return Decision::Leave;
        }
        match standing.maker {
            Maker::AgentAndOther if standing.deleting => Decision::Leave,
            Maker::AgentAndOther => Decision::Restore,
            Maker::Agent | Maker::Other => Decision::Contradicts,
        }
    }

    /// Decides about a property once the membership has ended: a cluster that is no member must not say that it is in a
    /// clusterset (KEP-2149). Its id stays its own.
    pub fn decide_after_the_end(&self, standing: Option<&Standing>) -> Decision {
        match standing {
            Some(standing)
                if self.name == PROPERTY_CLUSTERSET
                    && standing.maker != Maker::Other
                    && !standing.deleting =>
            {
                Decision::Remove
            }
            _ => Decision::Leave,
        }
    }

    /// The report for people about a property that contradicts.
    pub fn contradiction(&self, standing: Option<&Standing>) -> Option<Contradiction> {
        let standing = standing.filter(|_| self.decide(standing) == Decision::Contradicts)?;
        Some(Contradiction {
            name: self.name,
            stated: standing.value.clone(),
            certified: self.value.into(),
            by_agent: standing.maker == Maker::Agent,
        })
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            stated,
            certified,
            by_agent,
        } = self;
        let what = if *name == PROPERTY_CLUSTER_ID {
            "cluster"
        } else {
            "clusterset"
        };
        write!(
            out,
            "the certificate in --tls-cert is for {what} {certified}, the ClusterProperty {name} says {stated}: "
        )?;
        if *name == PROPERTY_CLUSTER_ID && ClusterId::new(stated).is_err() {
            // No certificate can be issued for it.
            return write!(
                out,
                "Tributary takes one DNS label only as a cluster id (1 to 63 of a-z, 0-9 and '-'), since an id is one part \
                 of the DNS names of headless pods. Agree with whoever made the ClusterProperty {name}, and give it the \
                 value {certified}"
            );
        }
        write!(out, "issue a certificate for {stated}, or ")?;
        if *by_agent {
            out.write_str(
                "delete the property if the cluster has left as what it says: an agent made it then",
            )
        } else {
            out.write_str("correct the property")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership() -> Membership {
        Membership {
            cluster: ClusterId::new("east").expect("an id"),
            clusterset: "default".into(),
        }
    }

    fn standing(value: &str, maker: Maker) -> Standing {
        Standing {
            value: value.into(),
            maker,
            deleting: false,
        }
    }

    #[test]
    fn a_member_says_its_id_and_its_clusterset() {
        let membership = membership();
        let said = membership.properties().map(|wanted| (wanted.name, wanted.value));
        assert_eq!(
            said,
            [
                ("cluster.clusterset.k8s.io", "east"),
                ("clusterset.k8s.io", "default")
            ]
        );
    }

    /// The table: no property of another writer is ever overwritten.
    #[test]
    fn what_stands_there_decides() {
        use Decision::{Contradicts, Leave, Make, Restore};
        for wanted in membership().properties() {
            assert_eq!(wanted.decide(None), Make);
            for (maker, right, wrong) in [
                (Maker::Agent, Leave, Contradicts),
                (Maker::AgentAndOther, Leave, Restore),
                (Maker::Other, Leave, Contradicts),
            ] {
                assert_eq!(wanted.decide(Some(&standing(wanted.value, maker))), right);
                assert_eq!(wanted.decide(Some(&standing("other", maker))), wrong);
            }
            let going = Standing {
                deleting: true,
                ..standing("other", Maker::AgentAndOther)
            };
            assert_eq!(wanted.decide(Some(&going)), Leave, "the next one is made");
        }
    }

    /// KEP-2149 lets an id be a DNS subdomain; nobody is sent to issue a certificate that cannot be issued.
    #[test]
    fn an_id_that_is_no_label_is_not_answered_with_an_impossible_certificate() {
        let membership = membership();
        let wanted = membership.properties().into_iter().next().expect("the id");
        let dotted = standing("prod.eu-west", Maker::Other);
        let words = wanted
            .contradiction(Some(&dotted))
            .expect("a contradiction")
            .to_string();
        assert!(words.contains("one DNS label only"), "{words}");
        assert!(!words.contains("issue a certificate"), "{words}");
    }

    /// Once the membership has ended nothing is made or restored, and the agent's own word about the clusterset goes.
    #[test]
    fn after_the_end_only_the_agents_clusterset_goes() {
        use Decision::{Leave, Remove};
        for wanted in membership().properties() {
            let own = if wanted.name == PROPERTY_CLUSTERSET {
                Remove
            } else {
                Leave
            };
            assert_eq!(wanted.decide_after_the_end(None), Leave);
            for (maker, decision) in [
                (Maker::Agent, own),
                (Maker::AgentAndOther, own),
                (Maker::Other, Leave),
            ] {
                for value in [wanted.value, "other"] {
                    let standing = standing(value, maker);
                    assert_eq!(
                        wanted.decide_after_the_end(Some(&standing)),
                        decision,
                        "{standing:?}"
                    );
                }
            }
            let going = Standing {
                deleting: true,
                ..standing(wanted.value, Maker::Agent)
            };
            assert_eq!(wanted.decide_after_the_end(Some(&going)), Leave);
        }
    }

    #[test]
    fn a_contradiction_says_which_is_which_and_what_to_do() {
        let membership = membership();
        let [cluster, clusterset] = membership.properties();
        let said = |wanted: Wanted<'_>, maker| {
            let contradiction = wanted.contradiction(Some(&standing("south", maker)));
            contradiction.map(|contradiction| contradiction.to_string())
        };
        let theirs = said(cluster, Maker::Other).expect("a contradiction");
        assert!(theirs.contains("for cluster east"), "{theirs}");
        assert!(
            theirs.contains("cluster.clusterset.k8s.io says south"),
            "{theirs}"
        );
        assert!(theirs.ends_with("or correct the property"), "{theirs}");
        let earlier = said(clusterset, Maker::Agent).expect("a contradiction");
        assert!(earlier.contains("for clusterset default"), "{earlier}");
        assert!(
            earlier.contains("delete the property if the cluster has left"),
            "{earlier}"
        );
        assert_eq!(
            said(cluster, Maker::AgentAndOther),
            None,
            "that one is written again"
        );
        assert_eq!(cluster.contradiction(None), None);
    }
}
