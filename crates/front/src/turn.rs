//! A turn of the event loop: from one sleep to the next. Its phases, in this order:
//!
//! 1. [`Turn::begin`], when the sleep is over: the clock is read, the workers need not wake the front any more, and their
//!    answers are read.
//! 2. The tasks that this, the sockets and the clock have woken: connections read requests, dispatchers place them in rings,
//!    connections write answers. In a long turn, [`Turn::step`] looks after the workers in between.
//! 3. [`Turn::end`], when no task is left to be run: one more look at the sockets where that is worth it; then the workers
//!    are woken, once for all that was placed, and their answers are read, for which the front [waits a moment](spin) where
//!    that is quicker than sleep; then the workers learn that the front sleeps.
//!
//! Phases 1 and 3 are hooks of tokio. A task cannot do this: it is not guaranteed to run first after waking (workers
//! would keep waking a front that is awake) or last before sleeping. A task that yields until it is the last costs a system
//! call for each turn, as tokio looks at the sockets after each round of tasks that have yielded.

mod spin;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use crate::clock;
use crate::dispatch::streams::PAUSE_MS;
use crate::route::app_state::AppState;
use spin::Spin;

/// Steps in one turn before the workers are looked after in the middle of it.
const MOST_STEPS: u32 = 32;

/// How often the rings are looked at before the sleep, while there is always something new in them.
const LOOKS: u32 = 8;

/// How long requests may rely on busy threads before another is woken.
const OVERDUE: Duration = Duration::from_millis(2);

thread_local! {
    /// The turn of this thread's event loop, for the hooks: they get no arguments.
    static TURN: RefCell<Option<Rc<Turn>>> = const { RefCell::new(None) };
}

fn in_turn(phase: fn(&Turn)) {
    TURN.with_borrow(|turn| {
        if let Some(turn) = turn {
            phase(turn);
        }
    });
}

/// Runs `main`, and what it spawns, in turns. Takes this thread until `main` has ended.
///
/// # Errors
/// The event loop cannot be set up.
pub(crate) fn run<T>(turn: &Rc<Turn>, main: impl Future<Output = T>) -> io::Result<T> {
    // Tasks share state by `Rc`. A `LocalSet` would cost a system call for each turn.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_unpark(|| in_turn(Turn::begin))
        .on_thread_park(|| in_turn(Turn::end))
        .build_local(LocalOptions::default())?;
    TURN.set(Some(Rc::clone(turn)));
    let result = runtime.block_on(async {
        spawn_local(wake_for_overdue(Rc::clone(turn)));
        spawn_local(look_again(Rc::clone(turn)));
        spawn_local(offer_streams(Rc::clone(turn)));
        main.await
    });
    // Tasks may still use what the hooks use; both go before the thread does. A file that is being read is not waited for.
    runtime.shutdown_background();
    TURN.set(None);
    Ok(result)
}

/// What the phases of a turn work on.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Applications that were asked for lately, or have something in flight: the others have nothing to do with the turns of
    /// the event loop, however many they are.
    active: RefCell<Vec<Rc<AppState>>>,
    /// Steps in this turn since the workers were looked after.
    steps: Cell<u32>,
    /// Whether the workers' wake-up was put off for one more look.
    looked: Cell<bool>,
    /// Keeps the event loop from its sleep once: it only looks what has come.
    look: Notify,
    /// Requests wait, and answers are under way that might give their places back: look at them soon.
    streams: Notify,
    /// Requests rely on threads that are busy: look again soon.
    overdue: Notify,
    spin: Spin,
}

impl Turn {
    /// An application is about to be given a request.
    pub(crate) fn activate(&self, app: &Rc<AppState>) {
        if !app.active.replace(true) {
            self.active.borrow_mut().push(Rc::clone(app));
        }
    }

    /// Applications that have nothing in flight any more are not looked at in every turn.
    pub(crate) fn forget_quiet(&self) {
        self.active.borrow_mut().retain(|app| {
            app.active.set(!app.dispatcher.borrow().is_quiet());
            app.active.get()
        });
    }

    /// Phase 1.
    fn begin(&self) {
        clock::look();
        for app in self.active.borrow().iter() {
            app.dispatcher.borrow().retract_sleep();
            self.read_rings(app);
        }
    }

    /// Phase 2, after every request, and every piece of a large body or file: a long turn must not keep the workers waiting.
    /// (Where tasks always have something to do, the event loop never comes to its sleep.)
    pub(crate) fn step(&self) {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() >= MOST_STEPS {
            self.steps.set(0);
            clock::look();
            for app in self.active.borrow().iter() {
                self.ring_workers(app);
                self.read_rings(app);
            }
        }
    }

    /// Phase 3. If there is news from the workers, tasks have been woken and the event loop does not sleep.
    fn end(&self) {
        self.steps.set(0);
        let apps = self.active.borrow();
        if !self.looked.get() && apps.iter().any(|app| app.dispatcher.borrow_mut().is_gathering()) {
            self.looked.set(true);
            return self.look.notify_one();
        }
        self.looked.set(false);
        if apps.iter().any(|app| app.dispatcher.borrow().may_gain_places()) {
            self.streams.notify_one();
        }
        for _ in 0..LOOKS {
            for app in apps.iter() {
                self.read_rings(app);
                self.ring_workers(app);
            }
            if self.awaits_lone_answer(&apps) {
                continue;
            }
            if apps.iter().all(|app| app.dispatcher.borrow().announce_sleep()) {
                return;
            }
            apps.iter().for_each(|app| app.dispatcher.borrow().retract_sleep());
        }
        // Tasks have been woken, or a misbehaving worker announces news that it does not have. Others must get their
        // turn in either case, and the sleep must be a short one, since it was not announced.
        self.overdue.notify_one();
    }

    /// Where a single request is under way, its answer may be there before the front has gone to sleep. `true`: it is.
    fn awaits_lone_answer(&self, apps: &[Rc<AppState>]) -> bool {
        let mut busy = apps.iter().filter(|app| !app.dispatcher.borrow().is_quiet());
        let (Some(app), None) = (busy.next(), busy.next()) else { return false };
        let dispatcher = app.dispatcher.borrow();
        let Some(ring) = dispatcher.ring_of_lone_request() else { return false };
        self.spin.is_worth_it() && self.spin.until(|| ring.any_ready())
    }

    fn read_rings(&self, app: &AppState) {
        app.dispatcher.borrow_mut().read_rings();
    }

    /// Wakes the workers for what was placed.
    fn ring_workers(&self, app: &AppState) {
        if app.dispatcher.borrow_mut().ring_workers() {
            self.overdue.notify_one();
        }
    }
}

/// A worker's busy threads are expected back soon; when they are not, others are woken.
async fn wake_for_overdue(turn: Rc<Turn>) {
    loop {
        turn.overdue.notified().await;
        tokio::time::sleep(OVERDUE).await;
        for app in turn.active.borrow().iter() {
            if app.dispatcher.borrow_mut().ring_for_overdue() {
                turn.overdue.notify_one();
            }
        }
    }
}

/// Has answers that pause give their places back while requests wait.
async fn offer_streams(turn: Rc<Turn>) {
    loop {
        turn.streams.notified().await;
        tokio::time::sleep(Duration::from_millis(PAUSE_MS)).await;
        for app in turn.active.borrow().iter() {
            app.dispatcher.borrow_mut().offer_streams();
        }
    }
}

/// Does nothing. Being woken keeps the event loop from sleeping: it looks at the sockets and comes back.
async fn look_again(turn: Rc<Turn>) {
    loop {
        turn.look.notified().await;
    }
}
