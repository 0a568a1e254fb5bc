//! Profiles: any text is a profile or a sentence about why not; a profile reads its own text as a file without a panic.
#![no_main]

use intake::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(profile) = Profile::parse(text, "fuzz") {
        let _ = intake::read(text.as_bytes(), "fuzz", &profile, &mut |_| Ok(()));
    }
});
