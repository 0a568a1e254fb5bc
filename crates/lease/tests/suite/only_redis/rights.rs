//! Who may, and who is who.

use super::super::{FOR_EVER, acquire, ask, run, takes};
use super::{connector, keeper, redis_url, with};
use lab::redis::{Options, Redis};
use lease::{LeaseError, Proof, RedisConnector, RedisOptions, RedisTls, Release};

/// What the head of the file tells an administrator to allow.
fn rights() -> Vec<String> {
    let source = include_str!("../../../src/redis.rs");
    let (_, rest) = source.split_once("`ACL SETUSER settled on >… ").expect("the rights are in the head");
    let (rights, _) = rest.split_once('`').expect("their end");
    rights.split_whitespace().filter(|word| *word != "//!").map(str::to_owned).collect()
}

fn with_a_user() -> Result<(Redis, String), lab::Error> {
    let server = Redis::start()?;
    let rights = rights();
    let mut words = vec!["ACL", "SETUSER", "settled", "on", ">hunter2"];
    words.extend(rights.iter().map(String::as_str));
    server.command(&words)?;
    let url = format!("redis://settled:hunter2@{}", server.address());
    Ok((server, url))
}

pub(super) fn user() -> Result<(), lab::Error> {
    let (server, url) = with_a_user()?;
    run(async {
        let (mine, yours) = (keeper(connector(&url), FOR_EVER), keeper(connector(&url), FOR_EVER));
        let lease = acquire(&mine).await;
        assert!(yours.try_acquire(&super::super::name()).await.expect("an answer").is_none());
        assert_eq!(lease.prove().await.expect("an answer"), Proof::Owner);
        assert_eq!(mine.inspect("").await.expect("rows").len(), 1);
        assert_eq!(lease.release().await, Release::Released);

        // waiting for replicas is allowed too; there are none
        let mut waits = with(RedisOptions { wait_replicas: 1, ..RedisOptions::new(&url) }).connect().await.expect("a connection");
        let shown = waits.try_acquire(&ask(FOR_EVER)).await.expect_err("no replica").to_string();
        assert!(shown.contains("0 of 1"), "{shown}");

        let elsewhere = RedisOptions { prefix: "other:".to_owned(), ..RedisOptions::new(&url) };
        let mut service = with(elsewhere).connect().await.expect("a connection");
        let shown = service.try_acquire(&ask(FOR_EVER)).await.expect_err("not its keys").to_string();
        assert!(shown.to_uppercase().contains("NOPERM") && !shown.contains("hunter2"), "{shown}");
    });
    assert_eq!(server.command(&["DBSIZE"])?, "0");
    Ok(())
}

pub(super) fn wrong_password() -> Result<(), lab::Error> {
    let (server, url) = with_a_user()?;
    for wrong in [url.replace("hunter2", "hunter3"), format!("redis://:hunter3@{}", server.address())] {
        let mut connector = connector(&wrong);
        let shown = run(connector.connect()).err().expect("not this password").to_string();
        assert!(shown.contains("authentication") && !shown.contains("hunter"), "{shown}");
    }
    Ok(())
}

pub(super) fn tls() -> Result<(), lab::Error> {
    let server = Redis::start_with(Options { tls: true, ..Options::default() })?;
    let (port, files) = server.tls().expect("asked for");
    let url = format!("rediss://127.0.0.1:{port}/0");
    let certificate = Some((files.client_certificate(), files.client_key()));
    let all = RedisTls { ca_file: Some(files.authority()), certificate };
    run(async {
        let options = |tls: RedisTls| RedisOptions { tls, ..RedisOptions::new(&url) };
        let mut service = with(options(all.clone())).connect().await.expect("a connection");
        assert!(takes(&mut *service, &ask(FOR_EVER)).await);
        assert_eq!(server.command(&["DBSIZE"]).expect("an answer"), "1");

        let stranger = RedisTls { ca_file: None, ..all.clone() };
        with(options(stranger)).connect().await.err().expect("we do not know who vouches for it");
        let nobody = RedisTls { certificate: None, ..all.clone() };
        with(options(nobody)).connect().await.err().expect("it does not know us");
        let missing = RedisTls { ca_file: Some("/nowhere/ca.crt".into()), ..all.clone() };
        let shown = RedisConnector::new(options(missing)).expect_err("no such file");
        assert!(matches!(shown, LeaseError::Invalid { .. }) && shown.to_string().contains("/nowhere/ca.crt"), "{shown}");
        // later it is being renewed: an outage, which is waited out
        let folder = tempfile::tempdir().expect("a folder");
        let ca_file = folder.path().join("ca.crt");
        std::fs::copy(files.authority(), &ca_file).expect("a copy");
        let mut renewed = with(options(RedisTls { ca_file: Some(ca_file.clone()), ..all }));
        std::fs::remove_file(&ca_file).expect("gone");
        let shown = renewed.connect().await.err().expect("no such file now");
        assert!(matches!(shown, LeaseError::Unavailable { .. }), "{shown}");
        std::fs::copy(files.authority(), &ca_file).expect("the new one");
        assert!(renewed.connect().await.is_ok());
        let plain = RedisOptions::new(&redis_url(&server));
        assert!(with(plain).connect().await.is_ok(), "the other port is without TLS");
    });
    Ok(())
}
