//! One suite, run over every backend. A new backend is one line in `main`.
//!
//! Most cases are black boxes over [`lease::Keeper`]; some speak to a [`lease::Backend`] directly, to say what the keeper would
//! never ask. Nothing here knows a backend, except the few cases named after one.

mod suite;

use lab::etcd::Etcd;
use lab::trials::Suite;
use std::process::ExitCode;
use std::sync::Arc;
use suite::place::{Place, RedisPlace, SharedEtcd, SharedRedis};
use suite::{
    CASES, DATABASE_CASES, capabilities, child, only_advisory, only_etcd, only_postgres, only_redis, only_redlock, only_sqlite,
};

fn main() -> ExitCode {
    // some cases start this binary again, as the process that is frozen or has a wrong clock
    if let Some(exit) = child::asked() {
        return exit;
    }
    let (mut trials, etcd, redis) = (Suite::new(), Arc::new(SharedEtcd::default()), Arc::new(SharedRedis::default()));
    for (name, case) in CASES {
        let shared = Arc::clone(&etcd);
        trials = trials.plain(&format!("etcd: {name}"), move || shared.place().map(|place| case(&place)));
        let shared = Arc::clone(&redis);
        trials = trials.plain(&format!("redis: {name}"), move || shared.place(1).map(|place| case(&Place::Redis(place))));
        let shared = Arc::clone(&redis);
        trials = trials.plain(&format!("redlock: {name}"), move || shared.place(5).map(|place| case(&Place::Redlock(place))));
        trials = trials.plain(&format!("sqlite: {name}"), || case(&Place::sqlite()));
        trials = trials.with_postgres(&format!("postgres: {name}"), |url| case(&Place::postgres(url)));
        trials = trials.with_postgres(&format!("postgres-advisory: {name}"), |url| case(&Place::advisory(url)));
    }
    for (name, case) in DATABASE_CASES {
        trials = trials.plain(&format!("sqlite: {name}"), || case(&Place::sqlite()));
        trials = trials.with_postgres(&format!("postgres: {name}"), |url| case(&Place::postgres(url)));
        trials = trials.with_postgres(&format!("postgres-advisory: {name}"), |url| case(&Place::advisory(url)));
    }
    for (name, case) in capabilities::CASES {
        trials = trials.plain(&format!("etcd: {name}"), || Etcd::start_three().map(|own| case(&Place::own_etcd(own))));
    }
    for (name, case) in capabilities::CASES.iter().chain(capabilities::CLOCK_CASES) {
        trials = trials.plain(&format!("redis: {name}"), || RedisPlace::own(1).map(|own| case(&Place::Redis(own))));
        trials = trials.plain(&format!("redlock: {name}"), || RedisPlace::own(5).map(|own| case(&Place::Redlock(own))));
        trials = trials.plain(&format!("sqlite: {name}"), || case(&Place::sqlite()));
        trials = trials.plain(&format!("postgres: {name}"), || {
            case(&Place::own_postgres()?);
            Ok::<_, lab::Error>(())
        });
        trials = trials.plain(&format!("postgres-advisory: {name}"), || {
            case(&Place::own_advisory()?);
            Ok::<_, lab::Error>(())
        });
    }
    trials = trials.plain("what each of them gives, as one table", capabilities::matrix);
    for (name, case) in only_sqlite::CASES {
        trials = trials.plain(&format!("sqlite only: {name}"), || case(&Place::sqlite()));
    }
    for (name, case) in only_postgres::CASES {
        trials = trials.with_postgres(&format!("postgres only: {name}"), |url| case(&Place::postgres(url)));
    }
    for (name, case) in only_advisory::CASES {
        trials = trials.with_postgres(&format!("postgres-advisory only: {name}"), |url| case(&Place::advisory(url)));
    }
    for (name, case) in only_advisory::POOLER_CASES {
        trials = trials.with_postgres(&format!("postgres-advisory only: {name}"), *case);
    }
    let stepped = "postgres-advisory only: a clock that steps forward ends no session early (L16)";
    trials = trials.plain(stepped, only_advisory::stepped_clock);
    for (name, case) in only_etcd::CASES {
        trials = trials.plain(&format!("etcd only: {name}"), case);
    }
    for (name, case) in only_redis::CASES {
        trials = trials.plain(&format!("redis only: {name}"), case);
    }
    for (name, case) in only_redlock::CASES {
        trials = trials.plain(&format!("redlock only: {name}"), case);
    }
    let exit = trials
        .with_postgres("postgres only: clocks three minutes wrong agree (L19)", |url| {
            only_postgres::wrong_clocks(&Place::postgres(url))
        })
        .run();
    etcd.stop();
    redis.stop();
    exit
}
