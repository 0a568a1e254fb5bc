//! Real servers as child processes on free loopback ports, for tests and drills.
//!
//! Nothing here knows the product: a test asks for a PostgreSQL, gets the URL of an empty
//! database, and everything is gone when the owner is dropped, also after a panic.
//!
//! - [`trials`]: the test harness; a missing server is *ignored*, or *fails* where servers
//!   are required. Start reading here.
//! - [`postgres`]: one private PostgreSQL, and databases in it.
//! - [`etcd`]: one private etcd, of one member or three.
//! - [`redis`]: a private Redis, several, or a primary with its replica and a sentinel.
//! - [`pgbouncer`]: a pooler in front of it.
//! - [`process`]: any child process, to freeze, wake, kill, and to measure.
//! - [`proxy`]: a network that delays, falls silent, and breaks connections.
//! - [`faketime`]: a child whose clock is wrong, or is set while it runs.
//! - [`ports`]: a free loopback port; [`programs`]: where a server's program is.
//!
//! Servers are looked for on the machine first, then under [`servers_dir`], which
//! `cargo xtask servers` fills. Nothing is installed and no service of the machine is touched.

mod certificates;
mod error;
pub mod etcd;
pub mod faketime;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod programs;
pub mod proxy;
pub mod redis;
mod tree;
pub mod trials;
mod user;

use std::path::{Path, PathBuf};

pub use certificates::Certificates;
pub use error::Error;

/// Where `cargo xtask servers` unpacks what the machine does not have: `target/servers` of
/// this checkout.
///
/// Fixed at compile time, so that a test finds it from whatever folder it runs in.
pub fn servers_dir() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    // crates/lab is two levels below the workspace
    crate_dir.ancestors().nth(2).unwrap_or(crate_dir).join("target/servers")
}
