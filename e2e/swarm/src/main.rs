//! `cargo sim`: worlds of simulated clusters, agents and a hub, each decided by one seed.

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Parser;
use oracle::{
    seeds::{Seeds, Simulation},
    shorten::Effort,
};
use tributary_swarm::{
    Failure, WorldResult,
    args::{Arguments, Command},
    happening::in_words,
    run::{Broken, Swarmed, play_caught, swarm},
    script::{Script, Size, draw},
    shrink::shrink,
};
use variants::{mutants, planted};

/// A world is mostly small allocations: JSON, keys, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Interval of showing progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// Longest search for a short script that somebody asked for. A script of a few dozen steps needs less.
const EFFORT: Effort = Effort {
    tries: 2_000,
    time: Duration::from_secs(3_600),
};
/// The same where nobody did.
const FRESH_EFFORT: Effort = Effort {
    time: Duration::from_secs(60),
    ..EFFORT
};

fn main() -> ExitCode {
    play(Arguments::parse()).unwrap_or_else(|error| {
        eprintln!("Error: {error:#}");
        ExitCode::FAILURE
    })
}

fn play(Arguments { size, command }: Arguments) -> anyhow::Result<ExitCode> {
    if !matches!(command, Command::Planted(_) | Command::Mutants(_)) {
        // A panic in a world is a failure of that world, and is reported as one.
        std::panic::set_hook(Box::new(|_| {}));
    }
    let passed = match command {
        Command::Run { seed, trace } => {
            if trace {
                trace_to_standard_error();
            }
            play_one(&draw(seed, size), size)
        }
        Command::Swarm {
            seed,
            seed_from: None,
            count,
            broken,
        } => play_many(size, &Seeds::range(seed, count), broken).1,
        Command::Swarm {
            seed_from: Some(text),
            count,
            broken,
            ..
        } => {
            let seeds = Seeds::fresh(simulation(size), &text, count);
            println!("{seeds}, derived from {text}");
            play_fresh(size, &seeds, broken)
        }
        Command::Meta { seed, count } => play_twice(size, seed, count),
        Command::Replay { files, trace } => replay(&files, size, trace)?,
        Command::Planted(arguments) => planted::run(&arguments)?,
        Command::Mutants(arguments) => mutants::run(&arguments).map(|()| true)?,
        Command::Shrink { seed } => shrink_one(size, seed),
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The first script that breaks a law ends it; a file that is no script does before anything is played.
fn replay(files: &[PathBuf], size: Size, trace: bool) -> anyhow::Result<bool> {
    let scripts: Vec<Script> = files
        .iter()
        .map(|file| {
            let named = file.display();
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {named}"))?;
            serde_json::from_str(&text).with_context(|| format!("{named} is no script"))
        })
        .collect::<anyhow::Result<_>>()?;
    if trace {
        trace_to_standard_error();
    }
    Ok(scripts.iter().all(|script| play_one(script, size)))
}

fn trace_to_standard_error() {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr);
    lines.without_time().with_max_level(tracing::Level::DEBUG).init();
}

fn play_one(script: &Script, size: Size) -> bool {
    match play_caught(script) {
        Ok(outcome) => {
            print!("{}", outcome.seen);
            println!(
                "seed {}: {} steps, every law held",
                script.seed,
                script.steps.len()
            );
            true
        }
        Err(failure) => {
            let broken = Broken {
                seed: script.seed,
                failure,
                script: script.clone(),
            };
            report(size, &broken);
            false
        }
    }
}

fn report(size: Size, broken: &Broken) {
    let Broken {
        seed,
        failure,
        script,
    } = broken;
    let steps = script.steps.len();
    match script.steps.get(failure.step) {
        Some(step) => println!("step {} of {steps}: {}", failure.step, in_words(&step.what)),
        None => println!("after its {steps} steps"),
    }
    let large = size == Size::Large;
    println!(
        "again: {}; shorter: {}",
        advice::sim_run(*seed, large),
        advice::sim_shrink(*seed, large)
    );
    println!("seed {seed}: BROKEN: {}", failure.what);
}

fn simulation(size: Size) -> Simulation {
    match size {
        Size::Small => Simulation::Small,
        Size::Large => Simulation::Large,
    }
}

/// Plays seeds that nobody may have played before: a history that breaks a law is printed in short.
fn play_fresh(size: Size, seeds: &Seeds, broken_max: u64) -> bool {
    let (swarmed, passed) = play_many(size, seeds, broken_max);
    for Broken { script, failure, .. } in &swarmed.broken {
        tell_short(&shrink(script, failure, FRESH_EFFORT), script.steps.len());
    }
    passed
}

fn play_many(size: Size, seeds: &Seeds, broken_max: u64) -> (Swarmed, bool) {
    let began = Instant::now();
    let said = Mutex::new(began);
    let swarmed = swarm(size, seeds, broken_max, |done| {
        if let Ok(mut said) = said.try_lock()
            && said.elapsed() >= PROGRESS_INTERVAL
        {
            *said = Instant::now();
            eprintln!("{done} of {} seeds after {:.0?}", seeds.count(), began.elapsed());
        }
    });
    print!("{}", swarmed.seen);
    let took = began.elapsed();
    let rate = swarmed.played as f64 / took.as_secs_f64();
    let verdict = swarmed.seen.verdict(seeds.count(), swarmed.broken.len());
    if !swarmed.broken.is_empty() {
        println!("{} seeds held every law", swarmed.played);
        swarmed.broken.iter().for_each(|broken| report(size, broken));
    }
    if let Some(doubt) = verdict.doubt() {
        println!("{seeds}: every law held, but {doubt}");
    }
    if verdict.passed() {
        println!("{seeds} in {took:.1?} ({rate:.0} a second): every law held");
    }
    let passed = verdict.passed();
    (swarmed, passed)
}

fn play_twice(size: Size, seed: u64, count: u64) -> bool {
    for seed in seed..seed + count {
        let script = draw(seed, size);
        let (once, again) = (play_caught(&script), play_caught(&script));
        if once != again {
            println!(
                "seed {seed}: NOT DETERMINISTIC: once {}, and then {}",
                ended(&once),
                ended(&again)
            );
            return false;
        }
    }
    println!("{count} seeds from {seed} on, each played twice: the same messages and the same log");
    true
}

/// The end of a world, which a second play of it must repeat.
fn ended(played: &Result<WorldResult, Failure>) -> String {
    match played {
        Ok(outcome) => format!("every law held, with the digest {}", outcome.digest()),
        Err(Failure { step, what }) => format!("step {step} broke a law: {what}"),
    }
}

fn shrink_one(size: Size, seed: u64) -> bool {
    let script = draw(seed, size);
    let Err(failure) = play_caught(&script) else {
        println!("seed {seed}: every law held, there is nothing to make shorter");
        return true;
    };
    tell_short(&shrink(&script, &failure, EFFORT), script.steps.len());
    false
}

/// The script goes to standard output, for `replay`; the rest is for people.
fn tell_short((short, failure): &(Script, Failure), of: usize) {
    for step in &short.steps {
        eprintln!("{}, then {} turns", in_words(&step.what), step.turns);
    }
    let script = serde_json::to_string(short);
    println!("{}", script.expect("a script is plain values"));
    eprintln!(
        "seed {}: {} of {of} steps break it: {}",
        short.seed,
        short.steps.len(),
        failure.what
    );
}
