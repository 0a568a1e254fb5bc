//! Ten restarts during a run, as a deployment does them, and the same with the plug pulled.

use super::far::Far;
use crate::books::{Books, TTL};
use crate::drill::{Drill, Telling};
use crate::instance::{Instance, PATIENCE};
use crate::record::Table;
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use serde_json::Value;
use std::time::Duration;

pub(super) const DRILL: Drill = Drill {
    name: "deploy",
    about: "ten restarts of three instances during a run: asked to end they hand over, killed they leave a TTL of waiting and charges",
    needs: "PostgreSQL",
    quick: false,
    tell,
};

/// One more than there are units: there is always one that waits for work.
const NAMES: [&str; 3] = ["A", "B", "C"];
const UNITS: usize = 2;
const RESTARTS: usize = 10;
/// Of the other kind: each costs a TTL.
const KILLS: usize = 4;
const BATCHES: u32 = 320;
/// Each way to the database: slow enough for all restarts to come in the middle.
const AWAY: Duration = Duration::from_millis(6);
/// Who has a unit, by a lease that has not run out and by the ledger's word: `UNIT:FENCE|HOLDER`.
const HOLDERS: &str = "SELECT f.unit || ':' || f.generation || '.' || f.token, f.holder FROM unit_fence f
    JOIN lease l ON l.holder = f.holder AND l.name LIKE '%/unit/' || f.unit WHERE l.expires_at > clock_timestamp()";
/// Between two batches of a unit, in ms.
const LONGEST_WAIT: &str = "SELECT coalesce(max(1000 * extract(epoch FROM wait)), 0)::bigint FROM (SELECT
    settled_at - lag(settled_at) OVER (PARTITION BY unit ORDER BY settled_at) AS wait
    FROM settlement_batch WHERE state = 'settled') AS waits";

/// What was done to an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Asked,
    Killed,
}

/// What came of it.
struct Came {
    wait_ms: u64,
    charged: u64,
    during: usize,
    unclean: usize,
    /// Leases of those that ended, at their end: each has to run out.
    left: u64,
}

fn tell(stage: &Stage) -> Telling<'_> {
    Box::pin(async move {
        let columns =
            ["restarted with", "restarts", "during the run", "batches charged twice", "leases left behind", "longest wait, ms"];
        let mut table =
            Table::new(&format!("Restarts of three instances with {UNITS} units (TTL {} ms)", TTL.as_millis()), columns);
        let asked = arm(stage, "SIGTERM", (End::Asked, RESTARTS), &mut table).await?;
        stage.must_hold("SIGTERM", "no batch loses an attempt", format!("{} charged twice", asked.charged), asked.charged == 0);
        let unclean = format!("{} of {RESTARTS} did not", asked.unclean);
        stage.must_hold("SIGTERM", "every instance hands over and ends well", unclean, asked.unclean == 0);
        let must = "whoever ends leaves no lease behind";
        stage.must_hold("SIGTERM", must, format!("{} leases left behind", asked.left), asked.left == 0);
        let must = "no unit waits for as long as a TTL";
        let at_once = u128::from(asked.wait_ms) < TTL.as_millis();
        stage.must_hold("SIGTERM", must, format!("the longest wait was {} ms", asked.wait_ms), at_once);
        stage.must_bite("SIGTERM", "the restarts are during the run", format!("{} were", asked.during), asked.during == RESTARTS);
        let killed = arm(stage, "SIGKILL", (End::Killed, KILLS), &mut table).await?;
        // the last renewal was a third of a TTL ago at most
        let waits = u128::from(killed.wait_ms) >= TTL.as_millis() / 2;
        let must = "a killed instance charges the batch in its hands, and its unit waits for the end of its lease";
        let Came { wait_ms, charged, left, .. } = killed;
        let seen = format!("{charged} charged twice, {left} leases left behind, a wait of {wait_ms} ms");
        stage.must_break("SIGKILL", must, seen, charged > 0 && left > 0 && waits);
        stage.table(table);
        Ok(())
    })
}

