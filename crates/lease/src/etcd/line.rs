//! The line of those who wait for a lock. Needs `keys.rs`, `sessions.rs`.
//!
//! Our key is put behind all others, and then the deletion of **the one before it** is watched, of no other: a release wakes its
//! successor alone. A place is worth what the etcd lease under it is worth. When that dies the key is gone without anybody who would
//! tell us, so every time we are asked, the key itself is looked at; a place that was lost is an error, and is never joined anew behind
//! the back of who waits.

use super::EtcdBackend;
use super::keys::{self, Lock, found};
use super::sessions::{Kept, Standing};
use crate::{Ask, LeaseError, Line, Turn};
use etcd_client::{Client, Error, WatchFilterType, WatchOptions};

const DOING: &str = "stand in line";

impl EtcdBackend {
    pub(super) async fn queue(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        match self.sessions.kept(ask) {
            Some(kept) => self.keep_place(ask, kept).await,
            None => self.join(ask).await,
        }
    }

    async fn join(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        let lock = Lock::of(&self.prefix, &ask.name);
        loop {
            let (lease, fresh) = self.lease(ask, DOING).await?;
            let Some(answer) = self.put(lock.queue(ask, lease), lease, fresh, DOING).await? else { continue };
            if !answer.succeeded() {
                // our key is there already: put by this question, whose answer was lost, or by another task of this process
                let ours = found(&answer).into_iter().find(|found| found.value() == keys::value(ask).as_bytes());
                let Some(ours) = ours else { return Ok(Line::None) };
                let (key, revision) = (lock.key(lease), ours.create_revision());
                let kept = Kept { key, revision, lease, standing: Standing::Waits };
                self.sessions.keep(ask, kept.clone());
                return self.keep_place(ask, kept).await;
            }
            let revision = super::revision(&answer);
            self.sessions.keep(ask, Kept { key: lock.key(lease), revision, lease, standing: Standing::Waits });
            if !fresh && !self.beat(lease, DOING).await? {
                return Err(self.place_gone());
            }
            let before = found(&answer).into_iter().find(|found| found.create_revision() < revision);
            return Ok(Line::Place(self.turn(before.map(|before| before.key().to_vec()), revision)));
        }
    }

    async fn keep_place(&mut self, ask: &Ask, kept: Kept) -> Result<Line, LeaseError> {
        let Some(kept) = self.alive(ask, kept, DOING).await? else { return Err(self.place_gone()) };
        let before = Lock::of(&self.prefix, &ask.name).who_is_before(&kept.key, kept.revision);
        let answer = self.transact(before, DOING).await?;
        if !answer.succeeded() {
            self.gone(ask, kept);
            return Err(self.place_gone());
        }
        let seen = super::revision(&answer);
        Ok(Line::Place(self.turn(found(&answer).first().map(|before| before.key().to_vec()), seen)))
    }

    pub(super) fn place_gone(&self) -> LeaseError {
        let gone = Error::LeaseKeepAliveError("our place in the line is gone".to_owned());
        super::reach::unavailable(&self.place, DOING, gone)
    }

    /// Nobody before us: now.
    fn turn(&self, before: Option<Vec<u8>>, seen: i64) -> Turn {
        let client = self.client.clone();
        match before {
            Some(before) => Box::pin(until_deleted(client, before, seen + 1)),
            None => Box::pin(std::future::ready(())),
        }
    }
}

/// Also when the watch fails or is refused, as after a compaction: whoever waits then asks again.
async fn until_deleted(mut client: Client, key: Vec<u8>, from: i64) {
    let options = WatchOptions::new().with_start_revision(from).with_filters([WatchFilterType::NoPut]);
    let Ok(mut watch) = client.watch(key, Some(options)).await else { return };
    while let Ok(Some(said)) = watch.message().await {
        if said.canceled() || !said.events().is_empty() {
            return;
        }
    }
}
