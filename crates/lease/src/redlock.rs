//! Leases on several Redis servers that know nothing of each other: Redlock. Needs `contract.rs`, `clock.rs`, `redis.rs` and its own folder.
//!
//! **Guarantees.** A grant is a key on more than half of the servers, each set as `redis.rs` does it; any two such majorities share a
//! server, which has one key. All are asked at once, each for a twentieth of the TTL at most (20 ms to 1 s), so that one that hangs
//! costs little. A grant counts only when something is left of the TTL after the time this took and the drift of the servers' clocks
//! (a hundredth of the TTL and 2 ms); what is not enough is given back on every server, also on those that did not answer. A renewal
//! extends where our key still is and sets none anew: it counts when a majority had it. A server that fails fails alone: the others
//! keep what they have. Less than half of the servers may be down.
//!
//! **Does not guarantee** that two holders never overlap. It assumes what no service can promise: that clocks do not step, and that
//! nobody pauses. A server whose wall clock steps forward, or that is started again without what it had in memory, forgets its key:
//! when the rest is no majority any more, another holder gets one while the first still believes. Redis' page asks that a restarted
//! server stays away for a TTL; nothing enforces it. A holder that is frozen after its last check writes after its lease is over, and
//! there is no token that grows with the grants to stop it. The ledger's fence covers all of this, so that five servers buy
//! availability here, and nothing else.
//!
//! **Token:** none; the ledger mints. The servers have no common order to make one from.
//!
//! **Nobody.** Many that ask at once may split the servers so that nobody has a majority. They give back, pause for a random time and
//! ask again, for a twentieth of the TTL.
//!
//! A request whose sender gave up can still arrive and set a key, on a server that was slow, after it was given back. It expires; where
//! most of the servers were slow, nobody has the lease for that TTL.
//!
//! Sources of the ideas: "Distributed Locks with Redis", redis.io; against it M. Kleppmann, "How to do distributed locking" (2016).

mod decide;
mod nodes;

use crate::redis::keys::{self, Stored};
use crate::redis::reach::Server;
use crate::redis::{RedisOptions, RedisTls, held, row, usable};
use crate::{
    Acquire, Ask, Backend, BootClock, Capabilities, Clock, Connector, KeeperSettings, LeaseError, LeaseRow, Line, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use decide::{Verdict, drift, quorum};
use keys::Prefix;
use nodes::{Answers, Nodes};
use std::collections::BTreeSet;
use std::time::Duration;

/// What the file head says, for the table.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "redlock",
    makes_tokens: false,
    outlives_connection: true,
    outlives_restart: false,
    outlives_minority: true,
    withstands_clock_step: false,
    keeps_line: false,
    notices_death: false,
    shortest_ttl: Duration::from_secs(1),
    takeover: "TTL",
};

/// The longest that one server is waited for.
const LONGEST: Duration = Duration::from_secs(1);

/// How to reach the servers.
#[derive(Clone)]
pub struct RedlockOptions {
    /// Their URLs, `redis://user:password@host:6379/0` or `rediss://…` for TLS: an odd number, three or more, none a replica.
    pub urls: Vec<String>,
    /// The files of TLS, the same for all.
    pub tls: RedisTls,
    /// What every key begins with. Programs that are to exclude each other use the same.
    pub prefix: String,
}

impl RedlockOptions {
    /// Without TLS files, with the prefix of `redis.rs`.
    #[must_use]
    pub fn new(urls: &[String]) -> RedlockOptions {
        RedlockOptions { urls: urls.to_vec(), tls: RedisTls::default(), prefix: RedisOptions::PREFIX.to_owned() }
    }
}

/// Makes connections to all of the servers.
#[derive(Debug)]
pub struct RedlockConnector {
    servers: Vec<Server>,
    prefix: Prefix,
}

