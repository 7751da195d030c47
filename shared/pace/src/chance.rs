//! The randomness of a process: jitter, ids, epochs. It is the system's, unless a simulation seeds it.
//! Nothing secret is made from it.

use std::cell::RefCell;

use rand::{
    RngExt, SeedableRng,
    distr::{Distribution, StandardUniform},
    rngs::StdRng,
};

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// A random value.
pub fn random<T>() -> T
where
    StandardUniform: Distribution<T>,
{
    SEEDED.with_borrow_mut(|seeded| match seeded {
        Some(seeded) => seeded.random(),
        None => rand::random(),
    })
}

/// From now on what [`random`] gives on this thread is decided by the seed: a simulation runs on one thread and
/// must do the same twice. `None` gives the thread the system's randomness back.
pub fn seed_thread(seed: Option<u64>) {
    SEEDED.set(seed.map(StdRng::seed_from_u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_thread_repeats_itself_and_others_do_not() {
        let draw = |seed| {
            seed_thread(seed);
            [random::<u64>(), random()]
        };
        let (first, again, other) = (draw(Some(7)), draw(Some(7)), draw(Some(8)));
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_ne!(first[0], first[1]);
        let free = std::thread::spawn(|| [random::<u64>(), random()]);
        assert_ne!(draw(Some(7)), free.join().expect("no panic"));
        assert_ne!(draw(None), draw(None));
    }
}
