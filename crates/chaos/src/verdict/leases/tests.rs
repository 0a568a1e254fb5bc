//! Histories of leases that are right, and each way in which one can be wrong; by hand, and by a lock that is simulated.

use super::*;
use crate::history::Of;
use domain::fence::Fence;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

/// A history that is written down call by call.
#[derive(Default)]
struct Told(Vec<Line>);

impl Told {
    /// From, to, who, what, how it ended, which grant.
    fn call(mut self, (from, to): (u64, u64), who: u128, op: Op, phase: Phase, nonce: u128, token: Option<i64>) -> Told {
        let call = self.0.len() as u64;
        let nonce = (op != Op::Mint).then(|| Uuid::from_u128(nonce));
        let of = Of { lease: Some("u".to_owned()), nonce, ..Of::default() };
        let invoked = Line { at_us: from, holder: HolderId(Uuid::from_u128(who)), call, op, phase: Phase::Invoke, of };
        let fence = token.map(|token| Fence { generation: 0, token });
        let ended = Line { at_us: to, phase, of: Of { fence, ..invoked.of.clone() }, ..invoked.clone() };
        self.0.extend([invoked, ended]);
        self
    }

    fn ok(self, when: (u64, u64), who: u128, op: Op, nonce: u128) -> Told {
        self.call(when, who, op, Phase::Ok, nonce, None)
    }

    fn no(self, when: (u64, u64), who: u128, op: Op, nonce: u128) -> Told {
        self.call(when, who, op, Phase::Fail, nonce, None)
    }

    fn unknown(self, when: (u64, u64), who: u128, op: Op, nonce: u128) -> Told {
        self.call(when, who, op, Phase::Unknown, nonce, None)
    }

    fn minted(self, at: u64, who: u128, nonce: u128, token: i64) -> Told {
        let drawn =
            self.ok((at, at + 1), who, Op::Acquire, nonce).call((at + 2, at + 3), who, Op::Mint, Phase::Ok, 0, Some(token));
        drawn.ok((at + 4, at + 5), who, Op::Renew, nonce)
    }

    fn passes(self) -> Checked {
        linearizable(&self.0).expect("there is an order")
    }

