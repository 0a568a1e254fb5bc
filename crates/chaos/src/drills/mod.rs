//! The drills, one story a file.

mod clock_skew;
mod crash_mid_transfer;
mod database_restart;
mod deploy;
mod etcd_frozen_holder;
mod far;
mod freeze_in_transaction;
mod frozen_holder;
mod lost_update;
mod naive;
mod partition;
mod throughput;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] = &[
    lost_update::DRILL,
    frozen_holder::DRILL,
    crash_mid_transfer::DRILL,
    throughput::DRILL,
    etcd_frozen_holder::DRILL,
    partition::DRILL,
    freeze_in_transaction::DRILL,
    database_restart::DRILL,
    deploy::DRILL,
    clock_skew::DRILL,
];
