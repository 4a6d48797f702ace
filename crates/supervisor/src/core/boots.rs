//! The boots of the version that is served: when its mold is started, if it has none, and what came of those before.

use super::action::AppAction;
use super::ids::Receipt;
use super::restart_policy::{Life, RestartPolicy, Verdict};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Without a change of files a boot is repeated only after this time: the cause may lie elsewhere, for example with a
/// database.
const TRY_ANYWAY: Duration = Duration::from_secs(5);
/// It doubles with each further boot in vain, up to this; but not where people wait for the page.
const TRY_ANYWAY_MOST: Duration = super::condition::TRY_UNASKED;

#[derive(Debug)]
pub(crate) struct Boots {
    /// When the mold is started, if there is none.
    due: Instant,
    policy: RestartPolicy,
    /// A mold failed to boot while workers serve; the diagnosis with this receipt is being made.
    explaining: Option<Receipt>,
    /// The site of this generation is being looked for, until then.
    site: Option<(u32, Instant)>,
    /// The last mold has ended because nothing was to be forked: one boots when a worker is wanted.
    rests: bool,
    /// One had to boot for that: from then on, the molds of this version stay.
    was_missed: bool,
    /// Why it was given up, until that is acted upon.
    lost: Option<String>,
    /// Boots in a row after which the application was not there, and its files had not changed.
    in_vain: u32,
}

impl Boots {
    pub(crate) fn new(max_failures: u32, now: Instant) -> Boots {
        Boots {
            due: now,
            policy: RestartPolicy::new(max_failures),
            explaining: None,
            site: None,
            rests: false,
            was_missed: false,
            lost: None,
            in_vain: 0,
        }
    }

    // --- molds

    /// When the next mold may boot.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// The next mold may boot at this time.
    pub(crate) fn boot_at(&mut self, due: Instant) {
        self.due = due;
    }

    /// A mold boots.
    pub(crate) fn begin(&mut self) {
        self.was_missed |= std::mem::take(&mut self.rests);
    }

    /// There is a mold that workers can be forked from.
    pub(crate) fn has_mold(&mut self) {
        self.policy.ready();
    }

    /// The mold has died, or did not boot. How many in a row did not, if there should be no further boot.
    pub(crate) fn failed(&mut self, life: Life, others_serve: bool, now: Instant) -> Option<u32> {
        match self.policy.died(life, others_serve) {
            Verdict::StartAfter(delay) => {
                self.due = now + delay;
                None
            }
            Verdict::GiveUp => Some(self.policy.boot_failures()),
        }
    }

    /// There are other limits. What has failed so far does not count.
    pub(crate) fn configure(&mut self, max_failures: u32) {
        self.policy = RestartPolicy::new(max_failures);
    }

    /// What boots from now on, from then, has nothing to do with what has booted so far.
    pub(crate) fn begin_line(&mut self, due: Instant) {
        self.due = due;
        self.rests = false; // the mold that boots now is none that was missed
    }

    /// Another version is served, by its own mold.
    pub(crate) fn new_version(&mut self) {
        self.policy.begin_again();
        self.explaining = None;
        self.rests = false;
        self.was_missed = false;
    }

    // --- rest

    /// Whether the last mold has ended because nothing was to be forked.
    pub(crate) fn rests(&self) -> bool {
        self.rests
    }

    /// Whether no mold was missed so far.
    pub(crate) fn may_rest(&self) -> bool {
        !self.was_missed
    }

    /// The mold ends, as nothing is to be forked.
    pub(crate) fn rest(&mut self) {
        self.rests = true;
    }

    // --- failures while workers serve

    /// The diagnosis of a boot that failed while workers serve is being made.
    pub(crate) fn explaining(&self) -> Option<Receipt> {
        self.explaining
    }

    pub(crate) fn explains(&mut self, receipt: Receipt) {
        self.explaining = Some(receipt);
    }

    /// The diagnosis with this receipt is there. False: it is not of such a boot, or comes too late.
    pub(crate) fn explained(&mut self, receipt: Receipt) -> bool {
        self.explaining.take_if(|of| *of == receipt).is_some()
    }

    /// What has failed is of no interest any more.
    pub(crate) fn forget_failure(&mut self) {
        self.explaining = None;
    }

    // --- sites

    /// The site of this generation is looked for in this folder, until then; `None`: where the application's path leads.
    pub(crate) fn open_site(
        &mut self,
        generation: u32,
        folder: Option<PathBuf>,
        until: Instant,
    ) -> AppAction {
        self.site = Some((generation, until));
        AppAction::OpenSite { generation, folder }
    }

    /// The generation of which the site is being looked for.
    pub(crate) fn site(&self) -> Option<u32> {
        self.site.map(|(generation, _)| generation)
    }

    /// Until when a site is being looked for.
    pub(crate) fn site_due(&self) -> Option<Instant> {
        self.site.map(|(_, until)| until)
    }

    /// The site of this generation was found, or is none. False: that is not waited for any more.
    pub(crate) fn site_seen(&mut self, generation: u32) -> bool {
        self.site.take_if(|(of, _)| *of == generation).is_some()
    }

    /// Whether the time for finding a site is over.
    pub(crate) fn is_site_late(&mut self, now: Instant) -> bool {
        self.site.take_if(|(_, until)| now >= *until).is_some()
    }

    pub(crate) fn forget_site(&mut self) {
        self.site = None;
    }

    // --- an application that does not come up

    /// It is given up.
    pub(crate) fn give_up(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Why it was given up, if that was not acted upon.
    pub(crate) fn take_lost(&mut self) -> Option<String> {
        self.lost.take()
    }

    /// After the last boot the application was not there.
    pub(crate) fn was_in_vain(&mut self) {
        self.in_vain = self.in_vain.saturating_add(1);
    }

    /// The application is there, or what was wrong may have been corrected.
    pub(crate) fn was_not_in_vain(&mut self) {
        self.in_vain = 0;
    }

    /// The time after a failed boot in which requests are no reason for another one, if no file has changed.
    pub(crate) fn pause(&self, waits_for_people: bool) -> Duration {
        if waits_for_people {
            return TRY_ANYWAY;
        }
        let doubled = self.in_vain.saturating_sub(1).min(16);
        TRY_ANYWAY.saturating_mul(1 << doubled).min(TRY_ANYWAY_MOST)
    }
}