    fn fails(self, word: &str) {
        let error = linearizable(&self.0).expect_err("there is no order").to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_takeover_after_an_expiry_is_legal_and_so_is_a_loss() {
    let taken = Told::default().minted(0, 1, 1, 1).no((10, 11), 2, Op::Acquire, 2).minted(20, 2, 3, 2);
    let checked = taken.no((40, 41), 1, Op::Renew, 1).no((42, 43), 1, Op::Release, 1).ok((50, 51), 2, Op::Release, 3).passes();
    assert_eq!((checked.leases, checked.calls, checked.grants, checked.tokens), (1, 8, 2, 2));
}

#[test]
fn a_token_that_goes_back_is_found() {
    Told::default().minted(0, 1, 1, 7).minted(20, 2, 2, 7).fails("a renewal");
    let etcd = |at, who, nonce, token| Told::default().call((at, at + 1), who, Op::Acquire, Phase::Ok, nonce, Some(token));
    let mut both = etcd(0, 1, 1, 5);
    both.0.extend(etcd(10, 2, 2, 4).0.into_iter().map(|line| Line { call: 9, ..line }));
    both.fails("an acquisition");
}

#[test]
fn a_token_that_was_drawn_by_a_holder_who_was_not_proven_does_not_count() {
    let drawn = Told::default().ok((0, 1), 1, Op::Acquire, 1).call((30, 31), 1, Op::Mint, Phase::Ok, 0, Some(9));
    drawn.no((32, 33), 1, Op::Renew, 1).minted(10, 2, 2, 1).minted(50, 3, 3, 2).passes();
}

#[test]
fn a_renewal_of_a_superseded_grant_is_found() {
    let two = || Told::default().ok((0, 1), 1, Op::Acquire, 1).ok((10, 11), 2, Op::Acquire, 2);
    two().ok((20, 21), 1, Op::Renew, 1).fails("a renewal");
    two().ok((20, 21), 1, Op::Release, 1).fails("a release");
    // where they overlap it may have been before
    two().ok((5, 21), 1, Op::Renew, 1).passes();
}

#[test]
fn two_grants_that_are_alive_together_are_found() {
    let both = Told::default().ok((0, 10), 1, Op::Acquire, 1).ok((0, 10), 2, Op::Acquire, 2);
    both.ok((20, 21), 1, Op::Renew, 1).ok((30, 31), 2, Op::Renew, 2).fails("a renewal");
}

#[test]
fn a_lost_lease_is_not_renewed_again() {
    let lost = Told::default().ok((0, 1), 1, Op::Acquire, 1).no((10, 11), 1, Op::Renew, 1);
    lost.ok((20, 21), 1, Op::Renew, 1).fails("a renewal");
}

#[test]
fn held_by_another_needs_another() {
    Told::default().no((0, 1), 1, Op::Acquire, 1).fails("an acquisition");
    let released = || Told::default().ok((0, 1), 1, Op::Acquire, 1).ok((2, 3), 1, Op::Release, 1);
    released().no((4, 5), 2, Op::Acquire, 2).fails("an acquisition");
    released().unknown((3, 4), 3, Op::Acquire, 3).no((900, 901), 2, Op::Acquire, 2).passes();
    // it can have been granted once only, and was superseded
    let once = released().unknown((3, 4), 3, Op::Acquire, 3).no((10, 11), 2, Op::Acquire, 2).ok((12, 13), 2, Op::Acquire, 4);
    once.ok((14, 15), 2, Op::Release, 4).no((16, 17), 2, Op::Acquire, 5).fails("an acquisition");
}

#[test]
fn a_place_in_the_line_may_be_the_lease() {
    let released = || Told::default().ok((0, 1), 1, Op::Acquire, 1).ok((2, 3), 1, Op::Release, 1);
    let waits = || released().ok((4, 5), 3, Op::StandInLine, 3);
    // it was granted, and who waits has not asked again
    waits().no((6, 7), 2, Op::Acquire, 2).passes();
    waits().no((6, 7), 2, Op::Acquire, 2).ok((8, 9), 3, Op::Acquire, 3).ok((10, 11), 3, Op::Renew, 3).passes();
    // asked for again, it is the same place: it can have been granted once, and was superseded
    let twice = waits().no((6, 7), 2, Op::Acquire, 2).ok((8, 9), 3, Op::StandInLine, 3).ok((10, 11), 2, Op::Acquire, 4);
    twice.ok((14, 15), 2, Op::Release, 4).no((16, 17), 2, Op::Acquire, 5).fails("an acquisition");
    // a service without a line gives no place
    released().no((4, 5), 3, Op::StandInLine, 3).no((6, 7), 2, Op::Acquire, 2).fails("an acquisition");
}

#[test]
fn a_call_that_took_no_time_has_its_end() {
    let checked = Told::default().ok((5, 5), 1, Op::Acquire, 1).ok((6, 6), 1, Op::Release, 1).passes();
    assert_eq!((checked.calls, checked.unknown), (2, 0));
}

#[test]
fn an_acquisition_without_an_answer_counts_where_its_nonce_is_released() {
    let unknown = || Told::default().unknown((0, 1), 1, Op::Acquire, 1);
    unknown().ok((10, 11), 1, Op::Release, 1).passes();
    unknown().ok((2, 3), 2, Op::Acquire, 2).ok((10, 11), 1, Op::Release, 1).ok((20, 21), 2, Op::Renew, 2).fails("a renewal");
}

/// What is wrong with a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    RenewsAnybody,
    TokenTwice,
    HeldByNobody,
    GrantsWhatIsHeld,
}

/// How calls meet. One takes effect every ten microseconds.
#[derive(Debug, Clone, Copy)]
struct Course {
    /// Up to so long before its effect a call is sent, and up to so long after it answered.
    under_way: u64,
    /// Whether one call in twenty-five has no answer.
    unanswered: bool,
}

const CROWDED: Course = Course { under_way: 60, unanswered: true };

/// Calls of several processes to a lock, each with its effect somewhere between its two lines; some have no end.
fn simulated(seed: u64, calls: usize, fault: Fault) -> Vec<Line> {
    simulated_with(seed, calls, fault, CROWDED)
}

fn simulated_with(seed: u64, calls: usize, fault: Fault, course: Course) -> Vec<Line> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut told = Told::default();
    let (mut free_at, mut grants) = ([0_u64; 6], [None::<u128>; 6]);
    let (mut held, mut nonces, mut token) = (None::<u128>, 0_u128, 0_i64);
    for number in 1..=calls {
        let effect = number as u64 * 10;
        let who = chance.random_range(0..6_usize);
        if free_at[who] >= effect {
            continue;
        }
        held = held.filter(|_| chance.random_range(0..12) != 0);
        let wrong = chance.random_range(0..10) == 0;
        let is = |broken: Fault| wrong && fault == broken;
        let (op, nonce, done, of) = match grants[who] {
            None => {
                nonces += 1;
                let granted = (held.is_none() || is(Fault::GrantsWhatIsHeld)) && !is(Fault::HeldByNobody);
                if granted {
                    token += i64::from(!is(Fault::TokenTwice));
                    grants[who] = Some(nonces);
                    // the older one goes on in the broken lock
                    held = held.filter(|_| fault == Fault::GrantsWhatIsHeld).or(Some(nonces));
                }
                (Op::Acquire, nonces, granted, granted.then_some(token))
            }
            Some(nonce) => {
                let is_held = held == Some(nonce);
                let release = chance.random_range(0..4) == 0;
                held = held.filter(|_| !(release && is_held));
                let done = is_held || !release && is(Fault::RenewsAnybody);
                grants[who] = grants[who].filter(|_| done && !release);
                (if release { Op::Release } else { Op::Renew }, nonce, done, None)
            }
        };
        let from = chance.random_range(free_at[who].max(effect.saturating_sub(course.under_way))..=effect);
        let to = effect + chance.random_range(0..course.under_way);
        free_at[who] = to + 1;
        let phase = match (chance.random_range(0..25), done) {
            (0, _) if course.unanswered => Phase::Unknown,
            (_, true) => Phase::Ok,
            (_, false) => Phase::Fail,
        };
        told = told.call((from, to), who as u128, op, phase, nonce, of.filter(|_| phase == Phase::Ok));
    }
    told.0
}