impl RedlockConnector {
    /// # Errors
    /// A number of servers that has no use, one that is named twice, a URL or a prefix that cannot be used.
    pub fn new(options: RedlockOptions) -> Result<RedlockConnector, LeaseError> {
        let RedlockOptions { urls, tls, prefix } = options;
        tls.check()?;
        let refuse = |what: String| Err(LeaseError::Invalid { what });
        let count = urls.len();
        if count < 3 || count.is_multiple_of(2) {
            return refuse(format!(
                "redlock needs an odd number of servers, three or more, and {count} are named; an even one bears no more failures than one less"
            ));
        }
        let servers: Vec<Server> = urls.iter().map(|url| Server::new("a URL of redlock", url, &tls)).collect::<Result<_, _>>()?;
        let mut places = BTreeSet::new();
        for place in servers.iter().map(|server| server.address().to_lowercase()) {
            if !places.insert(place.clone()) {
                return refuse(format!("redlock has {place} twice; a majority of servers is one of different servers"));
            }
        }
        Ok(RedlockConnector { servers, prefix: usable(prefix)? })
    }
}

#[async_trait]
impl Connector for RedlockConnector {
    /// Reaches nobody yet: each request reaches whom it can.
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        Ok(Box::new(RedlockBackend { nodes: Nodes::new(self.servers.clone()), prefix: self.prefix.clone() }))
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn check(&self, settings: &KeeperSettings) -> Result<(), LeaseError> {
        let KeeperSettings { ttl, margin, .. } = *settings;
        let drift = drift(ttl);
        if margin >= drift {
            return Ok(());
        }
        let what = format!(
            "a margin of {margin:?} does not cover the drift of redlock's servers, {drift:?} in a TTL of {ttl:?}; lengthen the margin"
        );
        Err(LeaseError::Invalid { what })
    }
}

/// A connection to each server, made when it is needed.
#[derive(Debug)]
pub struct RedlockBackend {
    nodes: Nodes,
    prefix: Prefix,
}

/// How long one server is waited for: much shorter than the TTL, for the time is taken from it.
fn patience(ttl: Duration) -> Duration {
    (ttl / 20).clamp(Duration::from_millis(20), LONGEST)
}

impl RedlockBackend {
    /// One round of questions. What is not granted is given back.
    async fn round(&mut self, ask: &Ask) -> Result<Verdict, LeaseError> {
        let sent = BootClock.now();
        let (prefix, theirs) = (self.prefix.clone(), ask.clone());
        let answers = self
            .nodes
            .ask(patience(ask.ttl), move |mut connection| {
                let (prefix, ask) = (prefix.clone(), theirs.clone());
                async move { keys::take(&mut connection, &prefix, &ask).await }
            })
            .await;
        let elapsed = sent.until(BootClock.now());
        let verdict = decide::acquired(&said(&answers), ask.ttl, elapsed);
        if verdict != Verdict::Granted {
            self.give_up(ask).await;
        }
        match verdict {
            Verdict::Unknown => Err(no_quorum("acquire", &answers)),
            Verdict::TooLate => {
                let what = format!("redlock of {} servers", answers.len());
                Err(LeaseError::TimedOut { what, doing: "acquire", after: elapsed })
            }
            verdict => Ok(verdict),
        }
    }

    /// On every server, whatever it said before.
    async fn give_up(&mut self, ask: &Ask) -> Answers<bool> {
        let (prefix, ask) = (self.prefix.clone(), ask.clone());
        let limit = patience(ask.ttl);
        let give_up = move |mut connection| {
            let (prefix, ask) = (prefix.clone(), ask.clone());
            async move { keys::give_up(&mut connection, &prefix, &ask).await }
        };
        self.nodes.ask(limit, give_up).await
    }
}

