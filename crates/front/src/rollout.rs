//! Rollouts: two versions of an application serve, and each visitor gets one of them. A visitor has a number, which is given out once
//! and kept in a cookie. The numbers below the share of the new version get it, so a visitor who has got it keeps it when
//! the share grows.
//!
//! In reading order: [`VisitorRule`] (who gets which version), [`Visitor`] (what a request says), [`RolloutState`] (what an
//! application has beside its other state while a rollout is under way).

use std::rc::Rc;

use highball_link::{RolloutReport, VersionFigures};

use crate::cache::directives::Directives;
use crate::cookies::{set_cookie_line, values_in};
use crate::files::StaticFiles;
use crate::http_syntax::{field_of, lines_of};
use crate::message::request_head::{known_key, Head};
use crate::moments::Moments;

/// Name of the cookie, with `=`.
const COOKIE: &str = "highball-rollout=";
/// Time for which visitors keep it: a week.
const COOKIE_SECONDS: u32 = 7 * 24 * 60 * 60;
/// How many numbers there are for visitors, from 0.
const NUMBERS: u16 = 1000;
/// From the number of one new visitor to that of the next. It has no divisor in common with [`NUMBERS`], so each number is given to one
/// of a thousand new visitors; and it is near to their golden section, so a share's visitors are spread evenly among the others.
const STEP: u16 = 619;

/// Which version a visitor gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VisitorRule {
    /// The new version.
    pub(crate) generation: u32,
    /// Visitors with smaller numbers get it.
    pub(crate) thousandths: u16,
    /// Whether all others get the old version. Otherwise they get any.
    pub(crate) is_held: bool,
}

impl VisitorRule {
    /// Whether the visitor with this number gets the new version.
    pub(crate) fn is_new_for(self, number: u16) -> bool {
        number < self.thousandths
    }
}

/// A visitor, as a request during a rollout tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visitor {
    pub(crate) number: u16,
    /// Whether the client has sent the number. Otherwise it gets it with the response.
    is_known: bool,
    /// Whether the visitor gets the new version.
    pub(crate) gets_new: bool,
}

impl Visitor {
    /// The visitor who has sent the request with this head. A number that no visitor can have does not count.
    pub(crate) fn of(head: Head<'_>, rule: VisitorRule, new_number: impl FnOnce() -> u16) -> Visitor {
        let known = head.values_of(known_key::COOKIE).find_map(in_cookies);
        let number = known.unwrap_or_else(new_number);
        Visitor { number, is_known: known.is_some(), gets_new: rule.is_new_for(number) }
    }

    /// The same visitor, by another rule.
    pub(crate) fn by(self, rule: VisitorRule) -> Visitor {
        Visitor { gets_new: rule.is_new_for(self.number), ..self }
    }

    /// The line by which the client gets its number with this answer of a worker. `None`: it has it; or other clients may get the
    /// answer, too.
    pub(crate) fn cookie_line(self, lines: &[u8], path: &str, is_tls: bool) -> Option<Vec<u8>> {
        if self.is_known || is_for_others(lines) {
            return None;
        }
        let cookie = format!("{COOKIE}{}", self.number);
        Some(set_cookie_line(&cookie, path, Some(COOKIE_SECONDS), is_tls))
    }
}

/// Reads the cookie out of the value of a `Cookie` field.
fn in_cookies(cookies: &[u8]) -> Option<u16> {
    values_in(cookies, COOKIE.as_bytes()).find_map(read)
}

fn read(value: &[u8]) -> Option<u16> {
    let is_number = (1..=3).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let number: u16 = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    (number < NUMBERS).then_some(number)
}

/// Whether caches on the way may give an answer with these lines to other clients: they would get the same number.
fn is_for_others(lines: &[u8]) -> bool {
    let fields = lines_of(lines).map(field_of);
    let values =
        fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control")).map(|(_, value)| value);
    let says = Directives::of(values);
    let is_stored = says.public || says.s_maxage.is_some() || says.max_age.is_some_and(|seconds| seconds > 0);
    is_stored && !says.private && !says.no_store
}

/// What an application has while a rollout is under way.
#[derive(Debug)]
pub(crate) struct RolloutState {
    pub(crate) rule: VisitorRule,
    /// The new version's static files, if it has some.
    pub(crate) statics: Option<Rc<StaticFiles>>,
    /// The number of the next new visitor.
    next_number: u16,
    old: VersionFigures,
    new: VersionFigures,
}

