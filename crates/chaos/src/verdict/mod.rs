//! The judge of histories.

pub mod leases;
