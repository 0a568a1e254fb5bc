//! Five servers do not help a holder that pauses: its lease is over on all of them, and it does not know.

use super::redlock_nodes::Nodes;
use super::superseded::{Arm, Frozen, SHORT, books, figures};
use crate::drill::{Drill, Telling};
use crate::instance::PATIENCE;
use crate::stage::until;
use crate::{Mark, Stage};

pub(super) const DRILL: Drill = Drill {
    name: "redlock-pause",
    about: "a holder of a redlock is frozen past its TTL: five servers give the lock on, the ledger refuses the late write",
    needs: "PostgreSQL, Redis",
    quick: true,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let nodes = Nodes::start(false)?;
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let books = nodes.keep(&books(stage, SHORT)?);
            let frozen = Frozen::before_its_write(stage, &books, arm, SHORT).await?;
            nodes.tell_before(&frozen)?;
            until("the lock is over on every server", PATIENCE, async || Ok(nodes.are_free()?.then_some(()))).await?;
            stage.tell("director", Mark::Note, "the TTL is over on all five, and A does not know");
            let taken_over = frozen.taken_over().await?;
            nodes.tell_after(&taken_over)?;
            rows.push(taken_over.woken().await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}
