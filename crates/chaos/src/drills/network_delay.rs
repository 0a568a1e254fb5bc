//! A lock service that is far away: who asks it once a unit, and who asks it once an operation.

mod guards;

use crate::articles::{Clients, Counter, Way};
use crate::drill::{Drill, Telling};
use crate::measure::{as_ms, per_second, series, times};
use crate::record::{Plot, Shape, Table};
use crate::{DrillError, Mark, Stage};
use guards::{Far, GUARDS};
use lab::proxy::Proxy;
use lab::redis::Redis;
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "network-delay",
    about: "lock service or database 1, 10, 50 ms away: a lease costs its round trips once a unit, a lock per operation once an operation",
    needs: "PostgreSQL, Redis, etcd",
    quick: false,
    tell,
};

/// There and back.
const AWAY_MS: [u64; 3] = [1, 10, 50];

/// What one way of working did at one distance.
struct Point {
    /// A tenth of one, so many a second.
    tenths: u64,
    /// Milliseconds each, as text: a mean, or p50 / p99.
    each: String,
}

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let columns = [
            "arm",
            "what is far away",
            "1 ms: /s",
            "10 ms: /s",
            "50 ms: /s",
            "1 ms: ms each",
            "10 ms: ms each",
            "50 ms: ms each",
            "1 ms : 50 ms",
        ];
        let mut table = Table::new("Batches (operations) a second and milliseconds each; distance there and back", columns);
        let mut lines = Vec::new();
        let mut factors = Vec::new();
        let [redis, etcd, of_database @ ..] = &GUARDS;
        for guard in [redis, etcd] {
            let points = guards::settle(stage, guard).await?;
            factors.push(factor(&points));
            show(stage, &mut table, &mut lines, (guard.name, guard.far.text()), &points);
        }
        // at once: what takes long there is the distance, and this machine has nothing to do meanwhile
        let [first, second, third] = of_database.each_ref().map(|guard| guards::settle(stage, guard));
        let (first, second, third) = tokio::try_join!(first, second, third)?;
        for (guard, points) in of_database.iter().zip([first, second, third]) {
            show(stage, &mut table, &mut lines, (guard.name, guard.far.text()), &points);
        }
        let points = per_operation(stage).await?;
        let lock = factor(&points);
        show(stage, &mut table, &mut lines, ("a lock per operation (redis)", Far::Locks.text()), &points);
        let leases = factors.into_iter().max().unwrap_or(0);
        let seen = format!("its rate falls {} times, that of a lease {} times", tenths(lock), tenths(leases));
        stage.must_break("a lock per operation", "it pays the distance with every operation", seen.clone(), lock > 30);
        stage.must_hold("lease", "it pays the distance once a unit: it falls at most half as much", seen, leases * 2 <= lock);
        stage.table(table);
        let (title, x, y) =
            ("Rate by distance".to_owned(), "ms there and back".to_owned(), "batches or operations in 10 s".to_owned());
        stage.plot(Plot { title, x, y, shape: Shape::LogLines, series: lines });
        Ok::<(), DrillError>(())
    })
}

fn show(stage: &Stage, table: &mut Table, lines: &mut Vec<crate::record::Series>, (arm, far): (&str, &str), points: &[Point; 3]) {
    let rates = points.each_ref().map(|point| tenths(point.tenths));
    stage.tell("director", Mark::Note, format!("{arm}, {far} away 1 / 10 / 50 ms: {}/s", rates.join(" / ")));
    let [near, mid, far_off] = rates;
    let [near_ms, mid_ms, far_ms] = points.each_ref().map(|point| point.each.clone());
    let falls = tenths(factor(points));
    table.row([arm.to_owned(), far.to_owned(), near, mid, far_off, near_ms, mid_ms, far_ms, falls]);
    lines.push(series(arm, AWAY_MS.into_iter().zip(points).map(|(ms, point)| (ms, point.tenths.max(1)))));
}

/// How many times faster at 1 ms than at 50 ms, in tenths.
fn factor([near, _, far]: &[Point; 3]) -> u64 {
    near.tenths * 10 / far.tenths.max(1)
}

fn tenths(of: u64) -> String {
    times(of, 10)
}

/// A server is so far away, there and back.
fn away(proxy: &Proxy, ms: u64) {
    proxy.delay(Duration::from_micros(ms * 500));
}

/// The article's: one client, a lock in Redis around every read-modify-write.
async fn per_operation(stage: &Stage) -> Result<[Point; 3], DrillError> {
    let server = Redis::start()?;
    let proxy = Proxy::start(server.address())?;
    let (database, redis) = (stage.database()?.to_string(), format!("redis://{}", proxy.address()));
    Counter::create_table(&database).await?;
    let mut points = Vec::new();
    for ms in AWAY_MS {
        away(&proxy, ms);
        // one: what it waits for is the distance, and nobody else
        let client = Clients { database: database.clone(), redis: redis.clone(), clients: 1, each: 15 };
        let ran = client.run(Way::RedisLock).await?;
        points.push(Point {
            tenths: per_second(ran.expected.unsigned_abs() * 10, ran.took),
            each: format!("p50 {}, p99 {}", as_ms(ran.latencies.at(500)), as_ms(ran.latencies.at(990))),
        });
    }
    three(points)
}

fn three(points: Vec<Point>) -> Result<[Point; 3], DrillError> {
    points.try_into().map_err(|_| DrillError::Story("a distance was not measured".to_owned()))
}
