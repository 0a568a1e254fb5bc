//! The five servers of a redlock, and the story of one of them that forgets.

use super::redis_restart::locks;
use super::superseded::{Arm, Figures, Frozen, LONG, TakenOver, books};
use crate::books::Books;
use crate::{DrillError, Mark, Stage};
use lab::redis::{Options, Redis};

/// Servers that know nothing of each other: a lock is had by whoever has it on three.
pub(super) struct Nodes(Vec<Redis>);

/// The one that can have a clock of its own, and is in every majority of the stories.
const HINGE: usize = 2;

impl Nodes {
    pub(super) fn start(own_clock: bool) -> Result<Nodes, DrillError> {
        let start = |at| Redis::start_with(Options { own_clock: own_clock && at == HINGE, ..Options::default() });
        Ok(Nodes((0..5).map(start).collect::<Result<_, _>>()?))
    }

    /// These books with leases here.
    pub(super) fn keep<'a>(&self, books: &Books<'a>) -> Books<'a> {
        let urls: Vec<_> = self.0.iter().map(|node| format!("redis://{}", node.address())).collect();
        books.with("lease.backend", "redlock").with("lease.redlock.urls", urls.join(","))
    }

    /// Whether no server has a lock of anybody.
    pub(super) fn are_free(&self) -> Result<bool, DrillError> {
        let stored = self.0.iter().map(locks).collect::<Result<Vec<_>, _>>()?;
        Ok(stored.iter().all(String::is_empty))
    }

    pub(super) fn tell_before(&self, frozen: &Frozen<'_>) -> Result<(), DrillError> {
        self.each(|name, stored| frozen.tell_lock(name, stored))
    }

    pub(super) fn tell_after(&self, taken_over: &TakenOver<'_>) -> Result<(), DrillError> {
        self.each(|name, stored| taken_over.tell_lock(name, stored))
    }

    fn each(&self, tell: impl Fn(&str, &str)) -> Result<(), DrillError> {
        for (at, node) in self.0.iter().enumerate() {
            tell(&name(at), &locks(node)?);
        }
        Ok(())
    }
}

fn name(at: usize) -> String {
    format!("redis {}", at + 1)
}

/// A has a majority of three while two servers are down. They come back, and one of the three forgets its lock by `forget`: that makes
/// three who know of none.
pub(super) async fn one_forgets(
    stage: &Stage,
    arm: Arm,
    own_clock: bool,
    forget: impl Fn(&mut Redis, &str) -> Result<(), DrillError>,
) -> Result<Figures, DrillError> {
    let mut nodes = Nodes::start(own_clock)?;
    let books = nodes.keep(&books(stage, LONG)?);
    for at in [3, 4] {
        nodes.0[at].kill()?;
        stage.tell(&name(at), Mark::Kill, "down, as two of five may be");
    }
    let frozen = Frozen::before_its_write(stage, &books, arm, LONG).await?;
    for at in [3, 4] {
        nodes.0[at].start_again()?;
        stage.tell(&name(at), Mark::Start, "back again");
    }
    nodes.tell_before(&frozen)?;
    forget(&mut nodes.0[HINGE], &name(HINGE))?;
    frozen.tell_lock(&name(HINGE), &locks(&nodes.0[HINGE])?);
    let taken_over = frozen.taken_over().await?;
    nodes.tell_after(&taken_over)?;
    taken_over.woken().await
}
