//! Certificates for names that the configuration does not have (`domain_on_demand`, `domain_ask`): obtained when a client asks for
//! one, if the name is listed or its application says yes.
//!
//! Clients name what they like. So few names are looked at at a time, the application is asked few times a second, an answer counts
//! for a while, and what a name costs the authority is limited where certificates are kept.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use highball_config::{AcmeSettings, NamesOnDemand};
use tokio::sync::Notify;

use crate::clock::{now_ms, Seldom};
use crate::transport::tls::certificate::Certificate;
use crate::transport::tls::Tls;

/// Longest pause before the certificate of a name is examined for renewal.
const LOOK_AGAIN: Duration = Duration::from_secs(12 * 3600);
/// The pause is the time until the certificate expires, divided by this.
const PART: u32 = 8;
/// Shortest pause.
const LOOK_SOONEST: Duration = Duration::from_secs(1);
/// Pause before a name without a certificate is examined again.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// Names that are remembered.
const MOST_KNOWN: usize = 4096;
/// Names that are looked at at a time.
const MOST_UNDER_WAY: usize = 64;
/// How often the application is asked in a second.
const MOST_ASKED: u32 = 20;
/// The log says at most this often that the application did not answer.
const LOG_MS: u64 = 60_000;

/// The names that were asked for.
#[derive(Debug)]
pub(crate) struct OnDemand {
    rules: NamesOnDemand,
    /// What the configuration names.
    domains: Vec<String>,
    /// Certificates that are obtained are kept below this folder.
    kept_in: PathBuf,
    tls: Arc<Tls>,
    known: RefCell<HashMap<String, Known>>,
    under_way: Cell<usize>,
    /// How often the application was asked in which second.
    asked: Cell<(u64, u32)>,
    logged: Seldom,
}

/// What is to be done for a name.
#[derive(Debug)]
pub(crate) enum Look {
    Nothing,
    /// It is seen to. What waits for that is notified.
    UnderWay(Rc<Notify>),
    /// It is to be seen to.
    Begin(Rc<Notify>),
}

#[derive(Debug, Clone)]
enum Known {
    /// It is looked at. What waits for the end of that is notified.
    UnderWay(Rc<Notify>),
    /// Nothing is to be done until then.
    Until(u64),
}

impl OnDemand {
    /// `None`: only the configuration's names get a certificate.
    pub(crate) fn new(acme: Option<&AcmeSettings>, tls: &Arc<Tls>) -> Option<Rc<Self>> {
        let acme = acme.filter(|acme| acme.on_demand.are_possible())?;
        Some(Rc::new(OnDemand {
            rules: acme.on_demand.clone(),
            domains: acme.domains.clone(),
            kept_in: acme.state_dir.clone(),
            tls: Arc::clone(tls),
            known: RefCell::default(),
            under_way: Cell::new(0),
            asked: Cell::default(),
            logged: Seldom::default(),
        }))
    }

    /// What is to be done for a name that a client asks for, in small letters.
    pub(crate) fn look(&self, host: &str) -> Look {
        let known = self.known.borrow().get(host).cloned();
        match known {
            Some(Known::Until(until_ms)) if now_ms() < until_ms => return Look::Nothing,
            Some(Known::UnderWay(done)) => return Look::UnderWay(done),
            _ => {}
        }
        if !self.is_possible(host) || self.under_way.get() >= MOST_UNDER_WAY {
            return Look::Nothing;
        }
        // A name that is not asked about now is looked at again with the next client.
        if !self.lists(host) && !self.may_ask() {
            return Look::Nothing;
        }
        let done = Rc::new(Notify::new());
        self.learn(host, Known::UnderWay(Rc::clone(&done)));
        self.under_way.set(self.under_way.get() + 1);
        Look::Begin(done)
    }

    /// What was begun for a name has ended.
    pub(crate) fn end(&self, host: &str, is_allowed: bool, done: &Notify) {
        let certificate = self.tls.certificate_for(host).filter(|_| is_allowed);
        let rest = certificate.map_or(TRY_AGAIN, |certificate| {
            let left = certificate.expires().duration_since(SystemTime::now()).unwrap_or_default();
            (left / PART).clamp(LOOK_SOONEST, LOOK_AGAIN)
        });
        self.learn(host, Known::Until(now_ms() + rest.as_millis() as u64));
        self.under_way.set(self.under_way.get() - 1);
        done.notify_waiters();
    }

    /// The path of the application by which it says whether there is to be a certificate for this name. `None`: it is not asked.
    pub(crate) fn path_to_ask(&self) -> Option<&str> {
        self.rules.ask.as_deref()
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Whether the name is allowed without asking.
    pub(crate) fn lists(&self, host: &str) -> bool {
        self.rules.lists(host)
    }

    /// Whether the log is to say that the application did not answer.
    pub(crate) fn is_to_log(&self) -> bool {
        self.logged.is_due(LOG_MS)
    }

    pub(crate) fn has_none(&self, host: &str) -> bool {
        self.tls.certificate_for(host).is_none()
    }

    /// Whether it could be a name on demand: an authority may issue a certificate for it, and it has none otherwise.
    fn is_possible(&self, host: &str) -> bool {
        let is_ours = |certificate: Certificate| certificate.file().starts_with(&self.kept_in);
        let above = host.split_once('.').map(|(_, above)| above);
        let covers =
            |domain: &String| domain == host || (above.is_some() && domain.strip_prefix("*.") == above);
        highball_config::is_domain(host)
            && (self.rules.ask.is_some() || self.rules.lists(host))
            && !self.domains.iter().any(covers)
            && self.tls.certificate_for(host).is_none_or(is_ours)
    }

    fn may_ask(&self) -> bool {
        let now_s = now_ms() / 1000;
        let (second, times) = self.asked.get();
        let times = if second == now_s { times } else { 0 };
        self.asked.set((now_s, times + 1));
        times < MOST_ASKED
    }

    fn learn(&self, host: &str, what: Known) {
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_KNOWN && !known.contains_key(host) {
            let now_ms = now_ms();
            known.retain(|_, known| !matches!(known, Known::Until(until_ms) if *until_ms <= now_ms));
            let rests = |known: &Known| matches!(known, Known::Until(_));
            let oldest = known.iter().find(|(_, known)| rests(known)).map(|(host, _)| host.clone());
            oldest.filter(|_| known.len() >= MOST_KNOWN).inspect(|oldest| drop(known.remove(oldest)));
        }
        known.insert(host.to_owned(), what);
    }
}
