//! The settlement domain, pure: no tokio, no SQL, no clock, no randomness.
//!
//! Everything here is a value or a decision about values, so it can be read, copied and property-tested alone. Start with
//! [`batch`] (the states of a settlement batch), [`fence`] (who may write) and [`journal`] (what a settled batch posts).

pub mod batch;
pub mod fence;
pub mod idempotency;
pub mod ids;
pub mod item;
pub mod journal;
pub mod money;
pub mod outcome;
pub mod run;
pub mod step;
pub mod summary;
pub mod totals;
pub mod unit;
