//! Owns: the laws of the source tree that a compiler does not check: pure rooms, edges, circles, reach, sizes, openings,
//! where the commands that messages advise are written, that messages are words, that a name means one thing, and that the
//! gate leaves nothing out.
//! Never: judges behaviour; it reads text only.

mod advice;
mod circles;
mod edges;
mod gate;
mod names;
mod purity;
mod raw;
mod reach;
mod rooms;
mod shape;
mod source;

use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = purity::trials();
    trials.extend(advice::trials());
    trials.extend(circles::trials());
    trials.extend(edges::trials());
    trials.extend(gate::trials());
    trials.extend(names::trials());
    trials.extend(raw::trials());
    trials.extend(reach::trials());
    trials.extend(shape::trials());
    trials.extend(source::trials());
    trials
}
