use crate::fixture::Named;
pub const EVERY: &[Named] = &[];
