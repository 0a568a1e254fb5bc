//! Instances that start together: R12 (they migrate together), R3 (they launch one run together); and files that come late: R16.

use crate::world::{Instance, World, number, on_both, wait_until, wider};
use lab::postgres::PostgresUrl;
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "R12 ten instances start at once on an empty database", |world, _| ten_on_empty(world));
    let suite = suite
        .with_postgres("R12 one that hangs while it migrates holds up nobody who has nothing to migrate", |database| {
            hangs_while_it_migrates(database)
        });
    let suite = on_both(suite, "R3 twenty concurrent runs of one date are one run", |world, _| twenty_runs(world));
    on_both(suite, "R16 what is imported while its run closes is settled by it or the next", |world, _| late_files(world))
}

fn start_many(world: &World, n: usize, arguments: &[&str]) -> Vec<Instance> {
    (0..n).map(|i| world.start(&format!("i{i}"), arguments)).collect()
}

/// It was cut off, or is frozen: the server keeps its session, and with it the lock under which sqlx migrates.
fn hangs_while_it_migrates(database: &PostgresUrl) {
    let world = World::postgres(database);
    world.import_sample(1, 1);
    let name = database.rsplit_once('/').expect("postgres://…/name").1;
    // 0x3d32ad9e is sqlx's own factor
    let lock = 0x3d32_ad9e_i64 * i64::from(crc32(name.as_bytes()));
    let held = database.clone();
    let hangs = std::thread::spawn(move || held.query(&format!("SELECT pg_advisory_lock({lock}); SELECT pg_sleep(60)")));
    wait_until("the lock is held", || {
        database
            .query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            .is_ok_and(|held| held.trim() == "1")
    });
    world.json(&["run", "--json"]);
    let ended =
        database.query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted").expect("a look");
    assert_eq!(ended.trim(), "t", "it waited until the lock was free");
    // its session was ended
    hangs.join().expect("no panic").expect_err("the lock was held until now");
}

/// As sqlx names the lock after the database: ISO-HDLC.
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

fn ten_on_empty(world: &World) {
    for mut instance in start_many(world, 10, &["run", "--json"]) {
        instance.end_well();
    }
    world.import_sample(3, 2);
    world.json(&["run", "--json"]);
    world.assert_all_settled(3);
}

/// Runs of one date begin and end all the time while files of that date arrive: no batch falls between two of them.
fn late_files(world: &World) {
    let day = |n| chrono::NaiveDate::from_ymd_opt(2026, 1, n).expect("a date");
    let files: Vec<_> =
        (1..=12).map(|n| world.file(&format!("{n}.csv"), intake::sample::canonical(4, 3, day(n), u64::from(n)))).collect();
    let mut settled = 0;
    for (n, file) in files.iter().enumerate() {
        let mut closing = world.start(&format!("closing{n}"), &["run", "--json", "--business-date", "2026-02-01"]);
        world.import(file, "canonical-csv");
        settled += number(&closing.end_well(), "batches_settled");
    }
    println!("settled by the run that was closing: {settled} of 48");
    settled += number(&world.json(&["run", "--json", "--business-date", "2026-02-01"]), "batches_settled");
    assert_eq!(settled, 48, "each by one of them");
    world.assert_all_settled(48);
}

fn twenty_runs(world: &World) {
    let batches = wider(200);
    world.import_sample(batches, 2);
    let mut instances = start_many(world, 20, &["run", "--json", "--business-date", "2026-02-01"]);
    let did: Vec<_> = instances.iter_mut().map(Instance::end_well).collect();
    assert!(did.iter().all(|one| one["run_id"] == did[0]["run_id"]), "one run: {did:?}");
    assert_eq!(did.iter().map(|one| number(one, "batches_settled")).sum::<u64>(), u64::from(batches), "each once: {did:?}");
    world.assert_all_settled(batches.into());
}
