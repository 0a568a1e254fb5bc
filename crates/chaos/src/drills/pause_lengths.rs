//! How long processes really stop, and how often that is longer than a lease.

mod stopped;
mod throttle;

use crate::actors::Part;
use crate::actors::ticker::{Did, Load, Ticker};
use crate::drill::{Drill, Telling};
use crate::measure::{Sample, as_ms, series};
use crate::record::{Plot, Shape, Table};
use crate::{DrillError, Mark, Stage};
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "pause-lengths",
    about: "stalls of a thread that ticks every ms, under loads and stops, against times to live: how often is a lease outlived",
    needs: "PostgreSQL, Redis",
    quick: false,
    tell,
};

/// How long each load is looked at.
const SPAN: Duration = Duration::from_secs(3);
const TTLS_MS: [u64; 7] = [100, 500, 1_000, 2_000, 5_000, 15_000, 30_000];
/// Of a thousand ticks, for the plot.
const QUANTILES: [u64; 5] = [500, 900, 990, 999, 1_000];

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let columns =
            ["load", "ticks", "p50 ms", "p99.9 ms", "longest ms", "0.1 s", "0.5 s", "1 s", "2 s", "5 s", "15 s", "30 s"];
        let mut shown =
            Shown { table: Table::new("Stalls of a thread, and how many were longer than a TTL", columns), lines: Vec::new() };
        for (arm, load) in
            [("nothing", Load::Nothing), ("allocation", Load::Allocation), ("8 busy threads, nice 19", Load::Crowd)]
        {
            let did = under(stage, load, |_| Ok(None::<()>)).await?;
            shown.add(arm, did.0);
        }
        match under(stage, Load::Busy, throttle::throttle).await? {
            (did, Some(_)) => shown.add("2 busy threads, 10 % of a CPU by cgroup", did),
            (_, None) => {
                stage.tell("director", Mark::Note, "no cgroup of this machine can be written: a quota of CPU was not tried")
            }
        }
        let stops = stopped::tell(stage).await?;
        let longest = stops.at(1_000);
        shown.add_sample("SIGSTOP of random lengths", &stops);
        stage.must_bite("SIGSTOP", "a stall is longer than a TTL of 0.5 s", format!("{} ms", as_ms(longest)), longest > 500_000);
        stage.table(shown.table);
        let (title, x, y) = ("How late a tick is".to_owned(), "of a thousand ticks".to_owned(), "microseconds".to_owned());
        stage.plot(Plot { title, x, y, shape: Shape::LogLines, series: shown.lines });
        Ok::<(), DrillError>(())
    })
}

/// How a process ticks under this load, and under whatever is done to it.
async fn under<T>(
    stage: &Stage,
    load: Load,
    to_it: impl FnOnce(u32) -> Result<Option<T>, DrillError>,
) -> Result<(Did, Option<T>), DrillError> {
    let over = stage.path(&format!("over-{}", stage.events().len()));
    let mut a = stage.actor("A", &Part::Ticker(Ticker { load, holds: None, over: over.clone() }))?;
    a.wait_for("ticks every ms").await?;
    let done = to_it(a.process.pid())?;
    tokio::time::sleep(SPAN).await;
    std::fs::write(&over, "").map_err(DrillError::io("telling A that it is over"))?;
    Ok((a.end_well().await?, done))
}

struct Shown {
    table: Table,
    lines: Vec<crate::record::Series>,
}

impl Shown {
    fn add(&mut self, arm: &str, did: Did) {
        self.add_sample(arm, &Sample::of(did.late_us));
    }

    fn add_sample(&mut self, arm: &str, late: &Sample) {
        let outlived = TTLS_MS.map(|ms| late.above(ms * 1_000).to_string());
        let [p50, p999, longest] = [500, 999, 1_000].map(|per_mille| as_ms(late.at(per_mille)));
        let [a, b, c, d, e, f, g] = outlived;
        self.table.row([arm.to_owned(), late.len().to_string(), p50, p999, longest, a, b, c, d, e, f, g]);
        let at = |per_mille: u64| (per_mille, late.at(usize::try_from(per_mille).unwrap_or(1_000)).max(1));
        self.lines.push(series(arm, QUANTILES.map(at)));
    }
}
