//! Serving: look for what open runs make due, work it, look again. What every instance does all day and all night.
//!
//! Nobody is told what to do. An instance reads which runs are open and which units have work for them, takes a unit that is
//! free, works it, and looks again. So instances may come and go at any time, and whichever opened a run need not live to
//! see its end. While nothing is due a look is two queries, and looks are jittered so that instances do not look together.

use crate::settle::Shift;
use crate::{Worker, WorkerError};
use ledger::schedule::OpenRun;
use std::sync::Arc;
use tokio::sync::Notify;
use tracing::{debug, info};

/// What a look for work found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Something was worked: there may be more.
    Worked,
    /// There is work, and others have all of it.
    Busy,
    /// Nothing is due.
    Idle,
}

impl Worker {
    /// Works whatever open runs make due until a drain is asked. `wake` ends an idle pause early: a run was just opened here.
    ///
    /// Outages of ledger and lock service are waited out.
    ///
    /// # Errors
    /// What waiting cannot cure: a ledger that was configured otherwise, a token source that is not the newest or went back.
    pub async fn serve(&self, wake: Arc<Notify>) -> Result<(), WorkerError> {
        let mut outage = None;
        while !self.drain.is_asked() {
            self.pulse.beat();
            let looked = match self.look().await {
                Ok(looked) => looked,
                Err(error) if error.is_outage() && self.drain.is_asked() => {
                    debug!(%error, "a service is out; it is left anyway");
                    break;
                }
                Err(error) => {
                    self.sit_out(error, &mut outage, None).await?;
                    continue;
                }
            };
            if outage.take().is_some() {
                info!("the service is back");
            }
            match looked {
                Look::Worked => {}
                Look::Busy => self.pause(self.pace.get().poll).await,
                Look::Idle => {
                    tokio::select! {
                        () = self.pause_about(self.pace.get().idle_poll) => {}
                        () = wake.notified() => {}
                    }
                }
            }
        }
        Ok(())
    }

    async fn look(&self) -> Result<Look, WorkerError> {
        let mut looked = Look::Idle;
        for run in self.ledger.open_work().await? {
            if self.drain.is_asked() {
                break;
            }
            if run.units.is_empty() {
                self.note_end(&run).await?;
                continue;
            }
            let shift = Shift { run: run.id, due: run.due, until: None };
            let worked = self.work_some(run.units, &shift).await?;
            looked = if worked || looked == Look::Worked { Look::Worked } else { Look::Busy };
        }
        Ok(looked)
    }

    async fn note_end(&self, run: &OpenRun) -> Result<(), WorkerError> {
        let ended = if run.finished { 0 } else { self.ledger.finish(&run.due).await? };
        if ended > 0 {
            info!(runs = ended, upto = %run.due.upto, newest = %run.id, schedule = run.key.schedule, "run finished: nothing is due any more");
        }
        Ok(())
    }
}
