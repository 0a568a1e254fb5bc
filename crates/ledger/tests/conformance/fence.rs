//! Tokens, sources, and who holds a unit.

use crate::fixture::{LIMITS, Named, Place, UNIT, batches, changed, holder, operator, stamp};
use domain::fence::Fence;
use domain::ids::HolderId;
use domain::outcome::SettleOutcome;
use domain::step::NoProbe;
use domain::unit::Unit;
use ledger::settle::Claim;
use ledger::{Guard, LedgerError, Rejection};
use std::collections::BTreeSet;

pub const EVERY: &[Named] = tests![
    the_first_source_is_adopted,
    of_two_first_sources_one_is_adopted,
    another_source_is_refused_and_told_how,
    tokens_grow_for_everyone,
    l21_tokens_outlive_holders,
    l28_whoever_minted_first_is_outranked,
    a_newer_holder_registers_and_an_older_does_not,
    a_token_given_twice_is_held_once,
    the_newest_of_many_holds_the_unit,
    l7_adopting_takes_every_unit,
    an_old_generation_is_refused_for_ever,
    a_refused_write_is_kept,
];

async fn the_first_source_is_adopted(place: Place) {
    let books = place.open().await;
    assert_eq!(books.ledger.generation("ledger").await.expect("adopted"), 1);
    assert_eq!(books.ledger.generation("ledger").await.expect("still the newest"), 1);
    let sources = books.ledger.sources().await.expect("sources");
    assert_eq!(sources.len(), 1);
    assert_eq!((sources[0].generation, sources[0].source.as_str()), (1, "ledger"));
}

async fn of_two_first_sources_one_is_adopted(place: Place) {
    let books = place.open().await;
    let tasks: Vec<_> = (0..8)
        .map(|n| {
            let ledger = books.ledger.clone();
            tokio::spawn(async move { ledger.generation(&format!("etcd {n}")).await })
        })
        .collect();
    let mut adopted = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(generation) => adopted += generation,
            Err(error) => assert!(matches!(error, LedgerError::SourceSuperseded { generation: 1, .. }), "{error:?}"),
        }
    }
    assert_eq!(adopted, 1);
}

