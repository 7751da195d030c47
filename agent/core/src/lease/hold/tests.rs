//! One holder and its clock; then agents whose clocks go each at its own pace, and one Lease that all of them want.

use proptest::prelude::*;

use super::{
    super::machine::{Candidate, DURATION, PACE_ERROR_PERCENT_MAX, RETRY_PERIOD, Verdict},
    *,
};

const SECOND: Duration = Duration::from_secs(1);

fn held(holder: &str, transitions: i32) -> Record {
    Record {
        holder: holder.into(),
        renewed: Some(1),
        duration: DURATION,
        transitions,
        epoch: None,
        given_back: true,
    }
}

#[test]
fn a_holder_knows_how_it_stands() {
    let lost = |holder: &str| Standing::Lost(holder.into());
    let of = |record: Option<Record>| standing("pod-a", 3, record.as_ref());
    assert_eq!(of(Some(held("pod-a", 3))), Standing::Held);
    assert_eq!(of(None), Standing::Gone);
    assert_eq!(of(Some(held("", 3))), Standing::Gone, "emptied by a person");
    assert_eq!(of(Some(held("pod-b", 3))), lost("pod-b"));
    let newer = of(Some(held("pod-a", 4)));
    assert_eq!(newer, lost("pod-a"), "a newer start in the same pod");
    let ended = of(Some(held("", 4)));
    assert_eq!(ended, lost(""), "a newer start that has ended");
}

#[test]
fn one_that_cannot_renew_for_four_seconds_writes_nothing_until_it_has() {
    let mut hold = Hold::taken(10 * SECOND);
    let millis = Duration::from_millis;
    assert_eq!(hold.may(10 * SECOND), May::Write);
    assert_eq!(hold.may(millis(13_999)), May::Write);
    assert_eq!(hold.may(14 * SECOND), May::Keep);
    assert_eq!(
        hold.may(3_600 * SECOND),
        May::Keep,
        "the session and what it knows stay"
    );
    // The answer came after two seconds; what counts is when it was asked for.
    hold.renewed(20 * SECOND);
    assert_eq!(hold.may(22 * SECOND), May::Write);
    hold.renewed(19 * SECOND);
    assert_eq!(
        hold.writes_until(),
        Some(24 * SECOND),
        "an answer that was overtaken"
    );
    assert_eq!(hold.may(24 * SECOND), May::Keep);
}

#[test]
fn one_that_lost_the_lease_never_has_it_again() {
    let mut hold = Hold::taken(SECOND);
    hold.end();
    hold.renewed(2 * SECOND);
    assert_eq!((hold.may(2 * SECOND), hold.writes_until()), (May::End, None));
}

/// The Lease as the API server has it, and how often it was written.
#[derive(Debug, Clone, Default)]
struct Server {
    record: Option<Record>,
    version: u64,
}

/// The state of an agent's request: each stage takes any time, and may be lost.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// It asked for the Lease.
    Asked,
    /// It was answered, and writes this over what it found.
    Writes(Record, u64),
    /// Its write was done, or refused, and it does not know yet.
    Wrote(i32, bool),
}

#[derive(Debug)]
enum Role {
    Waits(Candidate),
    Holds(Hold, i32),
}

#[derive(Debug)]
struct Agent {
    name: &'static str,
    /// Advance of its clock while 1,000 pass.
    pace: u32,
    role: Role,
    /// With when it began, by the agent's own clock.
    asking: Option<(Duration, Stage)>,
}

impl Agent {
    fn new(name: &'static str, pace: u32) -> Self {
        let role = Role::Waits(Candidate::new(name));
        let asking = None;
        Self {
            name,
            pace,
            role,
            asking,
        }
    }

    fn clock(&self, real: Duration) -> Duration {
        real * self.pace / 1_000
    }

    fn writes(&self, real: Duration) -> bool {
        match &self.role {
            Role::Waits(_) => false,
            Role::Holds(hold, _) => hold.may(self.clock(real)) == May::Write,
        }
    }

    /// Advances the agent's request by one stage, or loses it.
    fn goes_on(&mut self, server: &mut Server, real: Duration, lost: bool) {
        let now = self.clock(real);
        self.asking = match self.asking.take() {
            None => Some((now, Stage::Asked)),
            Some(_) if lost => None,
            Some((began, Stage::Asked)) => self.looks(server, now).map(|stage| (began, stage)),
            Some((began, Stage::Writes(record, version))) => {
                let (transitions, done) = (record.transitions, server.version == version);
                if done {
                    *server = Server {
                        record: Some(record),
                        version: version + 1,
                    };
                }
                Some((began, Stage::Wrote(transitions, done)))
            }
            Some((began, Stage::Wrote(transitions, done))) => {
                if done {
                    self.holds(transitions, began);
                }
                None
            }
        };
    }

