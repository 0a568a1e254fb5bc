//! A private etcd: one or three members, their own folders, their own ports, gone on drop.
//!
//! - [`Etcd`] (`cluster.rs`): the cluster, and what happens to its members.
//! - `member.rs`: one member on disk and as a process.
//! - `http.rs`: what a member says of itself over its HTTP gateway.
//! - `keys.rs`: what `etcdctl` does with the cluster: any command, compaction, users, snapshots.

mod cluster;
mod http;
mod keys;
mod member;

pub use cluster::{Etcd, EtcdOptions};