impl RolloutState {
    /// Nothing is counted yet.
    pub(crate) fn new(rule: VisitorRule, statics: Option<Rc<StaticFiles>>) -> RolloutState {
        let (old, new) = (VersionFigures::default(), VersionFigures::default());
        RolloutState { rule, statics, next_number: 0, old, new }
    }

    /// The number of a new visitor.
    pub(crate) fn new_number(&mut self) -> u16 {
        let next = (self.next_number + STEP) % NUMBERS;
        std::mem::replace(&mut self.next_number, next)
    }

    /// Counts a request for a worker that was answered with this status.
    pub(crate) fn count(&mut self, visitor: Visitor, moments: Moments, status: u16) {
        let figures = if visitor.gets_new { &mut self.new } else { &mut self.old };
        figures.requests += 1;
        figures.errors += u64::from(status >= 500);
        if moments.first_us > 0 {
            figures.first_byte_time.add(moments.first_us.saturating_sub(moments.received_us));
        }
    }

    pub(crate) fn report(&self) -> RolloutReport {
        RolloutReport {
            generation: self.rule.generation,
            share_percent: f64::from(self.rule.thousandths) / 10.0,
            holds: self.rule.is_held,
            old: (&self.old).into(),
            new: (&self.new).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Visitor = Visitor { number: 42, is_known: false, gets_new: true };

    #[test]
    fn only_numbers_of_visitors_are_read() {
        assert_eq!(in_cookies(b"a=b; highball-rollout=0; c=d"), Some(0));
        assert_eq!(in_cookies(b"highball-rollout=x; highball-rollout=999"), Some(999));
        for value in ["", "1000", "65536", "-1", "+1", " 1", "1.0", "0x1", "1e2", "\u{661}"] {
            assert_eq!(in_cookies(format!("highball-rollout={value}, a").as_bytes()), None, "{value}");
            assert_eq!(read(value.as_bytes()), None, "{value}");
        }
        assert_eq!(in_cookies(b"xhighball-rollout=1"), None);
    }

    #[test]
    fn a_larger_share_takes_no_visitor_back() {
        let rule = |thousandths| VisitorRule { generation: 2, thousandths, is_held: true };
        for number in 0..NUMBERS {
            let gets: Vec<bool> = [0, 1, 50, 999, 1000].map(|share| rule(share).is_new_for(number)).into();
            assert!(gets.is_sorted() && !gets[0] && gets[4], "{number}");
        }
        let share = (0..NUMBERS).filter(|number| rule(50).is_new_for(*number)).count();
        assert_eq!(share, 50);
    }

    #[test]
    fn each_number_is_given_to_one_of_a_thousand_new_visitors() {
        let rule = VisitorRule { generation: 2, thousandths: 50, is_held: true };
        let mut state = RolloutState::new(rule, None);
        let mut numbers: Vec<u16> = (0..2 * NUMBERS).map(|_| state.new_number()).collect();
        let new: Vec<usize> = (0..numbers.len()).filter(|at| rule.is_new_for(numbers[*at])).collect();
        let between: Vec<usize> = new.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            between.iter().all(|between| (8..=21).contains(between)),
            "one in 20 on average: {between:?}"
        );
        numbers.sort_unstable();
        assert!(numbers.chunks(2).zip(0..).all(|(given, number)| given == [number, number]));
    }

    #[test]
    fn a_client_gets_its_number_once_and_no_other_client_the_same() {
        let line = NEW.cookie_line(b"content-type: text/html\r\n", "/shop", true).unwrap();
        let expected =
            "set-cookie: highball-rollout=42; Path=/shop; Max-Age=604800; HttpOnly; SameSite=Lax; Secure\r\n";
        assert_eq!(String::from_utf8(line).unwrap(), expected);
        let plain = NEW.cookie_line(b"cache-control: max-age=0, private\r\n", "", false).unwrap();
        assert!(plain.ends_with(b"Path=/; Max-Age=604800; HttpOnly; SameSite=Lax\r\n"));
        assert_eq!(Visitor { is_known: true, ..NEW }.cookie_line(b"", "", false), None);
        for value in ["public", "max-age=60", "s-maxage=1", "Public, max-age=31536000, immutable"] {
            let lines = format!("Cache-Control: {value}\r\n");
            assert_eq!(NEW.cookie_line(lines.as_bytes(), "", false), None, "{value}");
        }
    }
}
