use crate::fixture::Named;
pub const EVERY: &[Named] = &[];
pub const POSTGRES: &[Named] = &[];
