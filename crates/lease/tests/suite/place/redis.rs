//! Redis, one or five: shared by the cases with a prefix for each, or a case's own to break.

use super::super::capabilities::Server;
use lab::redis::{Options, Redis};
use lease::{Connector, RedisConnector, RedisOptions, RedlockConnector, RedlockOptions};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Where keys of one case are.
pub(crate) struct RedisPlace {
    pub(crate) urls: Vec<String>,
    pub(crate) prefix: String,
    own: Option<Mutex<Vec<Redis>>>,
}

impl RedisPlace {
    /// A part of servers that others use as well.
    fn shared(servers: &[Redis]) -> RedisPlace {
        RedisPlace { urls: servers.iter().map(url).collect(), prefix: format!("{}:", Uuid::new_v4()), own: None }
    }

    /// Servers of its own, whose clocks can be set.
    pub(crate) fn own(size: usize) -> Result<RedisPlace, lab::Error> {
        let options = Options { own_clock: true, ..Options::default() };
        let servers = (0..size).map(|_| Redis::start_with(options.clone())).collect::<Result<Vec<_>, _>>()?;
        let urls = servers.iter().map(url).collect();
        Ok(RedisPlace { urls, prefix: RedisOptions::PREFIX.to_owned(), own: Some(Mutex::new(servers)) })
    }

    pub(crate) fn server(&self) -> Option<&dyn Server> {
        self.own.as_ref().map(|own| own as &dyn Server)
    }

    pub(crate) fn words(&self) -> String {
        format!("{} {}", self.urls.join(","), self.prefix)
    }

    pub(crate) fn from_words(words: &str) -> RedisPlace {
        let (urls, prefix) = words.split_once(' ').expect("URLs and a prefix");
        RedisPlace { urls: urls.split(',').map(str::to_owned).collect(), prefix: prefix.to_owned(), own: None }
    }

    pub(crate) fn redis(&self) -> Box<dyn Connector> {
        let options = RedisOptions { prefix: self.prefix.clone(), ..RedisOptions::new(&self.urls[0]) };
        Box::new(RedisConnector::new(options).expect("options that fit"))
    }

    pub(crate) fn redlock(&self) -> Box<dyn Connector> {
        let options = RedlockOptions { prefix: self.prefix.clone(), ..RedlockOptions::new(&self.urls) };
        Box::new(RedlockConnector::new(options).expect("options that fit"))
    }
}

pub(crate) fn url(server: &Redis) -> String {
    format!("redis://{}/0", server.address())
}

impl Server for Mutex<Vec<Redis>> {
    fn restart(&self) {
        let mut servers = self.lock().expect("no case panics inside");
        servers.iter_mut().for_each(|server| server.kill().expect("killed"));
        servers.iter_mut().for_each(|server| server.start_again().expect("started again"));
    }

    fn lose_one(&self) {
        self.lock().expect("no case panics inside")[0].kill().expect("killed");
    }

    fn step_clocks(&self, by: Duration) -> Result<(), lab::Error> {
        let servers = self.lock().expect("no case panics inside");
        servers.iter().try_for_each(|server| server.set_clock(&format!("+{}s", by.as_secs())))
    }
}

/// The five that cases share. Started when the first of them wants one, stopped by `main`: a static would never be dropped.
#[derive(Default)]
pub(crate) struct SharedRedis(Mutex<Vec<Redis>>);

impl SharedRedis {
    pub(crate) fn place(&self, size: usize) -> Result<RedisPlace, lab::Error> {
        // held while they start: the others wait for the same ones
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.is_empty() {
            *servers = lab::redis::fleet(5)?;
        }
        Ok(RedisPlace::shared(&servers[..size]))
    }

    pub(crate) fn stop(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
