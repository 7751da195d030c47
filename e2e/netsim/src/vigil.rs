//! The law of every moment, whatever is broken: a right state stays right for as long as users leave it as it is. So
//! nothing that lives is deleted, narrowed or given another winner by any fault. While something is broken there may be
//! too much: objects that the hub was not told about yet, or those that a hub that lost its data sent before.

use std::collections::BTreeMap;

use oracle::{
    Judgement, Object, Parts, Picture, declared, import_shown, judge,
    laws::{Guarded, Law, Standing},
};
use sim::SimCluster;

/// A message that is older than this arrives no more: by then its session counts as dead. Until everything said
/// before has arrived or is lost, something can be right by chance and wrong again.
const IN_FLIGHT_LONGEST: u64 = 12_000;

/// A cluster, and what is judged there.
type JudgedObject = (String, Object);

/// Memory of one import.
struct Seen {
    declared: String,
    /// Since when users have declared just this, in simulated milliseconds.
    since: u64,
    /// Its content at the last look, if that was right.
    right: Option<Parts>,
}

/// Looks at the clusters again and again.
#[derive(Default)]
pub(super) struct Vigil {
    seen: BTreeMap<JudgedObject, Seen>,
    standing: Standing<JudgedObject>,
    revisions: Vec<u64>,
    judgement: Judgement,
    judged: u64,
    /// Nothing is broken, and everybody knows everything: nothing may be too much either.
    pub(super) calm: bool,
}

impl Vigil {
    /// Looks; an error is a law that was broken. Without a change in any cluster there is nothing to look at.
    pub(super) fn look<'a>(
        &mut self,
        at: u64,
        clusters: impl Iterator<Item = &'a SimCluster> + Clone,
    ) -> Result<(), String> {
        let revisions: Vec<u64> = clusters.clone().map(SimCluster::revision).collect();
        if revisions == self.revisions {
            return Ok(());
        }
        self.revisions = revisions;
        let picture = |cluster: &SimCluster| Picture::of(cluster.name(), |kind| cluster.objects(kind));
        self.see(at, &clusters.map(picture).collect::<Vec<_>>())
    }

    /// Something was done that the oracle does not know of: nothing counts as right any more, until it is looked at and is.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
        self.standing.retain(|_| false);
        self.revisions.clear();
        self.judgement = Judgement::default();
        self.calm = false;
    }

    /// Judges what the clusters hold at a moment.
    fn see(&mut self, at: u64, pictures: &[Picture]) -> Result<(), String> {
        self.judgement = judge(pictures);
        self.judged += self.judgement.guarded;
        let verdicts = &self.judgement.verdicts;
        self.seen.retain(|place, _| verdicts.contains_key(place));
        self.standing.retain(|place| verdicts.contains_key(place));
        for picture in pictures {
            let imports = verdicts.iter().filter(|((cluster, object), _)| {
                *cluster == picture.cluster && matches!(object, Object::Import(_))
            });
            for (place, verdict) in imports {
                let service = place.1.service();
                let shown = import_shown(picture, service);
                let declared = declared(pictures, service);
                let before = self.seen.remove(place);
                let same = before.filter(|before| before.declared == declared);
                let since = same.as_ref().map_or(at, |before| before.since);
                match same {
                    None => self.standing.release(place),
                    // What was right until now, and with nothing under way that could change it, stays so.
                    Some(before) if at >= since + IN_FLIGHT_LONGEST => {
                        if let Some(right) = before.right {
                            self.standing.stands(place.clone(), right);
                        }
                    }
                    Some(_) => {}
                }
                let broken = |why| Law::Stood.broken(format!("{service} in {}: {why}", place.0));
                self.standing.look(place, &shown).map_err(broken)?;
                if let (true, true, Err(why)) = (self.calm, self.standing.has(place), verdict) {
                    return Err(broken(format!(
                        "it was right and nothing is broken, but now: {why}"
                    )));
                }
                let right = verdict.is_ok().then_some(shown);
                self.seen.insert(
                    place.clone(),
                    Seen {
                        declared,
                        since,
                        right,
                    },
                );
            }
        }
        Ok(())
    }

    /// Faults at the last look.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.judgement.wrong().collect()
    }

    /// Number of objects judged at the last look.
    pub(super) fn judged(&self) -> usize {
        self.judgement.verdicts.len()
    }

    /// Objects guarded so far.
    pub(super) fn guarded(&self) -> Guarded {
        let mut guarded = Guarded::default();
        guarded.count(Law::Stood, self.standing.guarded());
        guarded.count(Law::Holds, self.judged);
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle::example::Example;

    /// Time at which everything under way has arrived.
    const LATER: u64 = IN_FLIGHT_LONGEST;

    /// A vigil that has seen east's export right in both clusters for long enough.
    fn after_it_was_right() -> (Vigil, Example) {
        let mut example = Example::new(&["east", "west"]);
        example.export("east", "cart");
        example.import_everywhere("cart");
        let mut vigil = Vigil::default();
        for at in [0, LATER] {
            vigil.see(at, &example.pictures()).expect("right");
        }
        assert_eq!(vigil.wrong(), Vec::<String>::new());
        (vigil, example)
    }

    #[test]
    fn what_was_right_then_too_much_and_then_lacking_is_raised() {
        let (mut vigil, mut example) = after_it_was_right();
        example.import_address("west", "cart", "10.9.9.9");
        vigil
            .see(LATER + 250, &example.pictures())
            .expect("too much may be");
        assert_eq!(vigil.wrong().len(), 1);
        example.remove("west", "ServiceImport", "cart");
        let raised = vigil.see(LATER + 500, &example.pictures()).unwrap_err();
        assert!(raised.contains(", the import, "), "{raised}");
    }

    #[test]
    fn what_was_right_and_is_lacking_is_raised() {
        let (mut vigil, mut example) = after_it_was_right();
        example.remove("west", "ServiceImport", "cart");
        assert!(vigil.see(LATER + 250, &example.pictures()).is_err());
    }

    #[test]
    fn what_users_change_may_go() {
        let (mut vigil, mut example) = after_it_was_right();
        example.remove("east", "ServiceExport", "cart");
        vigil.see(LATER + 250, &example.pictures()).expect("users did it");
        example.remove("west", "ServiceImport", "cart");
        vigil
            .see(LATER + 500, &example.pictures())
            .expect("and it follows");
    }

    #[test]
    fn what_was_right_by_chance_may_go_again() {
        let mut example = Example::new(&["east", "west"]);
        example.export("east", "cart");
        example.import_everywhere("cart");
        let mut vigil = Vigil::default();
        vigil.see(0, &example.pictures()).expect("right");
        example.remove("west", "ServiceImport", "cart");
        vigil
            .see(LATER - 1, &example.pictures())
            .expect("something old arrived");
    }

    #[test]
    fn what_stood_right_up_to_a_look_after_the_last_message_stays() {
        let mut example = Example::new(&["east", "west"]);
        example.export("east", "cart");
        example.import_everywhere("cart");
        let mut vigil = Vigil::default();
        vigil.see(0, &example.pictures()).expect("right");
        // Nothing changed in between, so nobody looked.
        example.remove("west", "ServiceImport", "cart");
        assert!(vigil.see(LATER, &example.pictures()).is_err());
    }

    #[test]
    fn when_nothing_is_broken_nothing_may_be_too_much() {
        let (mut vigil, mut example) = after_it_was_right();
        vigil.calm = true;
        example.import_address("west", "cart", "10.9.9.9");
        let raised = vigil.see(LATER + 250, &example.pictures()).unwrap_err();
        assert!(raised.contains("nothing is broken"), "{raised}");
    }
}
