//! `[chaos]`, and `--signal-at` of demo, drills and tests → the faults of this process.

use crate::config::{Config, ConfigError};
use chaos::mode::{Mode, Rule};
use uuid::Uuid;

/// Arms them, before anything else is begun: what cannot be done here is no reason to have opened a ledger.
pub(crate) fn faults(config: &Config, signal_at: Option<&Rule>) -> anyhow::Result<Mode> {
    let seed = config.chaos.seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0 >> 32);
    let mut rules = config.chaos.rules();
    rules.extend(signal_at.cloned());
    Mode::arm(rules, seed).map_err(|error| ConfigError(error.to_string()).into())
}
