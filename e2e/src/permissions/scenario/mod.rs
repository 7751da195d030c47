//! Owns: scenarios in which agent and hub use every right that they have, and how one is played on a real cluster.
//! Never: asks anything as an administrator that a program of Tributary would ask.
//!
//! * here: which there are, and a play from the installation to the last word of the audit log.
//! * `stage`: hub, cluster and a namespace, and waiting under the deadline.
//! * `agent`, `hub`: what they do.
//! * `overtaken`: a way to the API server on which strangers come first.

mod agent;
mod hub;
mod overtaken;
mod stage;

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use futures::future::BoxFuture;

use self::stage::Stage;
use cluster::{
    deploy,
    real::Fleet,
    rights::{Right, ask, denied, roles},
};

/// Time for anything in a scenario that lacks nothing, on a busy machine too.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The programs' use of their rights.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The last part of its test's name, `real::permissions::NAME`.
    pub name: &'static str,
    play: for<'a> fn(&'a mut Stage) -> BoxFuture<'a, anyhow::Result<()>>,
}

/// All of them.
pub const ALL: [Scenario; 11] = [
    Scenario {
        name: "an_export_arrives",
        play: |stage| Box::pin(agent::an_export_arrives(stage)),
    },
    Scenario {
        name: "an_export_goes",
        play: |stage| Box::pin(agent::an_export_goes(stage)),
    },
    Scenario {
        name: "a_taken_name_is_told",
        play: |stage| Box::pin(agent::a_taken_name_is_told(stage)),
    },
    Scenario {
        name: "a_property_is_told",
        play: |stage| Box::pin(agent::a_property_is_told(stage)),
    },
    Scenario {
        name: "a_membership_is_said",
        play: |stage| Box::pin(agent::a_membership_is_said(stage)),
    },
    Scenario {
        name: "a_health_is_told",
        play: |stage| Box::pin(agent::a_health_is_told(stage)),
    },
    Scenario {
        name: "a_definition_changes",
        play: |stage| Box::pin(agent::a_definition_changes(stage)),
    },
    Scenario {
        name: "a_lease_is_given_back",
        play: |stage| Box::pin(agent::a_lease_is_given_back(stage)),
    },
    Scenario {
        name: "an_identity_is_kept",
        play: |stage| Box::pin(agent::an_identity_is_kept(stage)),
    },
    Scenario {
        name: "profiles_are_kept",
        play: |stage| Box::pin(hub::profiles_are_kept(stage)),
    },
    Scenario {
        name: "a_hub_says_that_it_runs",
        play: |stage| Box::pin(hub::a_hub_says_that_it_runs(stage)),
    },
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<Scenario> {
    ALL.into_iter().find(|scenario| scenario.name == name)
}

/// The end of a play.
pub struct Played {
    /// The scenario's own result.
    pub result: anyhow::Result<()>,
    /// Its programs' requests and denials.
    pub asked: denied::Asked,
}

impl Played {
    /// It did what it should, was looked at, and nothing was denied.
    pub fn green(self) -> anyhow::Result<()> {
        // A denial is the better explanation of whatever followed from it.
        self.asked.nothing_denied()?;
        self.result?;
        ensure!(
            self.asked.requests > 0,
            "the audit log shows no request of the charts' accounts"
        );
        Ok(())
    }
}

impl Scenario {
    /// Plays it on the first cluster of a fleet, with all that the charts install there, or without one right.
    pub async fn play(
        &self,
        fleet: &Arc<Fleet>,
        deadline: Duration,
        without: Option<&Right>,
    ) -> anyhow::Result<Played> {
        let mut stage = Stage::set(fleet, deadline).await?;
        if let Some(right) = without {
            for role in roles::without(right, &roles::of(right.account)?)? {
                deploy::apply(&stage.client, &role).await?;
            }
            let account = right.account.in_cluster(&fleet.clusters()[0])?.client().await?;
            ask::until(&account, right, false).await?;
        }
        stage.everything_in_force(without).await?;
        let watched = denied::Watched::begin(fleet).await?;
        let result = (self.play)(&mut stage).await;
        let (ended, asked) = stage.end(&watched).await?;
        Ok(Played {
            result: result.and(ended),
            asked,
        })
    }
}
