//! The drills, one story a file.

mod etcd_frozen_holder;
mod soak;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] = &[etcd_frozen_holder::DRILL, soak::DRILL];