#[test]
fn every_history_of_a_lock_that_works_passes() {
    for seed in 0..150 {
        let lines = simulated(seed, 120, Fault::Nothing);
        assert!(linearizable(&lines).is_ok(), "seed {seed}: {:?}", linearizable(&lines));
    }
}

/// In how many of thirty histories a fault is found that the lock has one time in ten.
fn found(calls: usize, fault: Fault, course: Course) -> usize {
    (0..30).filter(|seed| linearizable(&simulated_with(*seed, calls, fault, course)).is_err()).count()
}

#[test]
fn a_broken_lock_is_found() {
    for fault in [Fault::RenewsAnybody, Fault::TokenTwice, Fault::GrantsWhatIsHeld] {
        let found = found(3_000, fault, CROWDED);
        println!("{fault:?} is found in {found} of 30 histories");
        assert!(found >= 28, "{fault:?} is found in {found} of 30 histories");
    }
}

/// Nobody sees when a lease expires, so the last grant may be what keeps others out for as long as it was not released; and so may any
/// acquisition without an answer, once. What contradicts is a refusal after a release while nothing else is under way.
#[test]
fn held_by_nobody_is_found_where_all_calls_are_answered_and_few_overlap() {
    let alone = Course { under_way: 5, unanswered: false };
    let unanswered = found(6_000, Fault::HeldByNobody, Course { unanswered: true, ..alone });
    let (alone, crowded) = (found(6_000, Fault::HeldByNobody, alone), found(600, Fault::HeldByNobody, CROWDED));
    println!("found in {alone} of 30 histories, with unanswered calls in {unanswered}, in short crowded ones in {crowded}");
    assert!(alone >= 28, "found in {alone} of 30 histories");
    assert!(unanswered < alone && crowded < alone, "{alone}, {unanswered}, {crowded}: what is said above is not so");
}

#[test]
fn thousands_of_calls_are_checked() {
    let lines = simulated(7, 5_000, Fault::Nothing);
    let begun = std::time::Instant::now();
    let checked = linearizable(&lines).expect("a lock that works");
    println!("{checked:?} in {} ms", begun.elapsed().as_millis());
    assert!(checked.calls > 3_000, "{checked:?}");
}

/// The same question, put to Stateright's tester.
fn stateright_agrees(edges: &[Edge]) -> bool {
    let mut tester = LinearizabilityTester::new(spec::Lease::default());
    let mut came_of = BTreeMap::new();
    for edge in edges {
        match *edge {
            Edge::Begins(number, call, came) => {
                came_of.insert(number, came);
                tester.on_invoke(number, call).expect("each call is a thread");
            }
            Edge::Ends(number) => {
                tester.on_return(number, came_of[&number]).expect("it began");
            }
            Edge::Orphan => {}
        }
    }
    tester.is_consistent()
}

#[test]
fn both_testers_say_the_same() {
    let mut chance = StdRng::seed_from_u64(5);
    let mut said = [0; 2];
    for _ in 0..3_000 {
        let mut edges: Vec<(u32, Edge)> = Vec::new();
        for number in 0..7 {
            let (begin, grant) = (chance.random_range(0..40), chance.random_range(0..3));
            let call = match chance.random_range(0..4) {
                0 | 1 => Call::Acquire(grant),
                2 => Call::Renew(grant, None),
                _ => Call::Release(grant),
            };
            let token = (matches!(call, Call::Acquire(_)) && chance.random()).then(|| chance.random_range(0..4));
            let came = if chance.random_range(0..3) == 0 { Came::No } else { Came::Ok(token) };
            edges.push((begin * 2, Edge::Begins(number, call, came)));
            edges.push((begin * 2 + 1 + 2 * chance.random_range(0..12), Edge::Ends(number)));
        }
        edges.sort_by_key(|(at, _)| *at);
        let edges: Vec<Edge> = edges.into_iter().map(|(_, edge)| edge).collect();
        let ours = search(&edges).is_ok();
        assert_eq!(ours, stateright_agrees(&edges), "{edges:?}");
        said[usize::from(ours)] += 1;
    }
    assert!(said.iter().all(|times| *times > 200), "{said:?}");
}
