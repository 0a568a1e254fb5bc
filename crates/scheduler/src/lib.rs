//! Schedules.

pub mod calendar;
pub mod days;
pub mod definition;
pub mod holidays;
mod late;
pub mod occurrence;
pub mod plan;
pub mod preview;
pub mod raw;
mod wall;
mod words;

pub use raw::RawSchedule;
