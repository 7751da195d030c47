//! Owns: what became of the mutants, as a table and a list of survivors.
//! Never: runs one.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::judge::Fate;

/// The result of one mutant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MutantResult {
    /// Its name.
    pub(super) mutant: String,
    /// The room it is in.
    pub(super) room: String,
    /// Its fate.
    pub(super) fate: Fate,
}

const FATES: [Fate; 5] = [
    Fate::Refused,
    Fate::Unfit,
    Fate::Seen,
    Fate::Timeout,
    Fate::Survived,
];

/// The table in Markdown, the survivors, and the sum in the last line.
pub(super) fn text(outcomes: &[MutantResult], sampled_of: Option<usize>, took: Duration) -> String {
    let mut rooms: BTreeMap<&str, BTreeMap<Fate, usize>> = BTreeMap::new();
    for outcome in outcomes {
        for room in [&*outcome.room, "all"] {
            *rooms.entry(room).or_default().entry(outcome.fate).or_default() += 1;
        }
    }
    let all = rooms.remove("all").unwrap_or_default();
    let mut lines = vec![
        "| room | mutants | refused by the compiler | not in the build | seen | timeout | survived |"
            .to_owned(),
        "|---|--:|--:|--:|--:|--:|--:|".to_owned(),
    ];
    let row = |room: String, fates: &BTreeMap<Fate, usize>| {
        let numbers = [fates.values().sum::<usize>()]
            .into_iter()
            .chain(FATES.map(|fate| count(fates, fate)));
        let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
        format!("| {room} | {} |", numbers.join(" | "))
    };
    lines.extend(rooms.iter().map(|(room, fates)| row(format!("`{room}`"), fates)));
    lines.push(row("all".to_owned(), &all));
    lines.push(String::new());
    let survivors = outcomes.iter().filter(|outcome| outcome.fate == Fate::Survived);
    lines.extend(survivors.map(|outcome| format!("survived: {}", outcome.mutant)));
    let run: usize = [Fate::Seen, Fate::Timeout, Fate::Survived]
        .map(|fate| count(&all, fate))
        .iter()
        .sum();
    let sample = sampled_of.map_or(String::new(), |all| format!(" (a sample of {all})"));
    lines.push(format!(
        "{} mutants{sample}, {run} of them run: {} survived; {} s",
        outcomes.len(),
        count(&all, Fate::Survived),
        took.as_secs()
    ));
    lines.join("\n")
}

fn count(fates: &BTreeMap<Fate, usize>, fate: Fate) -> usize {
    fates.get(&fate).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_counted_and_survivors_named() {
        let outcome = |mutant: &str, room: &str, fate| MutantResult {
            mutant: mutant.to_owned(),
            room: room.to_owned(),
            fate,
        };
        let outcomes = [
            outcome("a", "x", Fate::Seen),
            outcome("b", "x", Fate::Survived),
            outcome("c", "y", Fate::Refused),
            outcome("d", "y", Fate::Timeout),
        ];
        let text = text(&outcomes, Some(100), Duration::from_secs(2));
        for line in [
            "| `x` | 2 | 0 | 0 | 1 | 0 | 1 |",
            "| all | 4 | 1 | 0 | 1 | 1 | 1 |",
            "survived: b",
            "4 mutants (a sample of 100), 3 of them run: 1 survived; 2 s",
        ] {
            assert!(text.lines().any(|said| said == line), "{text}");
        }
    }
}
