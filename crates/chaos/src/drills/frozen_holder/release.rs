//! The release of a lock that is not one's own any more.

use crate::articles::Lock;
use crate::record::Table;
use crate::{DrillError, Mark, Stage};
use std::time::Duration;

/// Short for A, which does not come back in time; B has all the time that it needs.
const A_TTL: Duration = Duration::from_millis(200);
const B_TTL: Duration = Duration::from_secs(60);

/// Nothing has to freeze for it: A is only late.
pub(super) async fn tell(stage: &Stage, redis: &str) -> Result<(), DrillError> {
    let mut table =
        Table::new("A releases after its TTL, while B works", ["arm", "B's lock after it", "C gets the lock", "outcome"]);
    for arm in ["plain DEL", "compare and delete"] {
        let mut a = Lock::at(redis, arm, A_TTL).await?;
        let (mut b, mut c) = (Lock::at(redis, arm, B_TTL).await?, Lock::at(redis, arm, B_TTL).await?);
        let late = a.take().await?;
        stage.tell("A", Mark::Holds, format!("takes the lock for {} ms, and is late", A_TTL.as_millis()));
        let working = b.take().await?;
        stage.tell("B", Mark::Holds, "gets the lock, which had run out, and works");
        let plain = arm == "plain DEL";
        let deleted = if plain { a.delete().await? } else { a.release(&late).await? };
        stage.tell("A", Mark::Releases, format!("releases by {arm}: {} key deleted", u8::from(deleted)));
        let (third, still) = (c.try_take().await?, b.owns(&working).await?);
        let both = third.is_some();
        let (mark, text) =
            if both { (Mark::Damage, "gets the lock while B works") } else { (Mark::Refused, "does not get the lock") };
        stage.tell("C", mark, text);
        let seen = format!("C got it: {both}, B still has it: {still}");
        if plain {
            stage.must_break(arm, "a third client gets in while B works", seen, both && !still);
        } else {
            stage.must_hold(arm, "B's lock stays B's", seen, !both && still);
        }
        let outcome = if both { "B and C work at once" } else { "B works alone" };
        table.row([arm.to_owned(), if still { "there" } else { "gone" }.to_owned(), both.to_string(), outcome.to_owned()]);
    }
    stage.table(table);
    Ok(())
}
