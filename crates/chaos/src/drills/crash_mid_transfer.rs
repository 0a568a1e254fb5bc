//! A lock says who may work. It does not say that the work is done whole.

use crate::actors::Part;
use crate::actors::transfer::{TABLES, Transfer, Way};
use crate::articles::statements;
use crate::drill::{Drill, Telling};
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use lab::redis::Redis;
use sqlx::{Connection, PgConnection};

pub(super) const DRILL: Drill = Drill {
    name: "crash-mid-transfer",
    about: "a process is killed between debit and credit: under a lock 100 are gone, in one transaction or in resumable steps they are not",
    needs: "PostgreSQL, Redis",
    quick: true,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let server = Redis::start()?;
        let (database, redis) = (stage.database()?.to_string(), format!("redis://{}", server.address()));
        statements(&database, TABLES).await?;
        let columns = ["arm", "after the kill", "after a second try", "expected", "outcome", "in the articles"];
        let mut table = Table::new("1000 + 1000, 100 moved, killed between debit and credit", columns);
        for way in [Way::Lock, Way::Transaction, Way::Steps] {
            let (arm, part) = (way.name(), Transfer { redis: redis.clone(), database: database.clone(), way, killed: true });
            let (code, _) = stage.actor("A", &Part::Transfer(part.clone()))?.end().await?;
            stage.must_bite(arm, "the process is killed in the middle", format!("code {code}"), code == -1);
            let killed = sum(&database, way).await?;
            stage.tell("director", Mark::Note, format!("{arm}: the accounts have {killed}"));
            // whoever starts it again starts all of it; only the steps know what was done
            let (code, _) = stage.actor("B", &Part::Transfer(Transfer { killed: false, ..part }))?.end().await?;
            stage.must_hold(arm, "the second try ends well", format!("code {code}"), code == 0);
            let again = sum(&database, way).await?;
            let whole = again == 2_000;
            let mark = if whole { Mark::Note } else { Mark::Damage };
            stage.tell("director", mark, format!("{arm}: after a second try the accounts have {again}"));
            match way {
                Way::Lock => stage.must_break(arm, "money is gone", format!("{killed}, then {again}"), killed == 1_900 && !whole),
                Way::Transaction => {
                    stage.must_hold(arm, "2000 at any time", format!("{killed}, then {again}"), killed == 2_000 && whole)
                }
                // between its steps the money is on the way, and the record of them says so
                Way::Steps => stage.must_hold(arm, "2000 when it is resumed", format!("{killed}, then {again}"), whole),
            }
            let outcome = if whole { "whole" } else { "100 lost" };
            let articles = if way == Way::Lock { "1900" } else { "2000" };
            table.row([arm, &killed.to_string(), &again.to_string(), "2000", outcome, articles].map(str::to_owned));
        }
        stage.table(table);
        Ok::<(), DrillError>(())
    })
}

async fn sum(database: &str, way: Way) -> Result<i64, DrillError> {
    let mut books = PgConnection::connect(database).await?;
    let sum = sqlx::query_scalar("SELECT sum(balance)::bigint FROM account WHERE way = $1").bind(way.name());
    Ok(sum.fetch_one(&mut books).await?)
}
