//! A connection to one member that follows a leader. Needs `options.rs`, `faults.rs`.
//!
//! The driver would spread requests over all members it was given, and one that is frozen or cut off would swallow its share of them.
//! So a connection is to one member. Members are tried one after the other, beginning behind the one that was used last: who connects
//! again has just been let down. One that does not answer is not waited for: after a moment the next one is tried as well, and the
//! first answer counts.

use super::faults;
use super::options::EtcdOptions;
use crate::LeaseError;
use etcd_client::{Client, ConnectOptions, Error};
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// A member that is well answers sooner, also from the next town; one that is not costs no more than this.
const HEAD_START: Duration = Duration::from_millis(100);

/// What is known beyond any connection.
#[derive(Debug, Default)]
pub(super) struct Members {
    next: usize,
    /// Versions whose faults were told.
    told: HashSet<String>,
}

pub(super) struct Reached {
    pub(super) client: Client,
    pub(super) cluster: u64,
    /// For logs and errors.
    pub(super) place: String,
    at: usize,
    version: String,
}

impl Members {
    /// Logged in, where there is a user: a token belongs to a connection, so a new connection is what helps when one has expired, or
    /// when the users' rights have changed since.
    pub(super) async fn reach(&mut self, options: &EtcdOptions) -> Result<Reached, LeaseError> {
        let settings = options.for_connecting().await?;
        let limit = options.connect_timeout;
        let reached = match tokio::time::timeout(limit, self.first_answer(&options.endpoints, &settings)).await {
            Ok(reached) => reached.map_err(|error| unavailable(&everywhere(options), "connect", error))?,
            Err(_) => return Err(LeaseError::TimedOut { what: everywhere(options), doing: "connect", after: limit }),
        };
        self.next = reached.at + 1;
        self.warn(&reached);
        Ok(reached)
    }

    async fn first_answer(&self, endpoints: &[String], settings: &ConnectOptions) -> Result<Reached, Error> {
        let mut order = (0..endpoints.len()).map(|n| (self.next + n) % endpoints.len());
        let (mut tries, mut more, mut last) = (JoinSet::new(), true, None);
        loop {
            match order.next() {
                Some(at) => drop(tries.spawn(look(at, endpoints[at].clone(), settings.clone()))),
                None => more = false,
            }
            let answer = tokio::select! {
                answer = tries.join_next() => answer,
                () = tokio::time::sleep(HEAD_START), if more => continue,
            };
            match answer {
                Some(Ok(Ok(reached))) => return Ok(reached),
                Some(Ok(Err(error))) => last = Some(error),
                Some(Err(error)) => last = Some(Error::Internal(error.to_string())),
                None => return Err(last.unwrap_or_else(|| Error::InvalidArgs("no endpoints".to_owned()))),
            }
        }
    }

    fn warn(&mut self, reached: &Reached) {
        if self.told.insert(reached.version.clone()) {
            for fault in faults::of(&reached.version) {
                tracing::warn!(etcd.version = %reached.version, etcd.place = %reached.place, "this version of etcd has a known fault: {fault}");
            }
        }
    }
}

async fn look(at: usize, endpoint: String, settings: ConnectOptions) -> Result<Reached, Error> {
    let mut client = Client::connect([&endpoint], Some(settings)).await?;
    let status = client.status().await?;
    let cluster = status.header().map_or(0, etcd_client::ResponseHeader::cluster_id);
    // one that follows no leader has refused to answer, as our options ask it to
    if status.is_learner() {
        return Err(Error::EndpointError(format!("{endpoint} is a learner, and serves nobody")));
    }
    if status.errors().iter().any(|error| error.contains("CORRUPT")) {
        return Err(Error::EndpointError(format!("{endpoint} says that its data is corrupt")));
    }
    Ok(Reached { client, cluster, place: format!("etcd at {endpoint}"), at, version: status.version().to_owned() })
}

fn everywhere(options: &EtcdOptions) -> String {
    format!("etcd at {}", options.endpoints.join(","))
}

pub(super) fn unavailable(place: &str, doing: &'static str, error: Error) -> LeaseError {
    LeaseError::Unavailable { what: place.to_owned(), doing, source: Box::new(error) }
}
