//! The planning loop: a bell rings, the planner looks whether an occurrence has come, the ledger keeps what it plans.

use super::metrics as name;
use domain::ids::HolderId;
use ledger::Ledger;
use metrics::{counter, gauge};
use scheduler::definition::Definition;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use worker::{Drain, Pulse};

/// What the loop needs.
pub(super) struct Planning {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) holder: HolderId,
    /// In force; a reload of the configuration sends others.
    pub(super) definitions: watch::Receiver<Vec<Definition>>,
    /// Told when a run was opened here.
    pub(super) wake: Arc<Notify>,
    pub(super) drain: Drain,
    pub(super) pulse: Arc<Pulse>,
}
impl Planning {
    pub(super) async fn plan(self) -> anyhow::Result<()> {
        self.drain.asked().await;
        Ok(())
    }
}
