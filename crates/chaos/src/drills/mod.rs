//! The drills, one story a file. What several stories share is no story: `superseded` and `under_way` are courses that they take, `far` a
//! ledger behind a proxy, `naive` clients of patterns that are not ours, `redlock_nodes` the five servers of a redlock.

mod clock_skew;
mod crash_mid_transfer;
mod database_restart;
mod deploy;
mod duplicate_tick;
mod etcd_frozen_holder;
mod etcd_leader_kill;
mod etcd_quorum_loss;
mod etcd_restore;
mod far;
mod freeze_in_transaction;
mod frozen_holder;
mod lock_scope;
mod lost_update;
mod naive;
mod network_delay;
mod partition;
mod pause_lengths;
mod redis_failover;
mod redis_restart;
mod redlock_clock_jump;
mod redlock_node_restart;
mod redlock_nodes;
mod redlock_pause;
mod soak;
mod superseded;
mod throughput;
mod thundering_herd;
mod under_way;

use crate::Drill;

/// All of them, in the order in which they are told.
pub const ALL: &[Drill] = &[
    lost_update::DRILL,
    frozen_holder::DRILL,
    crash_mid_transfer::DRILL,
    throughput::DRILL,
    network_delay::DRILL,
    pause_lengths::DRILL,
    redis_failover::DRILL,
    redis_restart::DRILL,
    redlock_pause::DRILL,
    redlock_node_restart::DRILL,
    redlock_clock_jump::DRILL,
    etcd_leader_kill::DRILL,
    etcd_quorum_loss::DRILL,
    etcd_restore::DRILL,
    etcd_frozen_holder::DRILL,
    partition::DRILL,
    freeze_in_transaction::DRILL,
    database_restart::DRILL,
    deploy::DRILL,
    clock_skew::DRILL,
    duplicate_tick::DRILL,
    thundering_herd::DRILL,
    lock_scope::DRILL,
    soak::DRILL,
];
