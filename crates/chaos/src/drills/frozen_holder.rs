//! A holder stops, its lock runs out, another takes it, and the first goes on as if nothing had happened.

mod release;
mod settlement;

use crate::actors::Part;
use crate::actors::holder::{Did, Guard, Holder};
use crate::articles::Counter;
use crate::drill::{Drill, Telling};
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use lab::redis::Redis;

pub(super) const DRILL: Drill = Drill {
    name: "frozen-holder",
    about: "a holder of a Redis lock is frozen past its TTL: what a check, a renewal timer, a release by nonce and a fence do about it",
    needs: "PostgreSQL, Redis",
    quick: true,
    tell,
};

const TTL_MS: u64 = 1_000;

/// Arm, guard, renewal timer, and whether the late write is stopped.
const ARMS: [(&str, Guard, bool, bool); 6] = [
    ("no protection", Guard::Nothing, false, false),
    ("check before write", Guard::Check, false, false),
    ("fence", Guard::Fence, false, true),
    ("renewal timer", Guard::Nothing, true, false),
    ("check, renewal timer", Guard::Check, true, false),
    ("fence, renewal timer", Guard::Fence, true, true),
];

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let server = Redis::start()?;
        let (database, redis) = (stage.database()?.to_string(), format!("redis://{}", server.address()));
        Counter::create_table(&database).await?;
        let columns = ["arm", "final value", "expected", "rows of the late write", "outcome", "in the articles"];
        let mut table = Table::new(&format!("A frozen past its TTL of {TTL_MS} ms, B adds one, A wakes and writes"), columns);
        for (arm, guard, renews, protected) in ARMS {
            stage.tell("director", Mark::Note, format!("-- {arm}"));
            let (redis, database) = (redis.clone(), database.clone());
            let a =
                Holder { redis, database, name: arm.to_owned(), ttl_ms: TTL_MS, guard, renews, freezes: true, works_until: None };
            let (value, did) = both_add_one(stage, &a).await?;
            let outcome = if value == 2 { "refused, then added again" } else { "one update lost" };
            let (seen, rows) = (format!("{value} instead of 2, {} rows", did.first_rows), did.first_rows.to_string());
            if protected {
                stage.must_bite(arm, "the late write is refused", seen.clone(), did.first_rows == 0 && did.refused == 1);
                stage.must_hold(arm, "2, after a second try", value.to_string(), value == 2);
            } else {
                stage.must_break(arm, "one update is lost", seen, value == 1 && did.first_rows == 1);
            }
            let articles = match (guard, renews) {
                // they have no timer
                (_, true) => "-",
                (Guard::Fence, false) => "refused, 0 rows",
                (Guard::Nothing | Guard::Check, false) => "1",
            };
            table.row([arm, &value.to_string(), "2", &rows, outcome, articles].map(str::to_owned));
        }
        stage.table(table);
        release::tell(stage, &redis).await?;
        settlement::tell(stage, &database, &redis).await
    })
}

/// The counter after all, and what A did.
async fn both_add_one(stage: &Stage, of: &Holder) -> Result<(i64, Did), DrillError> {
    let mut counter = Counter::at(&of.database, &of.name).await?;
    counter.reset().await?;
    let mut a = stage.actor("A", &Part::Holder(of.clone()))?;
    a.wait_frozen().await?;
    // it tries until the lock has run out
    let mut b = stage.actor("B", &Part::Holder(Holder { freezes: false, ..of.clone() }))?;
    b.end_well::<Did>().await?;
    a.wake()?;
    let did = a.end_well().await?;
    let value = counter.read().await?;
    let mark = if value == 2 { Mark::Note } else { Mark::Damage };
    stage.tell("director", mark, format!("two clients added one each: the counter says {value}"));
    Ok((value, did))
}