#[async_trait]
impl Backend for RedlockBackend {
    fn kind(&self) -> &'static str {
        "redlock"
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::LedgerMinted
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let (begun, limit) = (BootClock.now(), patience(ask.ttl));
        loop {
            match self.round(ask).await? {
                Verdict::Granted => return Ok(Acquire::Granted { token: None }),
                Verdict::Held(stored) => return Ok(held(&stored)),
                _ if begun.until(BootClock.now()) >= limit => return Ok(held(&Stored { value: None, left_ms: None })),
                _ => tokio::time::sleep(rand::random_range(limit / 50..=limit / 4)).await,
            }
        }
    }

    async fn stand_in_line(&mut self, _ask: &Ask) -> Result<Line, LeaseError> {
        Ok(Line::None)
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let (prefix, theirs) = (self.prefix.clone(), ask.clone());
        let answers = self
            .nodes
            .ask(patience(ask.ttl), move |mut connection| {
                let (prefix, ask) = (prefix.clone(), theirs.clone());
                async move { keys::extend(&mut connection, &prefix, &ask).await }
            })
            .await;
        match decide::renewed(&said(&answers)) {
            Some(Renew::Lost) => {
                // a minority still has it, and was extended: it would be in everybody's way for a TTL
                self.give_up(ask).await;
                Ok(Renew::Lost)
            }
            Some(answer) => Ok(answer),
            None => Err(no_quorum("renew", &answers)),
        }
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let answers = self.give_up(ask).await;
        decide::released(&said(&answers)).ok_or_else(|| no_quorum("release", &answers))
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        let (keys, begin) = (self.prefix.clone(), prefix.to_owned());
        let answers = self
            .nodes
            .ask(LONGEST, move |mut connection| {
                let (keys, begin) = (keys.clone(), begin.clone());
                async move { keys::list(&mut connection, &keys, &begin).await }
            })
            .await;
        let listed = decide::listed(&said(&answers)).ok_or_else(|| no_quorum("inspect", &answers))?;
        Ok(listed.into_iter().map(|(name, stored)| row(name, stored.value.as_deref(), stored.left_ms)).collect())
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        Ok(())
    }
}

fn said<T: Clone>(answers: &Answers<T>) -> Vec<Option<T>> {
    answers.iter().map(|answer| answer.as_ref().ok().cloned()).collect()
}

fn no_quorum<T>(doing: &'static str, answers: &Answers<T>) -> LeaseError {
    let answered = answers.iter().flatten().count();
    let (servers, silent) = (answers.len(), answers.iter().find_map(|answer| answer.as_ref().err()));
    let why = silent.map_or_else(String::new, |why| format!(": {why}"));
    let source = format!("{answered} answered, and no {} of them agree{why}", quorum(servers)).into();
    LeaseError::Unavailable { what: format!("redlock of {servers} servers"), doing, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("redis://u:hunter2@node{at}:6379/0")).collect()
    }

    fn refused(options: RedlockOptions) -> String {
        RedlockConnector::new(options).expect_err("no use").to_string()
    }

    #[test]
    fn an_odd_number_of_different_servers() {
        for count in [0, 1, 2, 4] {
            assert!(refused(RedlockOptions::new(&urls(count))).contains("odd number"), "{count}");
        }
        // the same server under another database, in another spelling
        for again in [urls(1)[0].clone(), "redis://u:hunter2@node0:6379/3".to_owned(), "redis://NODE0".to_owned()] {
            let mut twice = urls(3);
            twice[2] = again;
            let shown = refused(RedlockOptions::new(&twice));
            assert!(shown.contains("node0:6379 twice") && !shown.contains("hunter2"), "{shown}");
        }
        assert!(RedlockConnector::new(RedlockOptions::new(&urls(3))).is_ok());
    }

    #[test]
    fn the_margin_covers_the_drift() {
        let connector = RedlockConnector::new(RedlockOptions::new(&urls(3))).expect("three servers");
        let fine = KeeperSettings::new(Duration::from_secs(10));
        assert!(connector.check(&fine).is_ok());
        assert!(connector.check(&KeeperSettings { margin: Duration::from_millis(102), ..fine }).is_ok());
        let shown = connector.check(&KeeperSettings { margin: Duration::from_millis(101), ..fine }).expect_err("too short");
        assert!(shown.to_string().contains("drift"), "{shown}");
    }
}
