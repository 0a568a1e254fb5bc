//! Draining: stop taking up work, finish what has begun, hand the rest back. Needs nothing else.

use tokio::sync::watch;

/// Shared by everyone who should stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Drain {
    asked: watch::Sender<bool>,
}

impl Default for Drain {
    fn default() -> Self {
        Drain { asked: watch::Sender::new(false) }
    }
}

impl Drain {
    /// Asks everyone to stop. Asking twice is asking once.
    pub fn ask(&self) {
        self.asked.send_replace(true);
    }

    /// Whether it was asked. Looked at between transactions only.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until it is asked.
    pub async fn asked(&self) {
        let mut receiver = self.asked.subscribe();
        // The sender is in `self`, so this cannot fail.
        let _ = receiver.wait_for(|asked| *asked).await;
    }
}
