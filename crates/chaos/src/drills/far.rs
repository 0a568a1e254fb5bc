//! A ledger that is some way off: its database is reached through a proxy that can be made slow, silent or broken, and looked at
//! directly.

use crate::books::Books;
use crate::instance::PATIENCE;
use crate::stage::until;
use crate::{DrillError, Stage};
use lab::postgres::PostgresUrl;
use lab::proxy::{Proxy, Way};
use std::net::SocketAddr;
use std::time::Duration;

/// Each way: a batch takes some ten round trips, so a run has the same pace on every machine, and lasts long enough to be hit.
const AWAY: Duration = Duration::from_millis(2);

/// A database with two ways to it.
pub(super) struct Far<'a> {
    /// The ledger, by the direct way.
    pub(super) books: Books<'a>,
    /// The other way.
    pub(super) way: Proxy,
    /// The database, to look at it directly.
    pub(super) database: PostgresUrl,
    by_way: String,
}

impl<'a> Far<'a> {
    /// A ledger in this empty database.
    pub(super) fn new(stage: &'a Stage, database: PostgresUrl) -> Result<Far<'a>, DrillError> {
        let (way, by_way) = way_to(&database)?;
        way.delay(AWAY);
        Ok(Far { books: stage.books(&database), way, database, by_way })
    }

    /// Settled with another setting. Before [`Far::take_in`], which fixes some of them.
    pub(super) fn having(mut self, key: &str, value: impl ToString) -> Far<'a> {
        self.books = self.books.with(key, value);
        self
    }

    /// With so many batches.
    pub(super) fn take_in(self, batches: u32) -> Result<Far<'a>, DrillError> {
        self.books.take_in(batches, 3)?;
        Ok(self)
    }

    /// The ledger by the long way.
    pub(super) fn far(&self) -> Books<'a> {
        self.books.by_way_of(&self.by_way)
    }

    /// Nothing passes any more, and nobody is told.
    pub(super) fn silence(&self) {
        silence(&self.way);
    }

    /// A number of the database.
    pub(super) fn number(&self, sql: &str) -> Result<u64, DrillError> {
        number(&self.database, sql)
    }

    /// Waits until that is more than `than`.
    pub(super) async fn more_settled(&self, than: u64) -> Result<u64, DrillError> {
        let what = format!("more than {than} batches are settled");
        until(&what, PATIENCE, async || Ok(Some(self.books.settled_batches().await?).filter(|settled| *settled > than))).await
    }

    /// The instant of the database, as a literal of it.
    pub(super) fn now(&self) -> Result<String, DrillError> {
        Ok(format!("timestamptz '{}'", self.database.query("SELECT clock_timestamp()")?))
    }

    /// What every arm of every drill must come to, once its instances have ended.
    pub(super) async fn must_be_settled(&self, stage: &Stage, arm: &str, batches: u32) -> Result<(), DrillError> {
        stage.judge(arm, &self.books).await?;
        let settled = self.books.settled_batches().await?;
        stage.must_hold(arm, "every batch is settled", format!("{settled} of {batches}"), settled == u64::from(batches));
        Ok(())
    }
}

/// A number of a database.
pub(super) fn number(database: &str, sql: &str) -> Result<u64, DrillError> {
    let text = PostgresUrl::new(database).query(sql)?;
    text.trim().parse().map_err(|_| DrillError::Story(format!("{sql} gave {text:?}, which is no number")))
}

/// Nothing passes a proxy any more, in either direction, and nobody is told.
pub(super) fn silence(way: &Proxy) {
    way.silence(Way::There);
    way.silence(Way::Back);
}

/// A proxy in front of the server of a database, and the URL by way of it.
pub(super) fn way_to(database: &str) -> Result<(Proxy, String), DrillError> {
    let parts = database.split_once('@').and_then(|(user, rest)| Some((user, rest.split_once('/')?)));
    let address = parts.and_then(|(_, (server, _))| server.parse::<SocketAddr>().ok());
    let (Some((user, (_, name))), Some(address)) = (parts, address) else {
        return Err(DrillError::Story(format!("{database} is not postgres://USER@ADDRESS:PORT/NAME")));
    };
    let way = Proxy::start(address)?;
    let url = format!("{user}@{}/{name}", way.address());
    Ok((way, url))
}
