//! Chaos: what pauses, kills and cuts off instances on purpose, and shows that the books hold all the same.
//!
//! - [`mode`]: a deployed instance that hurts itself at named steps, from a seed. For staging, never by default.
//! - [`drill`] and [`drills`]: experiments with real processes and servers, one story a file, each with a **control arm** in which a
//!   protection is missing and the damage must appear. A drill that cannot fail proves nothing.
//! - [`articles`] and [`actors`]: patterns that are not ours, with tables and keys of their own, to show what they come to.
//! - [`history`] and [`verdict`]: what every process writes down about its requests, and the judge who reads all of it beside the books.
//! - [`model`]: the protocol in every order of events that there is, instead of those that a machine happens to try.
//! - [`report`]: one page about all of it.
//!
//! A story is told with [`stage::Stage`]; how to write one is in the README of this crate.

pub mod actors;
pub mod around;
pub mod articles;
pub mod books;
pub mod drill;
pub mod drills;
mod error;
pub mod event;
pub mod history;
pub mod instance;
pub mod measure;
pub mod mode;
pub mod model;
pub mod record;
pub mod recorded;
pub mod report;
pub mod stage;
pub mod verdict;
pub mod without;

pub use drill::Drill;
pub use error::DrillError;
pub use event::{Event, Mark, Timeline};
pub use record::{Record, Verdict};
pub use stage::Stage;
pub use without::Without;
