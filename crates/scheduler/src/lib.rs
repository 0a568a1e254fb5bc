//! Schedules: which runs occur when, and that each of them is planned once, whatever happens to instances and clocks.
//!
//! The protocol, as every instance follows it:
//!
//! 1. The [`bell`] rings, every second. It says *look*, and neither when nor what.
//! 2. If something may have occurred since the last look, the [`planner`] reads the mark of every schedule and the **database's** clock, in
//!    one query. A schedule without a mark begins now; one that the ledger plans by another [`definition`] is left alone.
//! 3. [`plan`](plan::plan) decides, purely, about everything in (mark, now]: what is on time runs, what is late runs or is recorded as missed.
//! 4. The ledger writes that and moves the mark in one transaction, if the mark is still where it was read. If it is not, another
//!    instance was faster: read again.
//!
//! So a run is lost only with the ledger, and occurs twice never: its key is the occurrence (business date and wall time), not the clock
//! of whoever saw it. Killed between any two of these steps, an instance leaves a mark from which the next one plans.
//!
//! When something occurs is worked out from three parts, each pure: wall time and instants (`wall.rs`), business dates as intervals of
//! time ([`days`], on a [`calendar`]), and [`occurrence`]. [`preview`] shows all of it before it happens. [`RawSchedule`] is a schedule as
//! it is configured.

pub mod bell;
pub mod calendar;
pub mod days;
pub mod definition;
pub mod holidays;
mod late;
pub mod occurrence;
pub mod plan;
pub mod planner;
pub mod preview;
pub mod raw;
pub mod report;
mod wall;
mod words;

pub use bell::Bell;
pub use definition::Definition;
pub use planner::Planner;
pub use raw::RawSchedule;
