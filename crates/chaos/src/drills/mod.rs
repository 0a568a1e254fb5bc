//! The drills, one story a file.

mod crash_mid_transfer;
mod etcd_frozen_holder;
mod frozen_holder;
mod lock_scope;
mod lost_update;
mod network_delay;
mod pause_lengths;
mod throughput;
mod thundering_herd;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] = &[
    lost_update::DRILL,
    frozen_holder::DRILL,
    crash_mid_transfer::DRILL,
    throughput::DRILL,
    network_delay::DRILL,
    pause_lengths::DRILL,
    thundering_herd::DRILL,
    lock_scope::DRILL,
    etcd_frozen_holder::DRILL,
];
