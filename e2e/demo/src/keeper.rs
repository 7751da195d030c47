//! Owns the running clusterset: performs orders to kill and start programs, and ends everything in good order.
//! It looks at no cluster.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::control::{HUB, Order, Request};
use advice::demo_start;
use cluster::clusterset::LocalClusterset;

/// Performs orders until told to stop; then agents and hub drain. `said` hears what was done.
pub(super) async fn keep(
    mut clusterset: LocalClusterset,
    mut orders: mpsc::Receiver<Request>,
    said: mpsc::Sender<String>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(Request { order, outcome }) = orders.recv() => {
                let done = perform(&mut clusterset, &order).await;
                if let Ok(done) = &done {
                    // Nobody listens any more only when the demo is about to stop.
                    let _ = said.send(done.clone()).await;
                }
                // A caller that went away has no use for the outcome.
                let _ = outcome.send(done);
            }
            (cluster, tail) = clusterset.fallen() => {
                let _ = said.send(fallen(cluster.as_deref(), &tail)).await;
            }
        }
    }
    clusterset.end().await
}

/// The message about a program that ended by itself.
fn fallen(cluster: Option<&str>, tail: &str) -> String {
    let last = tail.lines().last().unwrap_or_default();
    match cluster {
        None => format!(
            "the hub ended by itself (`{}` starts it): {last}",
            demo_start(HUB)
        ),
        Some(name) => format!(
            "the agent of {name} ended by itself (`{}` starts it): {last}",
            demo_start(name)
        ),
    }
}

async fn perform(clusterset: &mut LocalClusterset, order: &Order) -> anyhow::Result<String> {
    match order {
        Order::Kill(name) if name == HUB => {
            let start = demo_start(HUB);
            anyhow::ensure!(
                clusterset.hub().is_ok(),
                "the hub does not run; `{start}` starts it"
            );
            clusterset.kill_hub().await?;
            Ok("the hub was killed: everything imported stays, and news wait until it is started".to_owned())
        }
        Order::Kill(name) => {
            clusterset.cluster(name)?;
            let start = demo_start(name);
            anyhow::ensure!(
                clusterset.agent(name).is_ok(),
                "the agent of {name} does not run; `{start}` starts it"
            );
            clusterset.kill_agent(name).await?;
            Ok(format!(
                "the agent of {name} was killed: what {name} imports and exports stays"
            ))
        }
        Order::Start(name) if name == HUB => {
            anyhow::ensure!(clusterset.hub().is_err(), "the hub runs already");
            clusterset.start_hub().await?;
            Ok("the hub was started".to_owned())
        }
        Order::Start(name) => {
            clusterset.cluster(name)?;
            anyhow::ensure!(
                clusterset.agent(name).is_err(),
                "the agent of {name} runs already"
            );
            clusterset.start_agent(name).await?;
            Ok(format!("the agent of {name} was started"))
        }
    }
}