async fn another_source_is_refused_and_told_how(place: Place) {
    let books = place.open().await;
    books.ledger.generation("ledger").await.expect("adopted");
    let error = books.ledger.generation("etcd 7").await.expect_err("not the newest");
    let text = error.to_string();
    for part in ["\"ledger\"", "\"etcd 7\"", "generation 1", "settled fence adopt"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert_eq!(books.ledger.adopt_source("etcd 7", &operator()).await.expect("adopted"), 2);
    assert_eq!(books.ledger.generation("etcd 7").await.expect("the newest"), 2);
    assert!(matches!(books.ledger.generation("ledger").await, Err(LedgerError::SourceSuperseded { generation: 2, .. })));
}

async fn tokens_grow_for_everyone(place: Place) {
    let books = place.open().await;
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let ledger = books.ledger.clone();
            tokio::spawn(async move { ledger.mint().await.expect("a token") })
        })
        .collect();
    let mut tokens = BTreeSet::new();
    for task in tasks {
        assert!(tokens.insert(task.await.expect("no panic")), "given twice");
    }
    let mut last = *tokens.last().expect("a hundred");
    for _ in 0..10 {
        let next = books.ledger.mint().await.expect("a token");
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

/// What a lock service's own counter forgets with the lock, the ledger's does not: nothing but `mint` moves it.
async fn l21_tokens_outlive_holders(place: Place) {
    let books = place.open().await;
    let held = books.hold(UNIT).await;
    books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
    books.ledger.adopt_config(2, Guard::Lease, &operator()).await.expect("adopted");
    let again = place.open_as(2, Guard::Lease).await;
    assert!(again.hold(UNIT).await.fence.token > held.fence.token);
    assert!(again.hold(UNIT).await.fence.token > held.fence.token + 1);
}

/// The holder that is frozen between minting and registering wakes with the lower token. (Minted on waking, it would win.)
async fn l28_whoever_minted_first_is_outranked(place: Place) {
    let books = place.open().await;
    let generation = books.ledger.generation("ledger").await.expect("adopted");
    let frozen = stamp(generation, books.ledger.mint().await.expect("a token"), holder());
    let newer = books.hold(UNIT).await;
    assert_eq!(books.ledger.register(UNIT, frozen).await.expect("an answer"), newer);
}

async fn a_newer_holder_registers_and_an_older_does_not(place: Place) {
    let books = place.open_as(2, Guard::Lease).await;
    let (old, new) = (stamp(1, 10, holder()), stamp(1, 11, holder()));
    let register = |stamp| books.ledger.register(UNIT, stamp);
    assert_eq!(register(old).await.expect("an answer"), old);
    assert_eq!(register(old).await.expect("a repeat"), old);
    assert_eq!(register(new).await.expect("an answer"), new);
    assert_eq!(register(old).await.expect("an answer"), new);
    assert_eq!(register(new).await.expect("a repeat"), new);
    let fences = books.ledger.fences().await.expect("fences");
    assert_eq!(fences.iter().map(|fence| fence.unit).collect::<Vec<_>>(), [Unit(0), Unit(1)]);
    assert_eq!((fences[0].stamp, fences[0].registered_at.is_some()), (new, true));
    assert_eq!((fences[1].stamp, fences[1].registered_at), (stamp(0, 0, HolderId::NOBODY), None));
}

async fn a_token_given_twice_is_held_once(place: Place) {
    let books = place.open().await;
    let (first, second) = (stamp(1, 10, holder()), stamp(1, 10, holder()));
    assert_eq!(books.ledger.register(UNIT, first).await.expect("an answer"), first);
    assert_eq!(books.ledger.register(UNIT, second).await.expect("an answer"), first);
    let request = books.request(second, 1);
    assert_eq!(books.ledger.claim(&request).await.expect("an answer"), Claim::Fenced { stored: first });
}

async fn the_newest_of_many_holds_the_unit(place: Place) {
    let books = place.open().await;
    let tasks: Vec<_> = (1..=20)
        .map(|n| {
            let ledger = books.ledger.clone();
            // 7 and 20 have no common divisor: every token once, in no order
            let mine = stamp(1, n * 7 % 20 + 1, holder());
            tokio::spawn(async move { (mine, ledger.register(UNIT, mine).await.expect("an answer")) })
        })
        .collect();
    for task in tasks {
        let (mine, stored) = task.await.expect("no panic");
        assert!(stored == mine || stored.fence > mine.fence, "{mine:?} was answered {stored:?}");
    }
    assert_eq!(books.ledger.fences().await.expect("fences")[0].stamp.fence, Fence { generation: 1, token: 20 });
}

/// After a restore of the source its tokens start low again, and every holder from before is refused everywhere.
async fn l7_adopting_takes_every_unit(place: Place) {
    let books = place.open_as(3, Guard::Lease).await;
    let mut old = Vec::new();
    for unit in 0..3 {
        old.push(books.hold(Unit(unit)).await);
    }
    assert_eq!(books.ledger.adopt_source("ledger", &operator()).await.expect("adopted"), 2);
    let taken = stamp(2, 0, HolderId::NOBODY);
    assert!(books.ledger.fences().await.expect("fences").iter().all(|fence| fence.stamp == taken));
    for (unit, old) in (0..).map(Unit).zip(old) {
        assert_eq!(books.ledger.register(unit, old).await.expect("an answer"), taken);
        let request = ledger::settle::ClaimRequest { unit, ..books.request(old, 1) };
        assert_eq!(books.ledger.claim(&request).await.expect("an answer"), Claim::Fenced { stored: taken });
    }
    let low = stamp(2, 1, holder());
    assert_eq!(books.ledger.register(UNIT, low).await.expect("an answer"), low);
    let audited = books.raw.texts("SELECT operator || ', ' || action || ', ' || subject || ', ' || reason FROM audit_log").await;
    assert_eq!(audited, ["olga, fence adopt, ledger, a test"]);
    let newest = &books.ledger.sources().await.expect("sources")[0];
    assert_eq!((newest.generation, newest.adopted_by.as_str(), newest.reason.as_str()), (2, "olga", "a test"));
}

async fn an_old_generation_is_refused_for_ever(place: Place) {
    let books = place.open().await;
    let (old, ids) = books.claimed(&batches(1)).await;
    books.ledger.adopt_source("ledger", &operator()).await.expect("adopted");
    let before = books.raw.tables().await;
    let high = stamp(1, i64::MAX, old.holder);
    for stamp in [old, high] {
        assert_eq!(books.ledger.register(UNIT, stamp).await.expect("an answer").fence.generation, 2);
        let outcomes = books.settle_probed(stamp, &ids, LIMITS, &NoProbe).await.expect("an answer");
        assert_eq!(outcomes, [(ids[0], SettleOutcome::Fenced { settled: false })]);
        assert_eq!(books.ledger.release(UNIT, stamp, &ids, true).await.expect("an answer"), 0);
    }
    let after = books.raw.tables().await;
    assert_eq!(changed(&before, &after), BTreeSet::from(["fence_rejection".to_owned()]));
}

async fn a_refused_write_is_kept(place: Place) {
    let books = place.open().await;
    let (mine, stored) = (stamp(1, 4, holder()), stamp(1, 9, holder()));
    let rejection = Rejection { operation: ledger::Operation::Register, unit: UNIT, batch: None, stamp: mine, stored };
    books.ledger.record_rejections(&[rejection]).await.expect("kept");
    let kept =
        "SELECT operation || ' ' || unit || ' ' || token || ' ' || stored_token FROM fence_rejection WHERE batch_id IS NULL";
    assert_eq!(books.raw.texts(kept).await, ["register 0 4 9"]);
    assert_eq!(books.ledger.status(None).await.expect("a status").fence_rejections, 1);
}