async fn arm(stage: &Stage, name: &str, (end, restarts): (End, usize), table: &mut Table) -> Result<Came, DrillError> {
    let ledger = Far::new(stage, stage.database()?)?.having("worker.partitions", UNITS).take_in(BATCHES)?;
    ledger.way.delay(Duration::ZERO);
    let books = served(&ledger.far());
    let start = |n: usize| books.start(NAMES[n], &["serve"]);
    let mut instances = (0..NAMES.len()).map(start).collect::<Result<Vec<_>, _>>()?;
    for instance in &instances {
        instance.wait_for("serving").await?;
    }
    ledger.way.delay(AWAY);
    let (mut during, mut unclean, mut left) = (0, 0, 0);
    for restart in 0..restarts {
        ledger.more_settled(ledger.books.settled_batches().await? + 2).await?;
        let (n, holder) = at_work(&ledger, &instances, restart).await?;
        unclean += usize::from(!stop(stage, &ledger, &mut instances[n], (end, &holder)).await?);
        left += ledger.number(&format!("SELECT count(*) FROM lease WHERE holder = '{holder}'"))?;
        during += usize::from(ledger.books.settled_batches().await? < u64::from(BATCHES));
        instances[n] = start(n)?;
        instances[n].wait_for("serving").await?;
    }
    ledger.way.delay(Duration::ZERO);
    ledger.more_settled(u64::from(BATCHES) - 1).await?;
    let charged = ledger.number("SELECT count(*) FROM settlement_batch WHERE attempts > 1")?;
    let wait_ms = ledger.number(LONGEST_WAIT)?;
    let cells = [restarts as u64, during as u64, charged, left, wait_ms].map(|figure| figure.to_string());
    let [restarts, within, twice, behind, longest] = cells;
    table.row([name.to_owned(), restarts, within, twice, behind, longest]);
    for mut instance in instances {
        stop(stage, &ledger, &mut instance, (End::Asked, "")).await?;
    }
    ledger.must_be_settled(stage, name, BATCHES).await?;
    Ok(Came { wait_ms, charged, during, unclean, left })
}

/// Served as scheduled: often, so that the run begins soon.
fn served<'a>(books: &Books<'a>) -> Books<'a> {
    let books = books.with("schedule.nightly.cron", "* * * * * *").with("schedule.nightly.zone", "UTC");
    books.with("admin.listen", "127.0.0.1:0").with("serve.idle_poll_ms", 500).with("worker.poll_ms", 200)
}

/// One that has a unit now, and its id in the ledger; a different one each time if it can be.
async fn at_work(ledger: &Far<'_>, instances: &[Instance], restart: usize) -> Result<(usize, String), DrillError> {
    until("one of the instances has a unit", PATIENCE, async || {
        let rows = ledger.database.query(HOLDERS)?;
        let holders: Vec<(&str, &str)> = rows.lines().filter_map(|row| row.split_once('|')).collect();
        let has_a_unit = |n: usize| {
            let registered = registrations(&instances[n]);
            let (_, holder) = holders.iter().find(|(fence, _)| registered.iter().any(|own| own == fence))?;
            Some((n, (*holder).to_owned()))
        };
        Ok((0..NAMES.len()).map(|n| (n + restart) % NAMES.len()).find_map(has_a_unit))
    })
    .await
}

/// Every `UNIT:FENCE` that an instance was registered under.
fn registrations(instance: &Instance) -> Vec<String> {
    let of = |event: &Value| {
        let registered = event["message"].as_str()?.starts_with("registered");
        registered.then(|| Some(format!("{}:{}", event["unit"].as_i64()?, event["fence"].as_str()?)))?
    };
    instance.events().iter().filter_map(of).collect()
}

/// Ends it; `true` if it ended well.
async fn stop(stage: &Stage, ledger: &Far<'_>, instance: &mut Instance, (end, holder): (End, &str)) -> Result<bool, DrillError> {
    if end == End::Killed {
        kill_with_a_batch(ledger, instance, holder).await?;
        return Ok(false);
    }
    instance.process.terminate()?;
    stage.tell(instance.name(), Mark::Releases, "asked to end (SIGTERM): it finishes what it has begun and hands back the rest");
    Ok(instance.end().await?.0 == 0)
}

/// Killed at random, it has a batch in hand every other time; this looks before it kills.
async fn kill_with_a_batch(ledger: &Far<'_>, instance: &mut Instance, holder: &str) -> Result<(), DrillError> {
    let in_hand = format!(
        "SELECT count(*) FROM settlement_batch b JOIN unit_fence f ON f.unit = b.unit AND f.holder = b.holder
        WHERE b.state = 'settling' AND b.holder = '{holder}'"
    );
    until("it has a batch in hand", PATIENCE, async || {
        instance.process.freeze()?;
        // what it has sent arrives
        tokio::time::sleep(AWAY * 5).await;
        if ledger.number(&in_hand)? > 0 {
            return Ok(Some(()));
        }
        instance.process.wake()?;
        Ok(None)
    })
    .await?;
    instance.kill()
}
