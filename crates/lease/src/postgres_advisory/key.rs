//! Names as advisory locks have them: two 32-bit integers. Needs `contract.rs`.

use crate::LeaseName;
use sha2::{Digest, Sha256};
use std::str::FromStr;

/// The two integers. Two names of one key exclude each other, which costs work and breaks nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    /// The first four bytes of the SHA-256 of what is before the last `/`.
    pub(super) class: i32,
    /// What is behind it, where that is a number as numbers are written; else hashed in the same way.
    pub(super) id: i32,
}

impl Key {
    pub(super) fn of(name: &LeaseName) -> Key {
        let (family, last) = name.as_str().rsplit_once('/').unwrap_or(("", name.as_str()));
        let number = last.parse::<i32>().ok().filter(|number| number.to_string() == last);
        Key { class: hash(family), id: number.unwrap_or_else(|| hash(last)) }
    }
}

/// Names of the form `<family>/<number>`: all that can be told from a key.
pub(super) struct Family {
    name: String,
    pub(super) class: i32,
}

impl Family {
    /// The family of a prefix, which is its ledger's units: a hash cannot be searched by its beginning.
    pub(super) fn of(prefix: &str) -> Family {
        const UNITS: &str = "/unit";
        let ledger = prefix.find(UNITS).map_or(prefix, |at| &prefix[..at]);
        let name = format!("{}{UNITS}", ledger.trim_end_matches('/'));
        Family { class: hash(&name), name }
    }

    pub(super) fn member(&self, id: i32) -> Option<LeaseName> {
        LeaseName::from_str(&format!("{}/{id}", self.name)).ok()
    }
}

fn hash(text: &str) -> i32 {
    let hash = Sha256::digest(text);
    i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::of(&LeaseName::from_str(name).expect("a name"))
    }

    #[test]
    fn a_unit_is_its_number_and_others_are_hashed() {
        let unit = key("ledger/unit/3");
        assert_eq!((unit.class, unit.id), (hash("ledger/unit"), 3));
        // sha256sum of "ledger/unit" begins with these
        assert_eq!(unit.class.to_be_bytes(), SHA256_OF_LEDGER_UNIT);
        assert_eq!(key("ledger/unit/-3").id, -3);
        for other in ["ledger/unit/03", "ledger/unit/+3", "ledger/unit/3x", "ledger/unit/99999999999", "other/unit/3", "3"] {
            assert_ne!(key(other), unit, "{other}");
        }
        assert_eq!(key("ledger/unit/03").class, unit.class);
    }

    const SHA256_OF_LEDGER_UNIT: [u8; 4] = [0x4e, 0xc7, 0x2f, 0xaa];

    #[test]
    fn names_are_told_from_the_prefix_of_a_ledger() {
        for prefix in ["ledger", "ledger/", "ledger/unit", "ledger/unit/", "ledger/unit/3"] {
            let family = Family::of(prefix);
            assert_eq!(family.class, hash("ledger/unit"), "{prefix}");
            assert_eq!(family.member(3).expect("a name").as_str(), "ledger/unit/3");
        }
        assert!(Family::of("no name").member(3).is_none());
    }
}
