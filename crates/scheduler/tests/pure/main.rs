//! What a schedule means, without a ledger: dates, wall time, plans.

#![allow(unreachable_pub, missing_docs, reason = "nothing here is a library")]

mod business_days;
mod definitions;
mod every_zone;
mod fixture;
mod golden_days;
mod occurrences;
mod plans;
mod plans_by_chance;
mod previews;
