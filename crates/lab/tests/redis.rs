//! The Redis servers of the laboratory, in its own harness.

use std::{path::Path, process::ExitCode, time::Duration};

use lab::{
    Error,
    redis::{Options, Redis, Trio, fleet},
    trials::Suite,
};

fn main() -> ExitCode {
    Suite::new()
        .plain("a server answers, and is gone when dropped", answers_and_is_gone)
        .plain("a frozen server is gone too when dropped", frozen_is_gone)
        .plain("a killed server comes again on its port, empty", comes_again)
        .plain("a server keeps what its arguments say", keeps_what_is_asked)
        .plain("a fleet is of different servers", different_servers)
        .plain("a clock is set while the server runs", clock_is_set)
        .plain("a server speaks TLS", speaks_tls)
        .plain("a replica is promoted when its primary dies", promoted)
        .plain("a primary is demoted", demoted)
        .plain("replication is cut, and the replica promoted without what came later", cut)
        .run()
}

type Outcome = Result<(), Error>;

fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn answers_and_is_gone() -> Outcome {
    let redis = Redis::start()?;
    assert_eq!(redis.command(&["SET", "a", "b c"])?, "OK");
    assert_eq!(redis.command(&["GET", "a"])?, "b c");
    assert_eq!(redis.command(&["CONFIG", "GET", "save"])?, "save\n");
    let error = redis.command(&["NONSENSE"]).expect_err("no such command").to_string();
    assert!(error.contains("unknown command") && error.contains("NONSENSE"), "{error}");
    let (pid, log) = (redis.pid(), redis.log());
    assert!(exists(pid) && log.is_file());
    drop(redis);
    assert!(!exists(pid), "the server still runs");
    assert!(log.parent().is_some_and(|home| !home.exists()), "the folder is still there");
    Ok(())
}

fn frozen_is_gone() -> Outcome {
    let mut redis = Redis::start()?;
    redis.freeze()?;
    redis.wake()?;
    assert_eq!(redis.command(&["PING"])?, "PONG");
    redis.freeze()?;
    let pid = redis.pid();
    drop(redis);
    assert!(!exists(pid));
    Ok(())
}

fn comes_again() -> Outcome {
    let mut redis = Redis::start()?;
    redis.command(&["SET", "a", "b"])?;
    let port = redis.port();
    redis.kill()?;
    assert!(redis.command(&["PING"]).is_err(), "a killed server answers");
    redis.start_again()?;
    assert_eq!((redis.port(), redis.command(&["GET", "a"])?.as_str()), (port, "(nil)"));
    Ok(())
}

fn keeps_what_is_asked() -> Outcome {
    let arguments = ["--appendonly", "yes", "--appendfsync", "always", "--requirepass", "secret"];
    let options = Options { arguments: arguments.map(str::to_owned).to_vec(), ..Options::default() };
    let redis = Redis::start_with(options)?;
    assert!(redis.command(&["PING"]).expect_err("no password").to_string().contains("NOAUTH"));
    Ok(())
}

fn different_servers() -> Outcome {
    let servers = fleet(3)?;
    for (number, server) in servers.iter().enumerate() {
        server.command(&["SET", "number", &number.to_string()])?;
    }
    for (number, server) in servers.iter().enumerate() {
        assert_eq!(server.command(&["GET", "number"])?, number.to_string());
    }
    Ok(())
}

fn clock_is_set() -> Outcome {
    let redis = Redis::start_with(Options { own_clock: true, ..Options::default() })?;
    let seconds = || -> Result<u64, Error> {
        Ok(redis.command(&["TIME"])?.lines().next().and_then(|line| line.parse().ok()).expect("seconds"))
    };
    let before = seconds()?;
    redis.command(&["SET", "short", "x", "PX", "60000"])?;
    redis.set_clock("+3600s")?;
    assert!(seconds()? >= before + 3600);
    assert_eq!(redis.command(&["GET", "short"])?, "(nil)", "expired by the step");
    redis.set_clock("+0")?;
    assert!(seconds()? < before + 3600);
    Ok(())
}

fn speaks_tls() -> Outcome {
    let redis = Redis::start_with(Options { tls: true, ..Options::default() })?;
    let (port, certificates) = redis.tls().expect("asked for");
    assert_ne!(port, redis.port());
    assert!(certificates.authority().is_file() && certificates.client_key().is_file());
    assert_eq!(redis.command(&["CONFIG", "GET", "tls-port"])?, format!("tls-port\n{port}"));
    Ok(())
}

fn promoted() -> Outcome {
    let mut trio = Trio::start()?;
    trio.first.command(&["SET", "a", "b"])?;
    while trio.second.command(&["GET", "a"])? != "b" {
        std::thread::sleep(Duration::from_millis(5));
    }
    trio.first.kill()?;
    trio.wait_for_second()?;
    assert_eq!(trio.second.command(&["GET", "a"])?, "b");
    assert_eq!(trio.second.command(&["SET", "a", "c"])?, "OK", "it takes writes now");
    let pids = [trio.sentinel_pid(), trio.second.pid()];
    drop(trio);
    assert!(!pids.into_iter().any(exists));
    Ok(())
}

fn demoted() -> Outcome {
    let trio = Trio::start()?;
    trio.fail_over()?;
    trio.wait_for_second()?;
    let error = trio.first.command(&["SET", "a", "b"]).expect_err("a replica").to_string();
    assert!(error.contains("READONLY"), "{error}");
    Ok(())
}

fn cut() -> Outcome {
    let mut trio = Trio::start()?;
    trio.stop_replication()?;
    trio.first.command(&["SET", "late", "x"])?;
    trio.first.kill()?;
    trio.wait_for_second()?;
    assert_eq!(trio.second.command(&["GET", "late"])?, "(nil)");
    Ok(())
}
