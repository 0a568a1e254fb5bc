//! The drills, one story a file.

mod clock_skew;
mod database_restart;
mod deploy;
mod etcd_frozen_holder;
mod far;
mod freeze_in_transaction;
mod naive;
mod partition;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] = &[
    etcd_frozen_holder::DRILL,
    partition::DRILL,
    freeze_in_transaction::DRILL,
    database_restart::DRILL,
    deploy::DRILL,
    clock_skew::DRILL,
];