    fn looks(&mut self, server: &Server, now: Duration) -> Option<Stage> {
        let found = server.record.as_ref();
        let transitions = match &mut self.role {
            Role::Holds(hold, transitions) => {
                if let Standing::Lost(_) = standing(self.name, *transitions, found) {
                    hold.end();
                    self.role = Role::Waits(Candidate::new(self.name));
                    return None;
                }
                *transitions
            }
            Role::Waits(candidate) => match candidate.look(found.cloned(), now, now) {
                Verdict::Wait { .. } => return None,
                Verdict::Take { transitions, .. } => transitions,
            },
        };
        let renewed = i64::try_from(server.version).ok();
        let record = Record {
            renewed,
            ..held(self.name, transitions)
        };
        Some(Stage::Writes(record, server.version))
    }

    fn holds(&mut self, transitions: i32, began: Duration) {
        match &mut self.role {
            Role::Holds(hold, _) => hold.renewed(began),
            Role::Waits(_) => self.role = Role::Holds(Hold::taken(began), transitions),
        }
    }

    /// It ends in good order: the Lease goes back as its last act, if it is still its own.
    fn ends(&mut self, server: &mut Server) {
        if let Role::Holds(_, transitions) = self.role {
            if standing(self.name, transitions, server.record.as_ref()) == Standing::Held {
                let version = server.version + 1;
                *server = Server {
                    record: Some(held("", transitions)),
                    version,
                };
            }
            self.asking = None;
            self.role = Role::Waits(Candidate::new(self.name));
        }
    }
}

/// The next step: the agent's index, the delay in milliseconds, and a percentage that picks the action.
type Step = (usize, u64, u32);

/// Returns the holder's hold after these steps; an error if two of them wrote at one time.
fn play(paces: [u32; 3], steps: &[Step]) -> Result<i32, String> {
    let names = ["pod-a", "pod-b", "pod-c"];
    let mut agents: Vec<Agent> = names
        .into_iter()
        .zip(paces)
        .map(|(name, pace)| Agent::new(name, pace))
        .collect();
    let (mut server, mut real) = (Server::default(), SECOND);
    for (which, millis, fate) in steps {
        real += Duration::from_millis(*millis);
        let agent = &mut agents[*which];
        match fate {
            0 => agent.ends(&mut server),
            fate => agent.goes_on(&mut server, real, *fate < 15),
        }
        let writers: Vec<&Agent> = agents.iter().filter(|agent| agent.writes(real)).collect();
        if writers.len() > 1 {
            return Err(format!("after {real:?} write {writers:?}"));
        }
    }
    Ok(server.record.map_or(0, |record| record.transitions))
}

fn paces() -> [std::ops::RangeInclusive<u32>; 3] {
    let error = PACE_ERROR_PERCENT_MAX * 10;
    [(); 3].map(|()| 1_000 - error..=1_000 + error)
}

proptest! {
    /// For any delay and loss, and any pause of any agent.
    #[test]
    fn there_are_never_two_writers(paces in paces(), steps in proptest::collection::vec((0..3_usize, 0..900_u64, 0..100_u32), 1..800)) {
        play(paces, &steps).map_err(TestCaseError::fail)?;
    }
}

/// The property above is not empty: a leader that fell silent is replaced, and one that ends in good order at once.
#[test]
fn the_lease_goes_from_hand_to_hand() {
    let round = |agent: usize| [(agent, 250, 50); 4];
    let first = round(0);
    let killed = [round(1); 8].concat();
    let before = [&first[..], &killed[..26]].concat();
    assert_eq!(play([1_000; 3], &before), Ok(1), "six seconds by its own clock");
    let after = [&first[..], &killed[..]].concat();
    assert_eq!(play([1_000; 3], &after), Ok(2));
    let ended = [&first[..], &[(0, 10, 0)], &round(1)].concat();
    assert_eq!(play([1_000; 3], &ended), Ok(2));
}

#[test]
fn the_paces_that_are_stated_keep_writers_apart() {
    let error = PACE_ERROR_PERCENT_MAX;
    let slow = RENEW_DEADLINE * 100 / (100 - error);
    let fast = DURATION * 100 / (100 + error);
    assert!(
        fast >= slow + SECOND,
        "{slow:?} {fast:?}: a second for what is on its way"
    );
    assert!(
        RENEW_DEADLINE >= 3 * RETRY_PERIOD,
        "a renewal that is lost costs nothing"
    );
}
