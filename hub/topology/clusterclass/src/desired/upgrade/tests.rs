//! Tests of each part's next version: a table of states, by the rules of upstream.

use super::*;

fn worker(name: &str, version: &str) -> Worker {
    Worker {
        name: name.to_owned(),
        version: (!version.is_empty()).then(|| version.to_owned()),
        ..Worker::default()
    }
}

fn state(wanted: &str, plane: &str, workers: &[(&str, &str)]) -> State {
    State {
        wanted: wanted.to_owned(),
        listed: Vec::new(),
        concurrency: 1,
        plane: Some(Plane {
            version: plane.to_owned(),
            ..Plane::default()
        }),
        workers: workers
            .iter()
            .map(|(name, version)| worker(name, version))
            .collect(),
    }
}

/// The versions of the control plane and its workers, each with `!` if it waits; `-` for one that is not made yet.
fn shown(state: &State) -> Vec<String> {
    let part = |part: &Part| format!("{}{}", part.version, if part.waits.is_empty() { "" } else { "!" });
    let step = next(state).unwrap_or_else(|why| panic!("{why}"));
    let workers = step.workers.iter();
    let workers = workers.map(|one| one.as_ref().map_or("-".to_owned(), part));
    std::iter::once(part(&step.plane)).chain(workers).collect()
}

#[test]
fn what_is_new_has_the_wanted_version() {
    let new = State {
        plane: None,
        ..state("v1.31.0", "", &[("a", "")])
    };
    assert_eq!(shown(&new), ["v1.31.0", "v1.31.0"]);
    assert_eq!(next(&new).unwrap().lines, Vec::<String>::new());
}

#[test]
fn where_all_have_the_wanted_version_nothing_goes_on() {
    let done = state("v1.31.0", "v1.31.0", &[("a", "v1.31.0"), ("b", "")]);
    assert_eq!(shown(&done), ["v1.31.0", "v1.31.0", "v1.31.0"]);
    assert_eq!(next(&done).unwrap().lines, Vec::<String>::new());
}

#[test]
fn machine_pools_go_beside_machine_deployments() {
    let pool = |name: &str, version: &str| Worker {
        kind: WorkerKind::MachinePool,
        ..worker(name, version)
    };
    let mut going = state("v1.31.0", "v1.31.0", &[("a", "v1.30.0"), ("b", "v1.30.0")]);
    going
        .workers
        .extend([pool("p", "v1.30.0"), pool("q", "v1.30.0"), pool("new", "")]);
    // As many at once of each kind.
    let expected = ["v1.31.0", "v1.31.0", "v1.30.0!", "v1.31.0", "v1.30.0!", "v1.31.0"];
    assert_eq!(shown(&going), expected);
    let lines = next(&going).unwrap().lines;
    assert_eq!(lines[2], "machine pool p goes from v1.30.0 to v1.31.0");
    assert_eq!(
        lines[3],
        "machine pool q goes from v1.30.0 to v1.31.0 later: 1 at once are on their way"
    );
    // A hold is for those of its kind.
    going.workers[0].holds = true;
    assert_eq!(shown(&going)[1..4], ["v1.30.0!", "v1.30.0!", "v1.31.0"]);
    going.workers[0].holds = false;
    going.workers[2].holds = true;
    assert_eq!(
        shown(&going)[1..5],
        ["v1.31.0", "v1.30.0!", "v1.30.0!", "v1.30.0!"]
    );
    // The control plane waits for pools as for deployments.
    let mut later = state("v1.32.0", "v1.31.0", &[("a", "v1.31.0")]);
    later.workers.push(Worker {
        upgrading: true,
        ..pool("p", "v1.31.0")
    });
    assert_eq!(shown(&later)[0], "v1.31.0!");
    assert_eq!(
        next(&later).unwrap().lines[0],
        "the control plane goes to v1.32.0 later: machine pool p is being upgraded"
    );
    // Those furthest behind say when workers have to go first.
    let mut skewed = state("v1.34.0", "v1.33.0", &[]);
    skewed.workers.push(pool("p", "v1.30.0"));
    assert_eq!(shown(&skewed), ["v1.33.0!", "v1.33.0"]);
}

#[test]
fn the_control_plane_goes_first() {
    let begun = state("v1.31.0", "v1.30.0", &[("a", "v1.30.0"), ("new", "")]);
    assert_eq!(shown(&begun), ["v1.31.0", "v1.30.0!", "-"]);
    assert_eq!(
        next(&begun).unwrap().lines,
        [
            "the control plane goes from v1.30.0 to v1.31.0",
            "machine deployment a goes from v1.30.0 to v1.31.0 later: the control plane is upgraded first",
        ]
    );
    let mut going = state("v1.31.0", "v1.31.0", &[("a", "v1.30.0")]);
    going.plane.as_mut().unwrap().upgrading = true;
    assert_eq!(shown(&going), ["v1.31.0", "v1.30.0!"]);
    let mut made = state("v1.31.0", "v1.30.0", &[("a", "v1.30.0")]);
    made.plane.as_mut().unwrap().provisioning = true;
    assert_eq!(
        shown(&made),
        ["v1.30.0!", "v1.30.0!"],
        "it is not changed while it is made"
    );
    let behind = state("v1.31.0", "v1.31.0", &[("a", "v1.30.0")]);
    assert_eq!(shown(&behind), ["v1.31.0", "v1.31.0"]);
}

