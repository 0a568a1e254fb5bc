//! What only the file has: a gate, and processes that create it together.

use super::child::{Child, Task, go_file};
use super::place::Place;
use super::{Case, SHORT, acquire, acquire_within, keeper, name, run};
use std::fs::OpenOptions;
use std::time::Instant;

pub(crate) const CASES: &[Case] = &[
    ("ten processes open an empty file together (R12)", start_together),
    ("a neighbour frozen inside the gate hangs nobody (R15)", frozen_neighbour),
];

fn start_together(place: &Place) {
    let mut children: Vec<Child> = (0..10).map(|_| Child::start(place, Task::Look)).collect();
    for child in &mut children {
        assert_eq!(child.says(), "ready");
    }
    std::fs::write(go_file(place), "").expect("the starting gun");
    for child in &mut children {
        assert_eq!(child.says(), "Ok(0)");
    }
}

fn frozen_neighbour(place: &Place) {
    run(async {
        let (mine, yours) = (keeper(place, SHORT), keeper(place, SHORT));
        let lease = acquire(&mine).await;
        let gate = format!("{}-lease.gate", place.words());
        let neighbour = OpenOptions::new().write(true).open(gate).expect("the gate");
        neighbour.lock().expect("nobody stays inside");

        let start = Instant::now();
        yours.try_acquire(&name()).await.expect_err("nobody gets in");
        assert!(start.elapsed() < SHORT, "hung for {:?}", start.elapsed());
        lease.lost().await;

        drop(neighbour);
        acquire_within(&yours, SHORT * 2).await;
    });
}
