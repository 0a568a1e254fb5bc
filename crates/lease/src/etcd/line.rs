//! The line of those who wait for a lock. Needs `keys.rs`, `sessions.rs`.
//!
//! Our key is put behind all others, and then the deletion of **the one before it** is watched, of no other: a release wakes its
//! successor alone. A place is worth what the etcd lease under it is worth, and when that dies the key goes without a word. So our own
//! key is watched as well, and looked at every time we are asked; a place that was lost is an error, and is never joined anew behind
//! the back of who waits.

use super::keys::{Lock, found};
use super::sessions::{Kept, Standing};
use super::{EtcdBackend, is_ours};
use crate::{Ask, LeaseError, Line, Turn};
use etcd_client::{Client, Error, KeyValue, WatchFilterType, WatchOptions};

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
            let lease = self.lease(ask, DOING).await?;
            let Some(answer) = self.put(lock.queue(ask, lease.id), &lease, DOING).await? else { continue };
            let (keys, key) = (found(&answer), lock.key(lease.id));
            if answer.succeeded() {
                let revision = super::revision(&answer);
                let kept = Kept::new(key, revision, lease.id, Standing::Waits, lease.sent, ask);
                self.sessions.keep(ask, kept.clone());
                if !lease.is_confirmed_by(&answer) {
                    return self.keep_place(ask, kept).await;
                }
                let before = keys.into_iter().find(|key| key.create_revision() < revision);
                return Ok(Line::Place(self.turn(&kept, before.as_ref(), revision)));
            }
            // our key is there already: put by this very question, whose answer was lost, or by another task of this process
            let Some(ours) = keys.into_iter().find(|key| is_ours(key, ask)) else { return Ok(Line::None) };
            let kept = Kept::found(&ours, Standing::Waits, ask);
            self.sessions.keep(ask, kept.clone());
            return self.keep_place(ask, kept).await;
        }
    }

    async fn keep_place(&mut self, ask: &Ask, kept: Kept) -> Result<Line, LeaseError> {
        let before = Lock::of(&self.prefix, &ask.name).who_is_before(&kept.key, kept.revision);
        match self.confirm(ask, kept, before, DOING).await? {
            Some((kept, answer)) => Ok(Line::Place(self.turn(&kept, found(&answer).first(), super::revision(&answer)))),
            None => Err(self.place_gone()),
        }
    }

    pub(super) fn place_gone(&self) -> LeaseError {
        let gone = Error::LeaseKeepAliveError("our place in the line is gone".to_owned());
        super::reach::unavailable(&self.place, DOING, gone)
    }

    /// Nobody before us: now.
    fn turn(&self, ours: &Kept, before: Option<&KeyValue>, seen: i64) -> Turn {
        match before {
            Some(before) => {
                Box::pin(until_deleted(self.client.clone(), [before.key().to_vec(), ours.key.clone().into()], seen + 1))
            }
            None => Box::pin(std::future::ready(())),
        }
    }
}

/// Until one of them is. Also when the watch fails or is refused, as after a compaction: whoever waits then asks again.
async fn until_deleted(mut client: Client, [before, ours]: [Vec<u8>; 2], from: i64) {
    let options = Some(WatchOptions::new().with_start_revision(from).with_filters([WatchFilterType::NoPut]));
    let Ok(mut watch) = client.watch(before, options.clone()).await else { return };
    let mut watched = watch.watch(ours, options).await.is_ok();
    while watched {
        let said = watch.message().await;
        watched = matches!(said, Ok(Some(said)) if !said.canceled() && said.events().is_empty());
    }
}
