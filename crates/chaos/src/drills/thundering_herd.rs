//! A thousand who want one lease, and what each release costs the service that keeps it.

mod counts;
mod herd;

use crate::drill::{Drill, Telling};
use crate::measure::{series, times, us};
use crate::record::{Plot, Shape, Table};
use crate::{DrillError, Mark, Stage};
use counts::Counts;
use herd::{Ran, keepers, pollers};
use lab::etcd::Etcd;
use lab::redis::Redis;
use lease::{EtcdConnector, EtcdOptions, PostgresConnector, RedisConnector, RedisOptions};

pub(super) const DRILL: Drill = Drill {
    name: "thundering-herd",
    about: "1,000 wait for one lease: requests per release of a line, of pauses with full jitter, and of polling every 10 ms",
    needs: "PostgreSQL, Redis, etcd",
    quick: false,
    tell,
};

/// Requests that a release may cost: that of its holder, those of the next one, and of whoever asks just then.
const EACH: u64 = 20;

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let (etcd, redis, database) = (Etcd::start()?, Redis::start()?, stage.database()?);
        let url = format!("redis://{}", redis.address());
        stage.books(&database).settled(&["migrate"])?;
        let columns =
            ["arm", "waiters", "requests/release", "requests/s while held", "releases", "seconds", "errors, asked again"];
        let title = format!(
            "One lease, each holder keeps it for {} ms; counted by the servers, Redis counts commands inside scripts too",
            herd::HELD_MS
        );
        herd::more_files()?;
        let mut shown = Shown { table: Table::new(&title, columns), plot: Vec::new() };

        let counts = Counts::Etcd(&etcd);
        let ran =
            keepers(&counts, herd::WAITERS, || Ok(Box::new(EtcdConnector::new(EtcdOptions::new(etcd.endpoints()))?))).await?;
        let line = shown.add(stage, "etcd, a line", &ran);
        stage.must_hold("etcd, a line", "at most 100 requests a release", format!("{line} requests"), line <= 100);

        let counts = Counts::Redis(&redis);
        let ran = keepers(&counts, herd::WAITERS, || Ok(Box::new(RedisConnector::new(RedisOptions::new(&url))?))).await?;
        let jitter = shown.add(stage, "redis, full jitter", &ran);
        by_the_clock(stage, "redis, full jitter", &ran);

        let counts = Counts::Database(&database);
        let ran = keepers(&counts, herd::WAITERS_OF_DATABASE, || Ok(Box::new(PostgresConnector::new(&database)?))).await?;
        shown.add(stage, "database, full jitter", &ran);
        by_the_clock(stage, "database, full jitter", &ran);

        let ran = pollers(&Counts::Redis(&redis), &url).await?;
        let naive = shown.add(stage, "redis, every 10 ms", &ran);
        let seen = format!("{naive} requests, {} times those of full jitter", times(naive, jitter));
        let must = "a release costs at least twice what it costs with full jitter";
        stage.must_break("redis, every 10 ms", must, seen, naive >= jitter * 2);
        shown.show(stage);
        Ok::<(), DrillError>(())
    })
}

/// A release makes nobody ask: what is asked is asked by the clock, as while nothing is released. Each of the waiters asking once more at
/// a release would be beyond it.
fn by_the_clock(stage: &Stage, arm: &str, ran: &Ran) {
    let clock = ran.idle_rate * us(ran.took) / 1_000_000;
    let most = clock * 5 / 4 + ran.releases * EACH;
    let seen = format!("{} requests for {} releases, {clock} by the clock, so at most {most}", ran.requests, ran.releases);
    let must = format!("at most {EACH} requests a release, and a quarter, beyond what is asked while nothing is released");
    stage.must_hold(arm, &must, seen, ran.requests <= most);
}

struct Shown {
    table: Table,
    plot: Vec<crate::record::Series>,
}

impl Shown {
    /// Requests per release.
    fn add(&mut self, stage: &Stage, arm: &str, ran: &Ran) -> u64 {
        let each = ran.requests / ran.releases.max(1);
        stage.tell("waiters", Mark::Note, format!("{arm}: {} requests for {} releases", ran.requests, ran.releases));
        let ms = us(ran.took) / 1_000;
        let seconds = format!("{}.{}", ms / 1_000, ms / 100 % 10);
        let [waiters, each_one, idle] = [ran.waiters as u64, each, ran.idle_rate].map(|figure| figure.to_string());
        self.table.row([arm.to_owned(), waiters, each_one, idle, ran.releases.to_string(), seconds, ran.again.to_string()]);
        self.plot.push(series(arm, [(0, each)]));
        each
    }

    fn show(self, stage: &Stage) {
        stage.table(self.table);
        let title = "Requests per release".to_owned();
        let y = "requests".to_owned();
        stage.plot(Plot { title, x: String::new(), y, shape: Shape::Bars, series: self.plot });
    }
}
