//! Redis ends its keys by the wall clock. A server whose clock is set forward ends a lock long before its holder does.

use super::redlock_nodes::one_forgets;
use super::superseded::{Arm, LONG, figures};
use crate::drill::{Drill, Telling};
use crate::{Mark, Stage};

pub(super) const DRILL: Drill = Drill {
    name: "redlock-clock-jump",
    about: "the clock of one of five servers of a redlock is set forward: two hold the lock, the ledger lets one of them write",
    needs: "PostgreSQL, Redis, libfaketime",
    quick: false,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let jump = one_forgets(stage, arm, true, |node, name| {
                let ahead_s = 2 * LONG.as_secs();
                node.set_clock(&format!("+{ahead_s}s"))?;
                stage.tell(name, Mark::Fault, format!("its clock is set forward by {ahead_s} s"));
                Ok(())
            });
            rows.push(jump.await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}