#[test]
fn no_more_workers_at_once_than_the_cluster_says() {
    let all = [("a", "v1.30.0"), ("b", "v1.30.0"), ("c", "v1.30.0")];
    let mut some = state("v1.31.0", "v1.31.0", &all);
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.30.0!", "v1.30.0!"]);
    some.concurrency = 2;
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.31.0", "v1.30.0!"]);
    some.workers[0].version = Some("v1.31.0".to_owned());
    some.workers[0].upgrading = true;
    some.concurrency = 1;
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.30.0!", "v1.30.0!"]);
    some.workers[0].upgrading = false;
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.31.0", "v1.30.0!"]);
}

#[test]
fn a_control_plane_waits_for_workers_on_their_way() {
    let mut going = state("v1.32.0", "v1.31.0", &[("a", "v1.31.0"), ("b", "v1.31.0")]);
    going.workers[0].upgrading = true;
    assert_eq!(shown(&going), ["v1.31.0!", "v1.31.0!", "v1.31.0!"]);
}

#[test]
fn workers_are_held_and_deferred() {
    let all = [("a", "v1.30.0"), ("b", "v1.30.0"), ("c", "v1.30.0")];
    let mut some = state("v1.31.0", "v1.31.0", &all);
    some.concurrency = 3;
    some.workers[1].holds = true;
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.30.0!", "v1.30.0!"]);
    some.workers[1].holds = false;
    some.workers[1].defers = true;
    assert_eq!(shown(&some), ["v1.31.0", "v1.31.0", "v1.30.0!", "v1.31.0"]);
}

/// An annotation counts if there is no other part to upgrade, or to wait for.
#[test]
fn a_machine_deployment_that_is_the_only_one_is_held_and_deferred_all_the_same() {
    let mut alone = state("v1.31.0", "v1.31.0", &[("a", "v1.30.0")]);
    assert_eq!(shown(&alone), ["v1.31.0", "v1.31.0"]);
    alone.workers[0].defers = true;
    assert_eq!(shown(&alone), ["v1.31.0", "v1.30.0!"], "deferred");
    let lines = next(&alone).unwrap().lines;
    assert!(
        lines[0].ends_with("later: it is deferred by its annotation"),
        "{lines:?}"
    );
    alone.workers[0].defers = false;
    alone.workers[0].holds = true;
    assert_eq!(shown(&alone), ["v1.31.0", "v1.30.0!"], "held");
    alone.workers[0].defers = true;
    assert_eq!(shown(&alone), ["v1.31.0", "v1.30.0!"], "both");
}

#[test]
fn several_minor_versions_are_gone_one_by_one() {
    let mut far = state("v1.34.0", "v1.30.0", &[("a", "v1.30.0")]);
    let why = next(&far).unwrap_err();
    assert!(why.contains("ask for a 1.31, or list one"), "{why}");
    far.listed = ["v1.30.0", "v1.31.0", "v1.31.5", "v1.32.0", "v1.33.0", "v1.34.0"]
        .map(str::to_owned)
        .to_vec();
    assert_eq!(
        shown(&far),
        ["v1.31.5", "v1.30.0!"],
        "the last patch of a minor version"
    );
    // Workers may be three minor versions behind, and are brought on before that is over.
    far.plane.as_mut().unwrap().version = "v1.33.0".to_owned();
    assert_eq!(shown(&far), ["v1.33.0!", "v1.33.0"]);
    far.workers[0].version = Some("v1.33.0".to_owned());
    assert_eq!(shown(&far), ["v1.34.0", "v1.33.0!"]);
    far.plane.as_mut().unwrap().version = "v1.34.0".to_owned();
    assert_eq!(shown(&far), ["v1.34.0", "v1.34.0"]);
}

#[test]
fn what_has_no_way_is_told() {
    for (state, part) in [
        (state("v1.30.0", "v1.31.0", &[]), "versions do not go back"),
        (state("v2.0.0", "v1.31.0", &[]), "another major version"),
        (
            state("v1.31.0", "v1.31.0", &[("a", "v1.32.0")]),
            "later than the control plane's",
        ),
        (
            state("v1.35.0", "v1.34.0", &[("a", "v1.29.0")]),
            "upgrade them first",
        ),
        (state("v1.31.0", "x", &[]), "x is no version"),
    ] {
        let why = next(&state).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}

/// Every state that can be reached from one, with all on their way done at once, ends with the wanted version; the control
/// plane is never behind its workers, nor more than three minor versions ahead, and goes one at a time.
#[test]
fn every_upgrade_comes_to_its_end() {
    let listed: Vec<String> = (20..40).map(|minor| format!("v1.{minor}.0")).collect();
    let minor = |version: &str| Version::read(version).unwrap().numbers[1];
    for ahead in 0..12 {
        for behind in 0..=3 {
            let (from, wanted) = (24, 24 + ahead);
            let old = format!("v1.{}.0", from - behind);
            let mut state = state(
                &format!("v1.{wanted}.0"),
                &format!("v1.{from}.0"),
                &[("a", &old), ("b", &old)],
            );
            state.listed.clone_from(&listed);
            let mut steps = 0;
            loop {
                let step = next(&state).unwrap_or_else(|why| panic!("{state:?}: {why}"));
                if step.lines.is_empty() {
                    break;
                }
                steps += 1;
                assert!(steps < 100, "{state:?}");
                let plane = state.plane.as_mut().unwrap();
                assert!(minor(&step.plane.version) <= minor(&plane.version) + 1);
                plane.version.clone_from(&step.plane.version);
                for (worker, part) in state.workers.iter_mut().zip(step.workers) {
                    let version = part.unwrap().version;
                    assert!(minor(&version) <= minor(&step.plane.version));
                    assert!(minor(&version) + MAX_SKEW >= minor(&step.plane.version));
                    worker.version = Some(version);
                }
            }
            let all = shown(&state);
            assert!(all.iter().all(|one| *one == state.wanted), "{all:?}");
        }
    }
}
