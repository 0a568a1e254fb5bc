//! A private PostgreSQL: its own folder, its own port, gone on drop.
//!
//! - [`Binaries`] (`find.rs`): where `postgres`, `initdb` and `psql` are.
//! - `cluster.rs`: its folder on disk, and the user it runs as.
//! - [`Postgres`] (`server.rs`): the running server.
//! - [`PostgresUrl`] (`url.rs`): one database of it, and SQL by way of `psql`.

mod cluster;
mod find;
mod server;
mod url;

pub use find::{BIN_DIR_ENV, Binaries};
pub use server::{Durability, Postgres};
pub use url::PostgresUrl;
