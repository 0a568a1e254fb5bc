//! CSV by profile: any bytes give a summary, or an error with a line. The first byte chooses the profile, so that every key of
//! one is tried: those of providers that exist, and two of the tests that use the rest.
#![no_main]

use intake::Profile;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const OWN: [&str; 2] =
    [include_str!("../../tests/profiles/nordhandel.toml"), include_str!("../../tests/profiles/two-currencies.toml")];

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let built_in = Profile::names().filter(|name| !["canonical-ndjson", "nacha"].contains(name)).filter_map(Profile::named);
    built_in.chain(OWN.map(|text| Profile::parse(text, "own").expect("a profile"))).collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let profile = &PROFILES[usize::from(*first) % PROFILES.len()];
    if let Err(error) = intake::read(rest, "fuzz", profile, &mut |_| Ok(())) {
        assert!(error.line().is_some(), "{error}");
    }
});
