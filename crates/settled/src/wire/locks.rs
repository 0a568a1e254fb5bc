//! `[lease]` → a connector to the lock service.

use crate::config::{Backend, Config, Tls};
use lease::{
    Connector, EtcdConnector, EtcdOptions, PostgresAdvisoryConnector, PostgresConnector, RedisConnector, RedisOptions, RedisTls,
    RedlockConnector, RedlockOptions, SqliteConnector,
};
use std::path::PathBuf;

/// To the lock service that is configured. Asks it nothing yet.
pub(crate) fn connector(config: &Config) -> anyhow::Result<Box<dyn Connector>> {
    let url = &config.database.url;
    Ok(match config.lease.backend {
        Backend::Database if url.starts_with("sqlite:") => Box::new(SqliteConnector::new(&ledger::sqlite::file_of(url)?)),
        Backend::Database => Box::new(PostgresConnector::new(url)?),
        Backend::PostgresAdvisory => Box::new(PostgresAdvisoryConnector::new(url, config.ttl())?),
        Backend::Etcd => Box::new(EtcdConnector::new(etcd(config))?),
        Backend::Redis => Box::new(RedisConnector::new(redis(config))?),
        Backend::Redlock => Box::new(RedlockConnector::new(redlock(config))?),
    })
}

fn etcd(config: &Config) -> EtcdOptions {
    let (etcd, tls) = (&config.lease.etcd, &config.lease.tls);
    EtcdOptions {
        prefix: etcd.prefix.clone(),
        user: (!etcd.user.is_empty()).then(|| (etcd.user.clone(), etcd.password.expose().to_owned())),
        ca_file: tls.ca_file.clone(),
        certificate: certificate(tls),
        ..EtcdOptions::new(etcd.endpoints.list())
    }
}

fn redis(config: &Config) -> RedisOptions {
    let redis = &config.lease.redis;
    RedisOptions {
        sentinels: redis.sentinels.list(),
        tls: redis_tls(&config.lease.tls),
        prefix: redis.prefix.clone(),
        wait_replicas: redis.wait_replicas,
        ..RedisOptions::new(&redis.url.list().concat())
    }
}

fn redlock(config: &Config) -> RedlockOptions {
    let (redlock, tls) = (&config.lease.redlock, redis_tls(&config.lease.tls));
    RedlockOptions { tls, prefix: redlock.prefix.clone(), ..RedlockOptions::new(&redlock.urls.list()) }
}

fn redis_tls(tls: &Tls) -> RedisTls {
    RedisTls { ca_file: tls.ca_file.clone(), certificate: certificate(tls) }
}

fn certificate(tls: &Tls) -> Option<(PathBuf, PathBuf)> {
    tls.certificate_file.clone().zip(tls.key_file.clone())
}
