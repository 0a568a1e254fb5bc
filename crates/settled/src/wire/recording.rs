//! `[chaos] history` → what this process asks is written down.

use crate::config::{Config, ConfigError};
use chaos::history::History;
use chaos::recorded;
use domain::ids::HolderId;
use domain::step::Probe;
use lease::Connector;
use ledger::Ledger;
use std::sync::Arc;

/// Where to, if anywhere.
pub(super) struct Recording(Option<Arc<History>>);

impl Recording {
    pub(super) fn of(config: &Config, holder: HolderId) -> anyhow::Result<Recording> {
        let file = config.chaos.history.as_deref();
        let begun = file.map(|file| History::begin(file, holder)).transpose();
        Ok(Recording(begun.map_err(|error| ConfigError(format!("chaos.history: {error}")))?.map(Arc::new)))
    }

    pub(super) fn history(&self) -> Option<Arc<History>> {
        self.0.clone()
    }

    pub(super) fn ledger(&self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        match &self.0 {
            Some(history) => recorded::ledger(ledger, history),
            None => ledger,
        }
    }

    pub(super) fn connector(&self, connector: Box<dyn Connector>) -> Box<dyn Connector> {
        match &self.0 {
            Some(history) => recorded::connector(connector, history),
            None => connector,
        }
    }

    pub(super) fn probe(&self, probe: Arc<dyn Probe>) -> Arc<dyn Probe> {
        match &self.0 {
            Some(history) => recorded::probe(probe, history),
            None => probe,
        }
    }
}
