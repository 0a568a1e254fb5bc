//! NACHA: any bytes give a summary, or an error with a line.
#![no_main]

use intake::Profile;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static PROFILE: LazyLock<Profile> = LazyLock::new(|| Profile::named("nacha").expect("a built-in profile"));

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = intake::read(bytes, "fuzz", &PROFILE, &mut |_| Ok(())) {
        assert!(error.line().is_some(), "{error}");
    }
});
