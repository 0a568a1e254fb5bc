//! R14: the database is lost in the middle of everything, and comes back. On a server of each test's own.

use crate::serve::{get, metric};
use crate::world::{Instance, World, nightly, wait_until};
use lab::postgres::{Durability, Postgres};
use lab::trials::Suite;
use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = match nightly() {
        // more than a minute of waiting
        true => suite.with_postgres("a database that falls silent for good ends the instance", |_| fallen_silent()),
        false => suite,
    };
    suite
        .with_postgres("R14 the database is lost during a run: the run goes on, and the next one is planned", |_| {
            lost_during_a_run()
        })
        .with_postgres("an instance that starts while the database is down says so, also behind a balancer", |_| {
            down_at_the_start()
        })
        .with_postgres("R10 idle instances ask rarely, and not together", |_| idle())
}

/// A balancer takes connections and closes them where no server is behind it: that is an outage too, and no answer of a database.
fn down_at_the_start() {
    let balancer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let behind_nothing = balancer.local_addr().expect("an address");
    // it ends with the test's process
    std::thread::spawn(move || {
        for connection in balancer.incoming() {
            let mut connection = connection.expect("a connection");
            // what is left unread would make it a reset
            let _ = connection.read(&mut [0; 1_024]);
        }
    });
    let mut server = Postgres::start(Durability::Off).expect("a server");
    let database = server.create_database("night").expect("a database");
    let direct = served(&World::postgres(&database));
    let url = format!("postgres://somebody@{behind_nothing}/night");
    let balanced = direct.with_more(&[("SETTLED__DATABASE__URL", &url)]);
    server.kill().expect("a kill");
    for (way, world) in [("directly", &direct), ("by a balancer", &balanced)] {
        for command in ["serve", "run"] {
            let (code, _, told) = world.settled(&[command]);
            assert_eq!(code, 4, "{command}, {way}: {told}");
            assert!(told.contains("cannot be reached"), "{command}, {way}: {told}");
        }
    }
}

fn served(world: &World) -> World {
    world.with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/3 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
        ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "2"),
    ])
}

fn runs(world: &World) -> usize {
    world.json(&["schedule", "history", "--limit", "1000", "--json"]).as_array().map_or(0, Vec::len)
}

fn lost_during_a_run() {
    let mut server = Postgres::start(Durability::Off).expect("a server");
    let world = served(&World::postgres(&server.create_database("night").expect("a database")));
    world.import_sample(1_500, 3);
    let mut instances: Vec<Instance> = (0..2).map(|n| world.start(&format!("s{n}"), &["serve"])).collect();
    wait_until("the run has begun", || world.settled_batches() > 0);
    server.kill().expect("a kill");
    // whoever works, or plans, meets it
    instances[0].wait_for("is out");
    // the process is well and of no use: nobody should start it again, nor send anything to it
    assert_eq!(get(&instances[0], "/healthz").0, 200);
    assert_eq!(get(&instances[0], "/readyz").0, 503);
    assert_eq!(metric(&instances[0], "settled_ledger_up").as_deref(), Some("0"));
    assert_eq!(metric(&instances[0], "settled_batches{state=\"pending\"}"), None, "what is not known is not shown");
    server.start_again().expect("the server again");
    let (before, at) = (runs(&world), world.settled_batches());
    assert!(at < 1_500, "the outage was in the middle of the run; settle more batches");
    wait_until("everything is settled", || world.settled_batches() == 1_500);
    wait_until("it is of use again", || get(&instances[0], "/readyz").0 == 200);
    wait_until("the next run is planned", || runs(&world) > before);
    for instance in &mut instances {
        instance.process.terminate().expect("a signal");
        let (code, _) = instance.end();
        assert_eq!(code, 0, "it waited, and went on: {}", instance.log());
    }
    world.assert_all_settled(1_500);
}

/// Its host is gone and nobody says so: what waits for an answer would wait for ever.
fn fallen_silent() {
    let mut server = Postgres::start(Durability::Off).expect("a server");
    let database = server.create_database("night").expect("a database");
    let world = served(&World::postgres(&database));
    let mut instance = world.start("served", &["serve"]);
    instance.wait_for("run finished");
    // between two statements it would find out and wait; here one is under way, and its answer never comes
    let held = std::thread::spawn(move || drop(database.query("BEGIN; LOCK TABLE run; SELECT pg_sleep(20)")));
    std::thread::sleep(Duration::from_secs(3));
    server.freeze().expect("a signal");
    let begun = Instant::now();
    instance.wait_for("stuck; ending");
    assert_eq!(instance.end().0, 4, "{}", instance.log());
    println!("ended after {} s of silence", begun.elapsed().as_secs());
    server.wake().expect("a signal");
    held.join().expect("no panic");
    world.json(&["verify", "--json"]);
}

/// The longest idle pause is the default one. Counted by the server: every statement outside of a transaction is one.
fn idle() {
    const INSTANCES: u8 = 6;
    let server = Postgres::start(Durability::Off).expect("a server");
    let database = server.create_database("idle").expect("a database");
    let world = World::postgres(&database).with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "0 3 1 1 *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
    ]);
    // a run is open, so that there is something to look for
    world.json(&["run", "--schedule", "nightly", "--json"]);
    let mut instances: Vec<Instance> = (0..INSTANCES).map(|n| world.start(&format!("s{n}"), &["serve"])).collect();
    instances.iter().for_each(|instance| drop(instance.wait_for("serving")));
    // a session that is idle tells its counts of the start only after ten seconds
    std::thread::sleep(Duration::from_secs(12));
    let count = || -> u64 {
        let text = database.query("SELECT xact_commit FROM pg_stat_database WHERE datname = 'idle'").expect("a count");
        text.trim().parse().expect("a number")
    };
    let (before, begun) = (count(), Instant::now());
    std::thread::sleep(Duration::from_secs(20));
    // the two counts themselves, and what the server's own workers do
    let asked = count().saturating_sub(before + 4);
    let per_hour = u128::from(asked) * 3_600_000 / begun.elapsed().as_millis() / u128::from(INSTANCES);
    println!("an idle instance asks {per_hour} times an hour; fifty: {} times a second", per_hour * 50 / 3_600);
    assert!(per_hour < 2_500, "{asked} in {:?} by {INSTANCES}", begun.elapsed());
    for instance in &mut instances {
        instance.process.terminate().expect("a signal");
        instance.end();
    }
}
