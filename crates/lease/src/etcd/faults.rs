//! Versions of the server that are known to break what a lease or a token promises. Needs nothing else.

type Version = (u32, u32, u32);

/// A fault of the versions from the first to before the second, the issue of etcd that describes it, and what it does to us.
struct Fault {
    from: Version,
    fixed: Version,
    issue: u32,
    what: &'static str,
}

const SPLIT: &str = "members may store different things, so that two clients each find a lock free";
const FORGETS: &str = "a single member may forget, in a crash, what it has confirmed, and give a token twice";
const REVOKES: &str = "a leader that was stuck revokes leases that its successor renews";

const FAULTS: [Fault; 7] = [
    Fault { from: (0, 0, 0), fixed: (3, 4, 8), issue: 11_651, what: SPLIT },
    Fault { from: (3, 4, 0), fixed: (3, 4, 21), issue: 14_370, what: FORGETS },
    Fault { from: (3, 5, 0), fixed: (3, 5, 5), issue: 14_370, what: FORGETS },
    Fault { from: (3, 5, 0), fixed: (3, 5, 3), issue: 13_766, what: SPLIT },
    Fault { from: (3, 5, 5), fixed: (3, 5, 6), issue: 14_571, what: SPLIT },
    Fault { from: (0, 0, 0), fixed: (3, 4, 31), issue: 15_247, what: REVOKES },
    Fault { from: (3, 5, 0), fixed: (3, 5, 13), issue: 15_247, what: REVOKES },
];

/// One sentence for each fault of that version; none for a version that cannot be read.
pub(super) fn of(version: &str) -> Vec<String> {
    let Some(version) = parse(version) else { return Vec::new() };
    let here = FAULTS.iter().filter(|fault| fault.from <= version && version < fault.fixed);
    here.map(|fault| {
        let (major, minor, patch) = fault.fixed;
        format!("{} (etcd-io/etcd#{}, fixed in {major}.{minor}.{patch})", fault.what, fault.issue)
    })
    .collect()
}

/// `3.5.0-rc.1` counts as `3.5.0`.
fn parse(version: &str) -> Option<Version> {
    let numbers = version.split(['-', '+']).next()?;
    let mut numbers = numbers.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::of;

    fn issues(version: &str) -> Vec<u32> {
        let number = |said: &String| said.split_once('#')?.1.split_once(',')?.0.parse().ok();
        of(version).iter().filter_map(number).collect()
    }

    #[test]
    fn each_version_has_its_faults() {
        assert_eq!(issues("3.4.7"), [11_651, 14_370, 15_247]);
        assert_eq!(issues("3.4.23"), [15_247]);
        assert_eq!(issues("3.5.2"), [14_370, 13_766, 15_247]);
        assert_eq!(issues("3.5.5"), [14_571, 15_247]);
        for fine in ["3.4.31", "3.5.13", "3.6.0", "4.0.0"] {
            assert_eq!(issues(fine), Vec::<u32>::new(), "{fine}");
        }
    }

    #[test]
    fn a_version_is_read_or_passed_over() {
        assert_eq!(issues("3.5.0-rc.1"), issues("3.5.0"));
        for strange in ["", "3.5", "new"] {
            assert_eq!(of(strange), Vec::<String>::new(), "{strange}");
        }
    }

    #[test]
    fn a_sentence_says_where_it_ends() {
        assert_eq!(
            of("3.4.30"),
            ["a leader that was stuck revokes leases that its successor renews (etcd-io/etcd#15247, fixed in 3.4.31)"]
        );
    }
}
