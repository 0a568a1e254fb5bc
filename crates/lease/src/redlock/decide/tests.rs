//! What the answers come to: the boundaries by name, and every combination of answers.

use super::*;
use std::str::FromStr;

const TTL: Duration = Duration::from_secs(10);

fn theirs(who: u8) -> Option<Taken> {
    Some(Taken::Theirs(Stored { value: Some(vec![who]), left_ms: Some(i64::from(who)) }))
}

const OURS: Option<Taken> = Some(Taken::Ours);

#[test]
fn a_majority_in_time_is_a_grant() {
    let three = [OURS, OURS, None, theirs(1), OURS];
    assert_eq!(acquired(&three, TTL, Duration::ZERO), Verdict::Granted);
    let latest = TTL - drift(TTL);
    assert_eq!(acquired(&three, TTL, latest - Duration::from_millis(1)), Verdict::Granted);
    assert_eq!(acquired(&three, TTL, latest), Verdict::TooLate);
}

#[test]
fn less_is_none() {
    let held = |who: u8| Verdict::Held(Stored { value: Some(vec![who]), left_ms: Some(i64::from(who)) });
    let of = |answers: [Option<Taken>; 5]| acquired(&answers, TTL, Duration::ZERO);
    assert_eq!(of([OURS, OURS, theirs(1), theirs(1), theirs(1)]), held(1));
    assert_eq!(of([OURS, OURS, theirs(1), None, None]), held(1), "the silent ones may have the same");
    assert_eq!(of([OURS, OURS, theirs(1), theirs(1), theirs(2)]), Verdict::Split);
    assert_eq!(of([OURS, OURS, None, None, None]), Verdict::Unknown);
    let gone = Some(Taken::Theirs(Stored { value: None, left_ms: None }));
    assert_eq!(of([OURS, OURS, gone.clone(), gone.clone(), gone]), Verdict::Split);
}

#[test]
fn a_renewal_is_lost_only_when_no_majority_can_have_it() {
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(renewed(&[yes, yes, yes, no, None]), Some(Renew::Renewed));
    assert_eq!(renewed(&[yes, yes, no, no, None]), None, "the silent one may have been extended");
    assert_eq!(renewed(&[yes, yes, no, no, no]), Some(Renew::Lost));
    assert_eq!(renewed(&[no, no, no, None, None]), Some(Renew::Lost));
    assert_eq!(renewed(&[None; 5]), None);
    assert_eq!(released(&[yes, yes, yes, None, None]), Some(Release::Released));
    assert_eq!(released(&[yes, no, no, no, None]), Some(Release::NotHeld));
    assert_eq!(released(&[yes, yes, None, None, no]), None);
}

#[test]
fn a_lease_is_listed_where_a_majority_may_have_it() {
    let name = |word: &str| LeaseName::from_str(word).expect("a name");
    let at = |word: &str, who: u8, left: i64| (name(word), Stored { value: Some(vec![who]), left_ms: Some(left) });
    let one = Some(vec![at("a", 1, 10), at("b", 1, 10)]);
    let two = Some(vec![at("a", 1, 30), at("b", 2, 10)]);
    let rows = listed(&[one.clone(), two.clone(), Some(vec![at("a", 1, 20)])]).expect("all answered");
    assert_eq!(rows, BTreeMap::from([at("a", 1, 20)]), "two of three have it for so long");
    let rows = listed(&[one.clone(), Some(vec![]), None]).expect("two answered");
    assert_eq!(rows.len(), 2, "the silent one may have them too");
    assert_eq!(listed(&[one, None, None]), None);
}

/// Everything that `servers` servers may say, each one of `words`.
fn every<T: Clone>(servers: usize, words: &[T]) -> Vec<Vec<T>> {
    (0..servers).fold(vec![vec![]], |rounds, _| {
        let longer = |round: Vec<T>| words.iter().map(move |word| [&round[..], std::slice::from_ref(word)].concat());
        rounds.into_iter().flat_map(longer).collect()
    })
}

/// Every round of three and of five servers: each has our value, one of two others', or is silent.
fn rounds() -> Vec<Vec<Option<Taken>>> {
    [3, 5].into_iter().flat_map(|servers| every(servers, &[OURS, theirs(1), theirs(2), None])).collect()
}

/// Each server has one value, so whoever counts the same servers for another has no majority, whatever the silent ones have.
#[test]
fn two_are_never_granted() {
    let mut granted = 0;
    for round in rounds() {
        if acquired(&round, TTL, Duration::ZERO) != Verdict::Granted {
            continue;
        }
        granted += 1;
        for who in [1, 2] {
            let as_another_sees_it = |said: &Option<Taken>| match said {
                Some(Taken::Ours) => theirs(9),
                None => OURS,
                said if *said == theirs(who) => OURS,
                said => said.clone(),
            };
            let seen: Vec<_> = round.iter().map(as_another_sees_it).collect();
            assert_ne!(acquired(&seen, TTL, Duration::ZERO), Verdict::Granted, "{round:?}");
        }
    }
    assert_eq!(granted, 10 + 106, "ways to have two or three of three, and three, four or five of five");
}

#[test]
fn a_grant_does_not_need_who_was_silent() {
    for round in rounds() {
        let without_the_silent = round.iter().flatten().filter(|taken| **taken == Taken::Ours).count();
        let granted = acquired(&round, TTL, Duration::ZERO) == Verdict::Granted;
        assert_eq!(granted, without_the_silent * 2 > round.len(), "{round:?}");
    }
}

/// What was decided stays decided, whatever the silent ones would have said.
#[test]
fn the_silent_change_no_decision() {
    for said in [3, 5].into_iter().flat_map(|servers| every(servers, &[Some(true), Some(false), None])) {
        for would in [true, false] {
            let filled: Vec<_> = said.iter().map(|belief| belief.or(Some(would))).collect();
            let final_word = renewed(&filled).expect("all answered");
            assert!(renewed(&said).is_none_or(|decided| decided == final_word), "{said:?}");
        }
        let undecided = renewed(&said).is_none();
        let differ = [true, false].map(|would| renewed(&said.iter().map(|belief| belief.or(Some(would))).collect::<Vec<_>>()));
        assert_eq!(undecided, differ[0] != differ[1], "{said:?}");
    }
}
