//! What only Redis has: keys that must expire, connections that die without a word, primaries that change, users and TLS.

mod connections;
mod failover;
mod keys;
mod rights;

use super::place::redis_url;
use lab::redis::Redis;
use lease::{Backend, Connector, Keeper, KeeperSettings, RedisConnector, RedisOptions};
use std::time::Duration;

pub(crate) type RedisCase = (&'static str, fn() -> Result<(), lab::Error>);

pub(crate) const CASES: &[RedisCase] = &[
    ("cut off at any byte, no key is without an expiry (L17)", keys::no_eternal_lock),
    ("keys of other programs are held by another", keys::foreign),
    ("a server's clock that steps forward makes two holders, and the first learns it (L16)", keys::clock_step),
    ("a half-open connection is given up in time (L14)", connections::half_open),
    ("a server that falls silent is given up in time (L14)", connections::frozen),
    ("a reply lost after the effect is asked again, with and without scripts at the server", connections::lost_reply),
    ("a failover before replication makes two holders, and the first learns it (L13)", failover::two_holders),
    ("a demoted primary is left for the promoted one, and the lease goes on (L15)", failover::demoted),
    ("a replica grants nothing, and is left as soon as it refuses a write (L15)", failover::read_only),
    ("a sentinel that is silent holds nobody up", failover::silent_sentinel),
    ("a grant that the replicas do not have does not count", failover::not_replicated),
    ("a user with the rights of the file head, and none beyond its keys", rights::user),
    ("a wrong password is an error that does not show it", rights::wrong_password),
    ("TLS in both directions", rights::tls),
];

/// A connector to one server, or to a proxy in front of it.
fn connector(url: &str) -> Box<dyn Connector> {
    with(RedisOptions::new(url))
}

fn with(options: RedisOptions) -> Box<dyn Connector> {
    Box::new(RedisConnector::new(options).expect("options that fit"))
}

async fn connect(url: &str) -> Box<dyn Backend> {
    connector(url).connect().await.expect("a connection")
}

fn keeper(connector: Box<dyn Connector>, ttl: Duration) -> Keeper {
    Keeper::start(connector, super::someone(), KeeperSettings::new(ttl)).expect("a keeper")
}

/// The key of the lease that all cases ask for.
fn key() -> String {
    format!("{}{}", RedisOptions::PREFIX, super::name())
}

/// Its time to live in milliseconds as the server says it: -2 where it is not there, -1 where it has none.
fn pttl(server: &Redis) -> i64 {
    let said = server.command(&["PTTL", &key()]).expect("an answer");
    said.parse().expect("a number")
}
