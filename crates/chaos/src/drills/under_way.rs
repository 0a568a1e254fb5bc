//! A run in which something happens: how far it is, whether it stands still, how it ends.

use crate::books::Books;
use crate::instance::{Instance, PATIENCE};
use crate::stage::until;
use crate::{DrillError, Mark, Stage};
use std::time::Duration;

/// So many that a run is not over before something can happen to it, on however fast a machine.
const BATCHES: u32 = 4_000;

/// So many in a row are no chance.
const SOME: u64 = 20;

/// A run that has begun.
pub(super) struct UnderWay<'a> {
    stage: &'a Stage,
    arm: &'a str,
    books: Books<'a>,
    instances: Vec<Instance>,
}

impl<'a> UnderWay<'a> {
    /// Takes batches in, and waits until some of them are settled.
    pub(super) async fn begin(
        stage: &'a Stage,
        arm: &'a str,
        books: &Books<'a>,
        names: &[&str],
    ) -> Result<UnderWay<'a>, DrillError> {
        books.take_in(BATCHES, 1)?;
        let instances = names.iter().map(|name| books.start(name, &["run", "--json"])).collect::<Result<_, _>>()?;
        let run = UnderWay { stage, arm, books: books.clone(), instances };
        until("the run has begun", PATIENCE, async || Ok((run.settled().await? > SOME).then_some(()))).await?;
        Ok(run)
    }

    /// How many batches are settled by now.
    pub(super) async fn settled(&self) -> Result<u64, DrillError> {
        self.books.settled_batches().await
    }

    /// What happened came before the end of the run, when so many were settled.
    pub(super) fn hit(&self, settled: u64) {
        self.stage.tell("director", Mark::Note, format!("{settled} of {BATCHES} batches are settled"));
        let seen = format!("{settled} of {BATCHES} settled");
        self.stage.must_bite(self.arm, "it happens in the middle of the run", seen, settled < u64::from(BATCHES));
    }

    /// How many batches are settled when every lease of before is over, and how many more in a TTL from then on.
    pub(super) async fn stands_still(&self, ttl: Duration) -> Result<(u64, u64), DrillError> {
        // a transaction that began under a lease ends within half a TTL
        tokio::time::sleep(ttl + ttl / 2).await;
        let then = self.settled().await?;
        tokio::time::sleep(ttl).await;
        let more = self.settled().await? - then;
        self.stage.tell("director", Mark::Note, format!("{more} batches more were settled in {} ms", ttl.as_millis()));
        Ok((then, more))
    }

    /// The run goes on by itself. When that was seen, an instance that settles many batches at a time brings it to its end.
    pub(super) async fn finished(mut self) -> Result<(), DrillError> {
        let (all, before) = (u64::from(BATCHES), self.settled().await?);
        let further = until("the run goes on", PATIENCE, async || {
            let now = self.settled().await?;
            Ok((now >= all.min(before + SOME)).then_some(now - before))
        });
        let further = further.await;
        let seen = further.as_ref().map_or_else(ToString::to_string, |more| format!("{more} batches more"));
        self.stage.tell("director", Mark::Note, format!("the run goes on: {seen}"));
        self.stage.must_hold(self.arm, "the run goes on by itself", seen, further.is_ok());
        for instance in &mut self.instances {
            if instance.process.ended()?.is_none() {
                instance.process.terminate()?;
                self.stage.tell(instance.name(), Mark::Note, "asked to hand over (SIGTERM)");
            }
        }
        let fast = self.books.with("worker.batches_per_transaction", 500).start("D", &["run", "--json"])?;
        self.instances.push(fast);
        self.check_books(all).await
    }

    async fn check_books(&mut self, all: u64) -> Result<(), DrillError> {
        for instance in &mut self.instances {
            instance.end().await?;
        }
        self.stage.judge(self.arm, &self.books).await?;
        let settled = self.settled().await?;
        self.stage.must_hold(self.arm, "every batch is settled", format!("{settled} of {all}"), settled == all);
        Ok(())
    }
}
