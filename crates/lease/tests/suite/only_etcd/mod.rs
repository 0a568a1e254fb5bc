//! What only etcd has: leases and keys that others can take away, members that come and go, streams that fall silent, users.

mod losses;
mod members;
mod others;
mod sharing;
mod streams;
mod users;
mod waiting;

use super::place::Place;
use super::{name, someone};
use lab::etcd::Etcd;
use lab::proxy::Proxy;
use lease::{Connector, EtcdConnector, EtcdOptions, Keeper, KeeperSettings};
use std::time::Duration;

/// Starts what it needs, as all of them break it.
pub(crate) type Case = (&'static str, fn() -> Result<(), lab::Error>);

pub(crate) const CASES: &[Case] = &[
    ("a waiter whose etcd lease dies is told at once and has nothing (L1)", waiting::place_revoked),
    ("a place that is gone is an error, however often it is asked for (L1)", waiting::place_gone_twice),
    ("each in line follows the one before, and owns nothing", waiting::order),
    ("compaction while waiting", waiting::compaction),
    ("a cancelled wait leaves no key in the line (L11)", waiting::cancelled),
    ("of 200 waiters a release wakes one, as the server counts", waiting::counted),
    ("a stream that falls silent is lost at the deadline, and replaced (L3)", streams::silence),
    ("a stream that ends politely is replaced (L3)", streams::polite_end),
    ("a lease outlives a killed etcd that is back in time (L4)", streams::killed),
    ("a revoked etcd lease is a lost lease (L5)", losses::revoked),
    ("time without a key is no ownership (L6)", losses::key_deleted),
    ("a key that was put anew is not the one we had (L6)", losses::key_replaced),
    ("a paused leader proves nothing (L6)", losses::paused_leader),
    ("a paused leader prolongs nothing (L6)", losses::paused_leader_prolongs_nothing),
    ("a killed leader", members::leader_killed),
    ("a frozen leader", members::leader_frozen),
    ("endpoints that are dead or frozen are passed over", members::bad_endpoints),
    ("a member that was let down by is not the next to be tried", members::next_member),
    ("a member without a leader is passed over", members::leaderless),
    ("without a quorum nothing is granted, with it again within two TTLs (L24)", members::quorum),
    ("a snapshot restored: the source, and tokens that went back (L7)", members::restored),
    ("all grants of a process are under one etcd lease (L8)", sharing::one_lease),
    ("what arrives late blocks nobody (L11)", sharing::late_put),
    ("what arrives late beside grants that live blocks nobody for long (L11)", sharing::late_put_beside_others),
    ("what an outage left behind blocks nobody (L24)", sharing::orphan),
    ("a release deletes its own key only (L12)", sharing::release_by_revision),
    ("etcdctl lock waits for us", others::waits_for_us),
    ("we wait for etcdctl lock", others::we_wait),
    ("a token that expires costs nothing", users::token_expires),
    ("rights that change cost nothing", users::rights_change),
    ("with TLS, both sides show who they are", users::certificates),
    ("a wrong password is refused and not shown", users::wrong_password),
];

/// A cluster of one, and a place in it.
fn one() -> Result<Place, lab::Error> {
    Etcd::start().map(Place::own_etcd)
}

fn three() -> Result<Place, lab::Error> {
    Etcd::start_three().map(Place::own_etcd)
}

/// The keys under `prefix`, in the order in which they were created.
fn keys(etcd: &Etcd, prefix: &str) -> Vec<String> {
    let said = etcd.ctl(&["get", prefix, "--prefix", "--keys-only", "--sort-by=CREATE"]).expect("keys");
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The keys of everybody who holds or waits for [`name`].
fn line(etcd: &Etcd) -> Vec<String> {
    keys(etcd, &format!("{}{}/", EtcdOptions::PREFIX, name()))
}

/// The etcd lease of a key, in hexadecimal: its last part.
fn lease_of(key: &str) -> &str {
    key.rsplit('/').next().expect("a part")
}

/// The ids of all etcd leases.
fn leases(etcd: &Etcd) -> Vec<String> {
    etcd.ctl(&["lease", "list"]).expect("leases").lines().skip(1).map(str::to_owned).collect()
}

/// The seconds that an etcd lease has left.
fn left_s(etcd: &Etcd, lease: &str) -> i64 {
    let said = etcd.ctl(&["lease", "timetolive", lease]).expect("an answer");
    let left = said.split_once("remaining(").and_then(|(_, rest)| rest.split_once("s)"));
    left.and_then(|(left, _)| left.parse().ok()).unwrap_or(-1)
}

fn connector(endpoints: Vec<String>) -> Box<dyn Connector> {
    Box::new(EtcdConnector::new(EtcdOptions::new(endpoints)).expect("options that fit"))
}

fn keeper_at(endpoints: Vec<String>, ttl: Duration) -> Keeper {
    Keeper::start(connector(endpoints), someone(), KeeperSettings::new(ttl)).expect("a keeper")
}

/// A network in front of the first member.
fn proxy(place: &Place) -> Proxy {
    let server = place.cluster().endpoints()[0].parse().expect("an address");
    Proxy::start(server).expect("a proxy")
}
