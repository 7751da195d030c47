//! Effects of a policy on lost members and on members that withdraw too much at once, in sentences. Pure.

use model::policy::{Brake, Loss, LossAction};

use super::sentences::named;
use fold::PolicyOutcome;

/// Effects on lost members.
pub(super) fn of(outcome: &PolicyOutcome) -> Vec<String> {
    let mut effects = Vec::new();
    if let Some((now, then)) = &outcome.loss {
        effects.push(format!("lost members: {}; before: {}", loss(then), loss(now)));
        effects.extend(named(&outcome.withdrawn, |cluster| {
            format!("{cluster} is withdrawn now, and {}", becomes(then.action))
        }));
    }
    if let Some((now, then)) = &outcome.brake {
        effects.push(format!(
            "the mass-withdrawal hold: {}; before: {}",
            brake(then),
            brake(now)
        ));
    }
    effects.extend(named(&outcome.released, |(cluster, exports)| {
        format!("{cluster} is no longer on hold: {exports} exports that it withdrew go in every cluster")
    }));
    effects
}

fn loss(loss: &Loss) -> String {
    if loss.action == LossAction::Retain {
        return loss.action.to_string();
    }
    format!(
        "{} after {} s of silence, unless {} % are lost at one time (for {} s at most)",
        loss.action,
        loss.after_millis / 1_000,
        loss.self_preservation_percent,
        loss.self_preservation_millis / 1_000
    )
}

fn becomes(action: LossAction) -> &'static str {
    match action {
        LossAction::Withdraw => "its endpoints go wherever others have ready ones",
        LossAction::NotReady => "its endpoints are marked not ready wherever others have ready ones",
        LossAction::Retain => "its endpoints stay as it reported them last",
    }
}

fn brake(brake: &Brake) -> String {
    if !brake.enabled {
        return "off".to_owned();
    }
    let longest = match brake.longest_millis {
        Some(millis) => format!("for {} s at most", millis / 1_000),
        None => "until an operator decides".to_owned(),
    };
    format!(
        "for a member that withdraws {} exports and {} % of its own within {} s, {longest}",
        brake.exports,
        brake.percent,
        brake.within_millis as f64 / 1_000.0
    )
}

#[cfg(test)]
mod tests {
    use model::ClusterId;

    use super::*;

    #[test]
    fn what_changes_is_said_with_what_it_was_and_whom_it_concerns() {
        let id = |name: &str| ClusterId::new(name).expect("valid");
        let retain = Loss {
            action: LossAction::Retain,
            ..Loss::default()
        };
        let off = Brake {
            enabled: false,
            ..Brake::default()
        };
        let outcome = PolicyOutcome {
            loss: Some((Loss::default(), retain)),
            withdrawn: vec![id("west")],
            brake: Some((Brake::default(), off)),
            released: vec![(id("east"), 6)],
            ..PolicyOutcome::default()
        };
        let expected = [
            "lost members: retain; before: withdraw after 70 s of silence, unless 33 % are lost at one time (for 1800 s at most)",
            "west is withdrawn now, and its endpoints stay as it reported them last",
            "the mass-withdrawal hold: off; before: for a member that withdraws 5 exports and 50 % of its own within 30 s, for 900 s at most",
            "east is no longer on hold: 6 exports that it withdrew go in every cluster",
        ];
        assert_eq!(of(&outcome), expected);
        assert!(of(&PolicyOutcome::default()).is_empty());
    }
}
