//! Two majorities share one server. If that one starts again without what it had in memory, they share nothing. Redis' page asks that
//! such a server stays away for a TTL; nothing enforces it.

use super::redlock_nodes::one_forgets;
use super::superseded::{Arm, figures};
use crate::drill::{Drill, Telling};
use crate::{Mark, Stage};

pub(super) const DRILL: Drill = Drill {
    name: "redlock-node-restart",
    about: "one of five servers of a redlock starts again empty: two hold the lock, the ledger lets one of them write",
    needs: "PostgreSQL, Redis",
    quick: false,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let mut rows = Vec::new();
        for arm in Arm::BOTH {
            let restart = one_forgets(stage, arm, false, |node, name| {
                node.kill()?;
                stage.tell(name, Mark::Kill, "killed (SIGKILL), and nothing of it was on disk");
                node.start_again()?;
                stage.tell(name, Mark::Start, "starts again, empty");
                Ok(())
            });
            rows.push(restart.await?);
        }
        figures(stage, "A was frozen", &rows);
        Ok(())
    })
}
