//! An inbox: watchers put there what they see, for the loop.

use highball_config::AppId;
use tokio::sync::mpsc;

/// What comes out, with the application that it is about, if it is about one.
pub(crate) type Received<T> = mpsc::Receiver<(Option<AppId>, T)>;

/// Where what was seen of an application is put, or what concerns none. Who puts something there waits when it is full.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    app: Option<AppId>,
    to: mpsc::Sender<(Option<AppId>, T)>,
}

impl<T> Inbox<T> {
    /// One for what concerns no application, and the end where it all comes out.
    pub(crate) fn new(capacity: usize) -> (Inbox<T>, Received<T>) {
        let (to, out) = mpsc::channel(capacity);
        (Inbox { app: None, to }, out)
    }

    /// The same one, for what concerns an application.
    pub(crate) fn of_app(&self, app: AppId) -> Inbox<T> {
        Inbox { app: Some(app), to: self.to.clone() }
    }

    /// `false` without a receiver: everything is ending.
    pub(crate) async fn put(&self, what: T) -> bool {
        self.to.send((self.app, what)).await.is_ok()
    }
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Inbox { app: self.app, to: self.to.clone() }
    }
}
