//! Fences are ordered by generation, then token, and a stamp is judged by order and holder.

use domain::fence::{Fence, Stamp, Standing, may_register, standing};
use domain::ids::HolderId;
use proptest::prelude::*;
use uuid::Uuid;

fn stamp() -> impl Strategy<Value = Stamp> {
    // few values, so that equal ones meet; and any, so that nothing depends on small ones
    let number = prop_oneof![4 => 0_i64..2, 1 => any::<i64>()];
    (number.clone(), number, 0_u128..3).prop_map(|(generation, token, holder)| Stamp {
        fence: Fence { generation, token },
        holder: HolderId(Uuid::from_u128(holder)),
    })
}

proptest! {
    #[test]
    fn generation_comes_before_token(one in stamp(), other in stamp()) {
        let (a, b) = (one.fence, other.fence);
        let by_hand = a.generation < b.generation || (a.generation == b.generation && a.token < b.token);
        prop_assert_eq!(a < b, by_hand);
    }

    #[test]
    fn a_stamp_stands_by_order_and_holder(mine in stamp(), stored in stamp()) {
        let expected = if mine == stored {
            Standing::Current
        } else if mine.fence > stored.fence {
            Standing::Unregistered
        } else {
            Standing::Superseded
        };
        prop_assert_eq!(standing(mine, stored), expected);
        prop_assert_eq!(may_register(mine, stored), mine == stored || mine.fence > stored.fence);
    }

    /// Of two stamps at most one may replace the other: two holders cannot push each other out in turn.
    #[test]
    fn registering_only_moves_forward(one in stamp(), other in stamp()) {
        prop_assert!(one == other || !(may_register(one, other) && may_register(other, one)));
    }

    /// Whatever order registrations arrive in, what is stored only grows, and whoever was superseded stays so.
    #[test]
    fn a_superseded_stamp_never_returns(stamps in prop::collection::vec(stamp(), 1..20)) {
        let mut stored = stamps[0];
        let mut refused = Vec::new();
        for mine in stamps {
            if may_register(mine, stored) {
                prop_assert!(mine.fence >= stored.fence);
                stored = mine;
            } else {
                refused.push(mine);
            }
            for old in &refused {
                prop_assert_eq!(standing(*old, stored), Standing::Superseded);
            }
        }
    }
}
