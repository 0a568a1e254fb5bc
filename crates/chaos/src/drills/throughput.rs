//! What each way of not losing an update costs. The ways take turns, so that whatever else the machine does hits all of them.

use crate::articles::{Clients, Counter, Ran, Way};
use crate::drill::{Drill, Telling};
use crate::measure::{Sample, as_ms, series};
use crate::record::{Plot, Shape, Table};
use crate::{DrillError, Mark, Stage};
use lab::postgres::{Durability, Postgres};
use lab::redis::Redis;

pub(super) const DRILL: Drill = Drill {
    name: "throughput",
    about: "one counter, 8 clients, 3 rounds in turn: lock in Redis, SELECT … FOR UPDATE, one atomic UPDATE",
    needs: "PostgreSQL, Redis",
    quick: false,
    tell,
};

const ROUNDS: usize = 3;
/// In the order in which they should end.
const WAYS: [Way; 3] = [Way::Atomic, Way::ForUpdate, Way::RedisLock];

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let server = Redis::start()?;
        let redis = format!("redis://{}", server.address());
        // what a way costs is seen where the disk costs nothing
        let clients = Clients { database: stage.database()?.to_string(), redis, clients: 8, each: 50 };
        Counter::create_table(&clients.database).await?;
        let control = clients.run(Way::NoLock).await?;
        let seen = format!("{} of {}", control.value, control.expected);
        stage.tell("clients", Mark::Damage, format!("without a lock, {} operations/s: the counter says {seen}", control.rate()));
        stage.must_break("no lock", "updates are lost", seen, control.lost() > 0);
        let title = "3 rounds of 400 operations by 8 clients, PostgreSQL that does not wait for its disk";
        let medians = rounds(stage, &clients, title, ROUNDS).await?;
        stage.tell("director", Mark::Note, order(&medians));
        let bars = WAYS.iter().zip(medians).map(|(way, median)| series(&way.to_string(), [(0, median)])).collect();
        let title = "One counter, 8 clients: operations a second, median of 3 rounds".to_owned();
        stage.plot(Plot { title, x: String::new(), y: "operations/s".to_owned(), shape: Shape::Bars, series: bars });
        // and what is left of it where every commit waits for the disk, and the row with it
        let flushing = Postgres::start(Durability::Real)?;
        let clients = Clients { database: flushing.url().to_string(), each: 10, ..clients };
        Counter::create_table(&clients.database).await?;
        let title = "1 round of 80 operations by 8 clients, PostgreSQL that flushes every commit to this machine's disk";
        rounds(stage, &clients, title, 1).await.map(drop)
    })
}

/// The medians of the rates, after a table of everything.
async fn rounds(stage: &Stage, clients: &Clients, title: &str, count: usize) -> Result<Vec<u64>, DrillError> {
    let mut rounds: [Vec<Ran>; 3] = Default::default();
    for round in 1..=count {
        for (way, ran) in WAYS.iter().zip(&mut rounds) {
            let this = clients.run(*way).await?;
            let text = format!("round {round}, {way}: {} operations/s, the counter says {}", this.rate(), this.value);
            stage.tell("clients", if this.lost() > 0 { Mark::Damage } else { Mark::Write }, text);
            ran.push(this);
        }
    }
    let mut table =
        Table::new(title, ["arm", "ops/s, median", "ops/s, range", "in the articles", "p50 ms", "p99 ms", "final values"]);
    let medians = WAYS.iter().zip(&rounds).map(|(way, ran)| show(stage, &mut table, *way, ran)).collect();
    stage.table(table);
    Ok(medians)
}

/// Which place the articles give it.
const fn in_the_articles(way: Way) -> &'static str {
    match way {
        Way::RedisLock => "slowest",
        Way::ForUpdate => "between",
        Way::Atomic => "fastest",
        Way::NoLock => "-",
    }
}

/// The median of its rates, after a row of everything.
fn show(stage: &Stage, table: &mut Table, way: Way, ran: &[Ran]) -> u64 {
    let rates = Sample::of(ran.iter().map(Ran::rate).collect());
    let latencies = Sample::all(ran.iter().map(|ran| &ran.latencies));
    let values = ran.iter().map(|ran| ran.value.to_string()).collect::<Vec<_>>().join(" ");
    stage.must_hold(&way.to_string(), "no update is lost", values.clone(), ran.iter().all(|ran| ran.lost() == 0));
    let (median, range) = (rates.at(500), format!("{}-{}", rates.at(0), rates.at(1_000)));
    table.row([
        way.to_string(),
        median.to_string(),
        range,
        in_the_articles(way).to_owned(),
        as_ms(latencies.at(500)),
        as_ms(latencies.at(990)),
        values,
    ]);
    median
}

/// An order is a figure of this machine and hour, and no verdict: where it is another, it is said.
fn order(medians: &[u64]) -> String {
    let ways = WAYS.iter().zip(medians).map(|(way, median)| format!("{way} {median}/s")).collect::<Vec<_>>().join(", ");
    let not = if medians.is_sorted_by(|faster, slower| faster > slower) { "" } else { "NOT " };
    format!("{not}in the expected order (atomic update > for update > redis lock), by medians: {ways}")
}
