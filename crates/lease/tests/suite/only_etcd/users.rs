//! Users, their tokens and their rights.

use super::connector;
use crate::suite::{acquire, name, pause, run, someone, until};
use lab::etcd::{Etcd, EtcdOptions as Cluster};
use lease::{Connector, EtcdConnector, EtcdOptions, Keeper, KeeperSettings, Lease, Release};
use std::time::Duration;

/// A token lives for a second when nobody uses it, and a renewal is due only after 1.6 s.
const TTL: Duration = Duration::from_secs(5);

/// A cluster with a user who may use our keys and nothing else.
fn cluster(auth_token_ttl_s: Option<u32>) -> Result<Etcd, lab::Error> {
    let mut etcd = Etcd::start_with(Cluster { auth_token_ttl_s, ..Cluster::default() })?;
    etcd.ctl(&["role", "add", "worker"])?;
    etcd.ctl(&["role", "grant-permission", "worker", "--prefix=true", "readwrite", "settled/"])?;
    etcd.ctl(&["user", "add", "worker:hunter2"])?;
    etcd.ctl(&["user", "grant-role", "worker", "worker"])?;
    etcd.enable_auth("secret")?;
    Ok(etcd)
}

fn keeper_with(etcd: &Etcd, password: &str) -> Keeper {
    let user = Some(("worker".to_owned(), password.to_owned()));
    let options = EtcdOptions { user, ..EtcdOptions::new(etcd.endpoints()) };
    let connector = EtcdConnector::new(options).expect("options that fit");
    Keeper::start(Box::new(connector), someone(), KeeperSettings::new(TTL)).expect("a keeper")
}

/// How often somebody logged in.
fn logins(etcd: &Etcd) -> u32 {
    let metrics = etcd.metrics(0).expect("metrics");
    let line = metrics.lines().find(|line| line.starts_with("grpc_server_started_total") && line.contains("\"Authenticate\""));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

async fn still_held(lease: &Lease, span: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < span {
        lease.check().unwrap_or_else(|lost| panic!("{lost} after {:?}", start.elapsed()));
        pause(50).await;
    }
}

pub(super) fn token_expires() -> Result<(), lab::Error> {
    let etcd = cluster(Some(1))?;
    run(async {
        let mine = keeper_with(&etcd, "hunter2");
        let lease = acquire(&mine).await;
        let before = logins(&etcd);
        still_held(&lease, TTL * 2).await;
        assert!(logins(&etcd) > before + 1, "no token expired");
        assert_eq!(lease.release().await, Release::Released);
        Ok(())
    })
}

pub(super) fn rights_change() -> Result<(), lab::Error> {
    let etcd = cluster(None)?;
    run(async {
        let (mine, yours) = (keeper_with(&etcd, "hunter2"), keeper_with(&etcd, "hunter2"));
        let lease = acquire(&mine).await;
        let wait = tokio::spawn(async move { (yours.acquire(&name(), TTL * 10).await, yours) });
        until("in line", TTL, async || super::line(&etcd).len() == 2).await;
        for (prefix, before) in [("a/", logins(&etcd)), ("b/", logins(&etcd))] {
            etcd.ctl(&["role", "grant-permission", "worker", "--prefix=true", "read", prefix])?;
            still_held(&lease, TTL).await;
            assert!(logins(&etcd) > before, "nobody had to log in again");
        }
        assert!(!wait.is_finished(), "it is held, and the wait goes on");
        assert_eq!(lease.release().await, Release::Released);
        let (got, _yours) = wait.await.expect("no panic");
        got.expect("an answer").expect("in time");
        Ok(())
    })
}

pub(super) fn certificates() -> Result<(), lab::Error> {
    let etcd = Etcd::start_with(Cluster { tls: true, ..Cluster::default() })?;
    run(async {
        let files = etcd.certificates().expect("it was asked for");
        let whole = EtcdOptions {
            ca_file: Some(files.authority()),
            certificate: Some((files.client_certificate(), files.client_key())),
            connect_timeout: TTL,
            ..EtcdOptions::new(etcd.endpoints())
        };
        let nobody = EtcdOptions { certificate: None, ..whole.clone() };
        let stranger = EtcdOptions { ca_file: Some(files.client_certificate()), ..whole.clone() };
        for refused in [nobody, stranger, EtcdOptions::new(etcd.endpoints())] {
            let refused = EtcdConnector::new(refused).expect("options that fit").connect().await;
            assert!(refused.is_err(), "let in");
        }
        let connector = EtcdConnector::new(whole).expect("options that fit");
        let mine = Keeper::start(Box::new(connector), someone(), KeeperSettings::new(TTL)).expect("a keeper");
        let lease = acquire(&mine).await;
        assert_eq!(super::line(&etcd).len(), 1);
        assert_eq!(lease.release().await, Release::Released);
        Ok(())
    })
}

pub(super) fn wrong_password() -> Result<(), lab::Error> {
    let etcd = cluster(None)?;
    run(async {
        let wrong = keeper_with(&etcd, "letmein77");
        let error = wrong.try_acquire(&name()).await.map(|got| got.is_some()).expect_err("refused");
        assert!(error.to_string().contains("etcd at 127.0.0.1:"), "{error}");
        assert!(!format!("{error} {error:?}").contains("letmein77"), "{error:?}");
        let mut stranger = connector(etcd.endpoints());
        let refused = match stranger.connect().await {
            Ok(mut service) => service.inspect("").await.map(|rows| rows.len()),
            Err(error) => Err(error),
        };
        assert!(refused.is_err(), "{refused:?}");
        Ok(())
    })
}
