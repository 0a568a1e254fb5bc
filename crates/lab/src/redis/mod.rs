//! A private Redis: its own folder, its own port, gone on drop.
//!
//! - [`Redis`] (`server.rs`): the running server; [`fleet`]: several that know nothing of each other.
//! - [`Trio`] (`sentinel.rs`): a primary, its replica, and the sentinel that promotes it.
//! - `resp.rs`: one command and its answer, to look at a server or change it.

mod resp;
mod sentinel;
mod server;

pub use sentinel::{PRIMARY_NAME, Trio};
pub use server::{Options, Redis, fleet};
