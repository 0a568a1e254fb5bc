//! The drills, one story a file.

mod crash_mid_transfer;
mod etcd_frozen_holder;
mod frozen_holder;
mod lost_update;
mod throughput;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] =
    &[lost_update::DRILL, frozen_holder::DRILL, crash_mid_transfer::DRILL, throughput::DRILL, etcd_frozen_holder::DRILL];
