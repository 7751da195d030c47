//! Other writers: a hub with another log, a hub that may write by now, and somebody who edits Clusters.

use std::time::Duration;

use super::{
    super::defaults::AGAIN_MILLIS,
    replaces::{held, set_default},
    *,
};

#[tokio::test]
async fn a_hub_with_a_new_log_keeps_to_the_waves() {
    let mut play = Play::start(&["a", "b", "c", "d", "e"]);
    play.settle().await;
    play.disk = MemoryDisk::default();
    play.server.world().disk = play.disk.clone();
    play.restart(None);
    play.edit_host(2);
    let mut most = 0;
    for _ in 0..LOOKS_MAX {
        // Machines take longer than two looks.
        play.look().await;
        let count = play.look().await;
        play.server.provide();
        most = most.max(play.in_flight());
        if count.settled == 5 {
            break;
        }
    }
    assert_eq!(most, WAVES.at_once);
    assert_eq!(play.settle().await.settled, 5);
}

#[tokio::test]
async fn a_write_that_another_hub_may_make_by_the_time_it_is_recorded_is_not_begun() {
    let mut play = Play::start(&["a"]);
    let (log, lost) = (log(&play.disk), CancellationToken::new());
    play.engine = engine_with(&play.server, log.clone());
    play.engine.write_until(lost.clone());
    log.hold_syncs(true);
    let losing = async {
        while log.held() == 0 {
            tokio::task::yield_now().await;
        }
        lost.cancel();
        log.hold_syncs(false);
        log.sync();
    };
    let (count, ()) = tokio::join!(play.look(), losing);
    assert_eq!(count.writes, 0);
    assert_eq!(play.server.world().writes, 0);
    assert_eq!(
        play.condition("a"),
        (String::new(), String::new()),
        "nor is it said"
    );
    play.restart(None);
    assert_eq!(play.settle().await.settled, 1);
}

#[tokio::test]
async fn a_write_that_is_not_answered_ends_in_time() {
    let mut play = Play::start(&["a"]);
    play.engine.patience = Duration::from_millis(10);
    play.server.world().hangs = true;
    let look = tokio::time::timeout(Duration::from_secs(60), play.look()).await;
    assert_eq!(look.expect("it ends").failing, 1);
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("does not answer within"), "{message}");
    play.server.world().hangs = false;
    play.now += RETRY_MILLIS_MAX;
    assert_eq!(play.settle().await.settled, 1);
}

fn take_defaults_away(play: &Play, name: &str) {
    play.server.edit(NS, "Cluster", name, |cluster| {
        let topology = cluster["spec"]["topology"].as_object_mut().expect("an object");
        topology.remove("variables");
    });
}

#[tokio::test]
async fn a_cluster_is_carried_out_though_another_writer_removes_its_defaults() {
    let mut play = Play::start(&["a"]);
    set_default(&play, 2);
    let mut last = Count::default();
    for _ in 0..10 {
        last = play.look().await;
        take_defaults_away(&play, "a");
        play.server.provide();
    }
    assert_eq!((last.settled, last.writes), (1, 0));
    assert_eq!(play.condition("a"), ready());
    for host in play.hosts("a") {
        let key = (NS.to_owned(), "HostTemplate".to_owned(), host);
        let size = play.server.world().objects[&key]["spec"]["template"]["spec"]["size"].clone();
        assert_eq!(size, 2);
    }
    play.now += AGAIN_MILLIS;
    assert_eq!(play.look().await.writes, 1, "they are given again, now and then");
}

#[tokio::test]
async fn defaults_that_another_writer_removes_are_no_word_of_the_owner() {
    let mut play = held().await;
    let hosts = play.hosts("c");
    set_default(&play, 2);
    for _ in 0..3 {
        for _ in 0..3 {
            play.look().await;
            take_defaults_away(&play, "c");
            play.server.provide();
        }
        play.now += AGAIN_MILLIS;
    }
    assert_eq!(play.condition("c").0, "RolloutHeld");
    assert_eq!(play.hosts("c"), hosts);
}

#[tokio::test]
async fn a_default_that_was_recorded_and_not_written_is_no_word_of_the_owner() {
    let mut play = held().await;
    let hosts = play.hosts("c");
    set_default(&play, 2);
    play.server.world().conflicts = true;
    play.look().await;
    assert_eq!(play.condition("c").0, "ReconcileFailed");
    play.server.world().conflicts = false;
    set_default(&play, 3);
    for _ in 0..5 {
        play.now += RETRY_MILLIS_MAX;
        play.look().await;
        play.server.provide();
    }
    assert_eq!(play.condition("c").0, "RolloutHeld");
    assert_eq!(play.hosts("c"), hosts);
}
