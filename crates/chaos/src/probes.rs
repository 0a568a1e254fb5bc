//! Several probes at once: each is told of every step, in order.

use domain::ids::BatchId;
use domain::step::{Probe, Step};
use std::sync::Arc;

/// The first ones know of a step before a later one ends the process there: who writes down comes before who kills.
pub struct Probes(Vec<Arc<dyn Probe>>);

impl Probes {
    /// All of them.
    #[must_use]
    pub fn in_order(probes: Vec<Arc<dyn Probe>>) -> Probes {
        Probes(probes)
    }
}

impl Probe for Probes {
    fn at(&self, step: Step) {
        self.0.iter().for_each(|probe| probe.at(step));
    }

    fn at_with(&self, step: Step, batches: &[BatchId]) {
        self.0.iter().for_each(|probe| probe.at_with(step, batches));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Notes(&'static str, Arc<Mutex<Vec<(&'static str, Step, usize)>>>);

    impl Probe for Notes {
        fn at(&self, step: Step) {
            self.at_with(step, &[]);
        }

        fn at_with(&self, step: Step, batches: &[BatchId]) {
            self.1.lock().expect("nobody panics").push((self.0, step, batches.len()));
        }
    }

    #[test]
    fn each_is_told_in_order_with_the_batches() {
        let notes = Arc::default();
        let probes: Vec<Arc<dyn Probe>> =
            vec![Arc::new(Notes("a", Arc::clone(&notes))), Arc::new(Notes("b", Arc::clone(&notes)))];
        let probes = Probes::in_order(probes);
        probes.at(Step::RunPlanned);
        probes.at_with(Step::Settled, &[BatchId(1), BatchId(2)]);
        let told = notes.lock().expect("nobody panics").clone();
        let (planned, settled) = (Step::RunPlanned, Step::Settled);
        assert_eq!(told, [("a", planned, 0), ("b", planned, 0), ("a", settled, 2), ("b", settled, 2)]);
    }
}
