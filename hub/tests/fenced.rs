//! A hub whose log another process writes: it no longer leads, and its process stays to say so.

use std::{net::SocketAddr, time::Duration};

use hub::{
    clock::Clock,
    fold::Command,
    hub::{Hub, HubMetrics},
    lead::Leading,
    log::{Batch, Log, MemoryDisk, MemoryLog},
    writer::Options,
};
use prometheus_client::registry::Registry;
use shared::{
    model::{ClusterId, Clusterset, Epoch, UnixMillis},
    process::{AdminServer, Metrics, Readiness, Shutdown},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn log() -> MemoryLog {
    let clusterset = Clusterset::new("example.org", "default").expect("valid");
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    MemoryLog::open(&MemoryDisk::default(), &clusterset, epoch).expect("opened")
}

fn hub(log: &MemoryLog) -> Hub {
    let options = Options {
        hub: "hub".into(),
        hub_version: "test".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let metrics = HubMetrics::register(&mut Registry::default());
    Hub::start(Box::new(log.clone()), options, Clock::start(), metrics).expect("started")
}

async fn status_line(admin: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_fenced_hub_ends_leading_and_its_admin_port_answers() {
    let log = log();
    let hub = hub(&log);
    let (writer, present) = (hub.writer.clone(), hub.present.clone());
    let (shutdown, readiness) = (Shutdown::default(), Readiness::default());
    let lead = Leading::until(shutdown.drain(), &readiness);
    let leading = lead.leading.clone();
    let admin = AdminServer::bind("127.0.0.1:0".parse().expect("an address"))
        .await
        .expect("bound");
    let address = admin.address();
    let metrics = Metrics::new("tributary_hub", "test").finish();
    tokio::spawn(admin.serve(readiness.clone(), metrics, shutdown.drain().clone()));
    let serving = tokio::spawn(lead.clone().keep({
        let leading = leading.clone();
        async move {
            leading.cancelled().await;
            Ok(())
        }
    }));
    let running = tokio::spawn(lead.run(hub.run(shutdown.clone())));
    assert!(status_line(address, "/readyz").await.contains("200"));

    // Its first event may be under way: the verdict is of a log that does not change.
    let forget = || Command::Forget {
        cluster: ClusterId::new("gone").expect("valid"),
        operator: "alice".into(),
    };
    let tried = writer.operate(forget(), false, |_, _, _| Vec::new()).await;
    tried.expect("it answers").expect("it may");
    assert_eq!(present.read().expect("it writes").head, log.head());
    let theirs = Batch::new(log.head(), vec![b"somebody else's".to_vec()]).expect("small");
    log.clone().append_and_wait(theirs).expect("theirs is durable");
    let decided = writer.operate(forget(), true, |_, _, _| Vec::new()).await;
    assert!(decided.is_err(), "nothing is acknowledged");
    tokio::time::timeout(PATIENCE, leading.cancelled())
        .await
        .expect("sessions and calls end");
    assert!(
        present.read().is_err(),
        "what it knows is nobody's present any more"
    );
    assert!(status_line(address, "/readyz").await.contains("503"));
    assert!(status_line(address, "/livez").await.contains("200"));
    assert!(
        !running.is_finished() && !serving.is_finished(),
        "the process stays"
    );

    shutdown.begin();
    for ended in [running, serving] {
        let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it stops");
        ended.expect("no panic").expect("in good order");
    }
}

#[tokio::test]
async fn any_other_end_of_the_writer_is_the_processs() {
    let lead = Leading::until(Shutdown::default().drain(), &Readiness::default());
    let ended = lead.clone().run(async { anyhow::bail!("the disk") }).await;
    assert!(ended.is_err() && !lead.leading.is_cancelled() && lead.readiness.is_ready());
    let ended = lead.keep(async { anyhow::bail!("the port") }).await;
    assert!(ended.is_err());
}
