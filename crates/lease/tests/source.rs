//! Rules about the source itself.

use std::path::Path;

/// L22: the standard library's clock stands still while the machine is suspended (rust-lang/rust#87906).
#[test]
fn no_deadline_is_read_from_a_clock_that_stops_in_suspend() {
    let mut read = 0;
    look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut read);
    assert!(read >= 10, "{read} files read: the sources have moved");
}

fn look(folder: &Path, read: &mut u32) {
    for entry in std::fs::read_dir(folder).expect("a source folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            look(&path, read);
            continue;
        }
        *read += 1;
        for (number, line) in std::fs::read_to_string(&path).expect("a source file").lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            assert!(!names_instant(code), "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// The word `Instant`, which `BootInstant` is not.
fn names_instant(code: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "Instant" || word == "SystemTime")
}

#[test]
fn the_rule_sees_what_it_forbids() {
    assert!(names_instant("use std::time::{Duration, Instant};"));
    assert!(names_instant("tokio::time::Instant::now()"));
    assert!(!names_instant("BootInstant::from_nanos(1)"));
}
