//! Owns: what requests see of a member that withdraws all of its exports at once: none fails while they are on hold,
//! and where another cluster serves, only that one answers.
//! Never: lets a hold end by its time.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{
    churn::asking::Loop,
    client::{Asking, export},
    control::{ControlPlane, wait_for},
    installed::Installed,
    layout::Directory,
    pair::at_least_one,
    row::Wrong,
    running::Running,
    served::{Served, WEB, address, answered_by, only},
    unbroken::{Asks, unbroken},
};

/// The namespace of what is asked.
const NAMESPACE: &str = "held";
/// A withdrawal of any size is put on hold: kubectl deletes one export after the other, and the first one counts too.
const BRAKE: &str = "spec:\n  brake:\n    exports: 1\n    percent: 1\n";
/// Requests while the exports are on hold.
pub(super) const REQUESTS: u32 = 500;

/// Deletes all exports of the second cluster, asks, and makes them anew.
pub(super) fn held(directory: &Directory, requests: u32) -> anyhow::Result<()> {
    at_least_one(requests, "requests")?;
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    installed.in_session()?;
    let planes = running.planes();
    let served = Served::start(&planes, NAMESPACE)?;
    installed.under_policy(BRAKE, || on_hold(&installed, &served, requests))?;
    served.end()?;
    println!("no request failed while the exports of a member were on hold");
    Ok(())
}

fn on_hold(installed: &Installed<'_>, served: &Served<'_>, requests: u32) -> anyhow::Result<()> {
    let (here, there) = (served.pair.here()?, served.pair.there()?);
    let [stays, member] = [&served.pair.exporter, &served.pair.importer].map(|cluster| &*cluster.plane.name);
    let alone = only(member);
    let [web, web_there] = [address(&here, WEB)?, address(&there, WEB)?];
    let alone_address = address(&here, &alone)?;
    answered_by(&here, WEB, &web, &[stays, member])?;
    answered_by(&there, WEB, &web_there, &[stays, member])?;
    answered_by(&here, &alone, &alone_address, &[member])?;
    let anybody = "c[12]";
    let ask = |asker, service, address, by| Asks {
        asker,
        service,
        address,
        by,
    };
    let asks = [
        ask(&here, WEB, &*web, anybody),
        ask(&here, &*alone, &*alone_address, member),
        ask(&there, WEB, &*web_there, anybody),
    ];
    unbroken(&asks, || {
        let exports = Exports::of(installed, served.pair.importer.plane)?;
        let withdrawn = exports.withdraw().and_then(|()| {
            answered_by(&here, WEB, &web, &[stays])?;
            let asking = Loop::start(&here, &web, stays, &(requests..=requests))?;
            asking.began()?;
            let failed = asking.finish()?.failures.len();
            ensure!(
                failed == 0,
                Wrong(format!("{failed} requests to {WEB} were not answered by {stays}"))
            );
            answered_by(&here, &alone, &alone_address, &[member])
        });
        // Whatever came of it: without them nothing else can be asked here.
        let back = exports.put_back();
        withdrawn.and(back)?;
        answered_by(&here, WEB, &web, &[stays, member])?;
        answered_by(&there, WEB, &web_there, &[stays, member])
    })
}

/// All exports of a member.
struct Exports<'a> {
    installed: &'a Installed<'a>,
    plane: &'a ControlPlane<'a>,
    /// The namespace and name of each.
    names: Vec<(String, String)>,
    /// Number of them that count at the hub.
    count: u64,
}

impl<'a> Exports<'a> {
    fn of(installed: &'a Installed<'a>, plane: &'a ControlPlane<'a>) -> anyhow::Result<Self> {
        let fields = "jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{\"\\n\"}{end}";
        let said = plane.kubectl(&["get", "serviceexports", "--all-namespaces", "--output", fields])?;
        let names = said.lines().filter_map(|line| line.split_once(' '));
        let count = installed.member_named(&plane.name)?["exports"].as_u64();
        Ok(Self {
            installed,
            plane,
            names: names
                .map(|(namespace, name)| (namespace.to_owned(), name.to_owned()))
                .collect(),
            count: count.context("the hub counts exports")?,
        })
    }

    /// Deletes all, and waits until all that counted are on hold.
    fn withdraw(&self) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["delete", "serviceexports", "--all", "--all-namespaces"])?;
        self.until("the exports of a member are on hold", |member| {
            member["exports"] == 0 && member["heldExports"] == self.count
        })?;
        println!("{} exports of {} are on hold", self.count, self.plane.name);
        Ok(())
    }

    /// Makes all of them anew, and waits until none is on hold.
    fn put_back(&self) -> anyhow::Result<()> {
        for (namespace, name) in &self.names {
            let plane = self.plane;
            export(&Asking { plane, namespace }, name)?;
        }
        self.until("no export is on hold", |member| {
            member["exports"] == self.count && member["heldExports"] == 0 && member["heldSince"].is_null()
        })
    }

    fn until(&self, what: &str, so: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        wait_for(what, self.installed.running.directory.path(), || {
            self.installed
                .member_named(&self.plane.name)
                .is_ok_and(|member| so(&member))
        })
    }
}
