//! Owns: the world in which a test plays one story: two clusters that export one service.
//! Never: plays it.

use super::{
    draw::Draw,
    happening::{Named, What, named},
    script::{Script, Step},
};

/// A world in which two clusters export one service, and then a story happens to them.
pub(super) fn world(
    seed: u64,
    story: impl FnOnce(&mut Draw, usize, &[(usize, Named)]) -> Vec<What>,
) -> Script {
    let mut draw = Draw::new(seed);
    let clusters = 2;
    let name = named(&mut draw);
    let exported: Vec<(usize, Named)> = (0..clusters).map(|site| (site, name)).collect();
    let made = exported.iter().flat_map(|(site, name)| {
        [
            What::Namespace(*site, name.namespace),
            What::Service(*site, *name, 0),
            What::Slice(*site, *name, 0, 2),
            What::Export(*site, *name),
        ]
    });
    let mut all: Vec<What> = made.chain([What::Rest(false)]).collect();
    all.extend(story(&mut draw, clusters, &exported));
    all.push(What::Rest(false));
    let step = |what| Step {
        what,
        turns: 0,
        seed: draw.number(),
    };
    Script {
        seed,
        clusters,
        steps: all.into_iter().map(step).collect(),
    }
}
