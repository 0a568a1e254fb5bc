//! The oldest experiment about locks: eight clients read a counter, add one and write it back.

use crate::articles::{Clients, Counter, Ran, Way};
use crate::drill::{Drill, Telling};
use crate::measure::us;
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use lab::redis::Redis;

pub(super) const DRILL: Drill = Drill {
    name: "lost-update",
    about: "800 read-modify-writes of one counter by 8 clients: what is lost without a lock, and what a lock or one statement costs",
    needs: "PostgreSQL, Redis",
    quick: true,
    tell,
};

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let redis = Redis::start()?;
        let database = stage.database()?.to_string();
        Counter::create_table(&database).await?;
        let clients = Clients { database, redis: format!("redis://{}", redis.address()), clients: 8, each: 100 };
        let columns = ["arm", "expected", "final value", "lost", "lost in the articles", "total ms", "ops/s"];
        let mut table = Table::new("800 read-modify-writes by 8 clients, PostgreSQL", columns);
        for way in [Way::NoLock, Way::RedisLock, Way::Atomic] {
            let ran = clients.run(way).await?;
            let (arm, seen) = (way.to_string(), format!("{} of {}", ran.value, ran.expected));
            match way {
                Way::NoLock => stage.must_break(&arm, "updates are lost", seen.clone(), ran.lost() > 0),
                _ => stage.must_hold(&arm, "no update is lost", seen.clone(), ran.lost() == 0),
            }
            let mark = if ran.lost() > 0 { Mark::Damage } else { Mark::Write };
            stage.tell("clients", mark, format!("{way}: the counter says {seen}, {} lost", ran.lost()));
            row(&mut table, way, &ran);
        }
        stage.table(table);
        Ok::<(), DrillError>(())
    })
}

fn row(table: &mut Table, way: Way, ran: &Ran) {
    let articles = if way == Way::NoLock { "> 0" } else { "0" };
    let figures = [ran.expected, ran.value, ran.lost()].map(|figure| figure.to_string());
    let [expected, value, lost] = figures;
    table.row([
        way.to_string(),
        expected,
        value,
        lost,
        articles.to_owned(),
        (us(ran.took) / 1_000).to_string(),
        ran.rate().to_string(),
    ]);
}
