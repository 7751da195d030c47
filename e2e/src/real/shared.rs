//! Owns: the one fleet that the tests of a process share, started by the first that asks.
//! Never: ignores or fails a test (`suite` does).

use super::{Error, Fleet, Options, ServiceFamilies};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Mutex;

/// The clusters of the shared fleet.
pub const CLUSTERS: [&str; 3] = ["east", "west", "north"];

enum State {
    NotStarted,
    Running(Arc<Fleet>),
    Failed(Arc<Error>),
}

static STATE: Mutex<State> = Mutex::const_new(State::NotStarted);
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Chooses how the shared fleet will be started. Call it once, before the first test.
pub fn configure(options: Options) -> Result<(), Error> {
    let refused = |_| Error::Usage("the shared fleet is configured once, before the first test".to_owned());
    OPTIONS.set(options).map_err(refused)
}

/// The shared fleet. A start that failed is not tried again: every test gets the same reason.
pub async fn fleet() -> Result<Arc<Fleet>, Arc<Error>> {
    let mut state = STATE.lock().await;
    if matches!(*state, State::NotStarted) {
        *state = match Fleet::start(&CLUSTERS, options()).await {
            Ok(fleet) => State::Running(Arc::new(fleet)),
            Err(error) => State::Failed(Arc::new(error)),
        };
    }
    match &*state {
        State::Running(fleet) => Ok(Arc::clone(fleet)),
        State::Failed(error) => Err(Arc::clone(error)),
        State::NotStarted => Err(Arc::new(Error::Usage(
            "the shared fleet was never started".to_owned(),
        ))),
    }
}

/// Waits for the caller's turn, blocking its thread: for tests, not for tasks. Agents act on whole clusters, so
/// scenarios on the shared fleet take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The version the shared clusters report, when they run.
pub async fn git_version() -> Option<String> {
    match &*STATE.lock().await {
        State::Running(fleet) => fleet
            .clusters()
            .first()
            .map(|cluster| cluster.git_version().to_owned()),
        State::NotStarted | State::Failed(_) => None,
    }
}

/// Stops the shared fleet, if it runs, and removes its files. Statics are never dropped: the end of the
/// process would stop the clusters too, but leave the files.
pub async fn stop() {
    *STATE.lock().await = State::NotStarted;
}

fn options() -> Options {
    let default = || Options {
        service_families: ServiceFamilies::DualStack,
        ..Options::default()
    };
    OPTIONS.get().cloned().unwrap_or_else(default)
}
