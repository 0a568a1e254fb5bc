//! Programs of others that use the same lock.

use super::{line, one};
use crate::suite::{FOR_EVER, acquire, keeper, name, pause, run, until};
use lab::process::{Output, Process};
use lease::Release;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(15);

fn lock() -> String {
    format!("settled/{}", name())
}

pub(super) fn waits_for_us() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let mine = keeper(&place, FOR_EVER);
        let lease = acquire(&mine).await;
        let mut command = place.cluster().etcdctl()?;
        let mut other = Process::spawn(command.args(["lock", &lock(), "true"]), Output::Inherit)?;
        until("in line", SOON, async || line(&place.cluster()).len() == 2).await;
        pause(700).await;
        assert!(other.ended()?.is_none(), "it has the lock as well");
        assert_eq!(lease.release().await, Release::Released);
        assert!(other.wait(SOON)?.success());
        acquire(&mine).await;
        Ok(())
    })
}

pub(super) fn we_wait() -> Result<(), lab::Error> {
    let place = one()?;
    run(async {
        let (mine, folder) = (keeper(&place, FOR_EVER), tempfile::tempdir().expect("a folder"));
        let done = folder.path().join("done");
        let mut command = place.cluster().etcdctl()?;
        let script = format!("sleep 1.5; touch {}", done.display());
        let mut other = Process::spawn(command.args(["lock", &lock(), "--", "sh", "-c", &script]), Output::Inherit)?;
        until("locked", SOON, async || line(&place.cluster()).len() == 1).await;
        assert!(mine.try_acquire(&name()).await.expect("an answer").is_none());
        let rows = mine.inspect("").await.expect("rows");
        assert!(rows.len() == 1 && rows[0].name == name() && rows[0].holder.is_none() && rows[0].nonce.is_none(), "{rows:?}");
        assert!(!done.exists(), "it was too quick to tell");
        let lease = mine.acquire(&name(), SOON).await.expect("an answer").expect("in time");
        assert!(done.exists(), "two holders");
        assert!(other.wait(SOON)?.success());
        let key = line(&place.cluster()).remove(0);
        let stored = place.cluster().ctl(&["get", &key, "-w", "fields"])?;
        let created =
            stored.lines().find_map(|line| line.strip_prefix("\"CreateRevision\" : ")).and_then(|number| number.parse().ok());
        assert!(created.is_some() && lease.token() == created, "{:?} of {stored}", lease.token());
        Ok(())
    })
}
