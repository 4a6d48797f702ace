//! What a request costs inside Ruby: the objects that it allocates, and the time of garbage collection.
//!
//! A page of the application tells both of the process that answers it, since that was started
//! (`bench/apps/heap.rb`). It is asked before and after a load. Several are asked at a time, and each takes a moment,
//! until as many processes as there are workers have answered; where they do not, there are no figures.

use crate::interrupt;
use crate::load::connection::Connection;
use crate::load::request;
use crate::results::RubyWork;
use crate::socket::Protocol;
use crate::workload::Request;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// How many ask at a time, for each worker.
const ASKERS: u32 = 4;
/// Rounds of requests before a worker that was not found is given up.
const ATTEMPTS: u32 = 5;
/// An answer that takes longer does not come.
const ANSWER: Duration = Duration::from_secs(5);

/// Where a heap is asked for, and of how many processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) path: &'a str,
    pub(crate) workers: u32,
}

/// What each process has done until now, by its id.
#[derive(Debug, Clone)]
pub(crate) struct Heaps(BTreeMap<u32, Heap>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Heap {
    objects: u64,
    gc_ns: u64,
}

impl Page<'_> {
    /// `None`: not all of them answered.
    pub(crate) fn ask(&self) -> Option<Heaps> {
        let mut heaps = BTreeMap::new();
        for _ in 0..ATTEMPTS {
            let answers: Vec<_> = std::thread::scope(|scope| {
                let askers: Vec<_> =
                    (0..ASKERS * self.workers).map(|_| scope.spawn(|| self.ask_one())).collect();
                askers
                    .into_iter()
                    .filter_map(|asker| asker.join().expect("an asker does not panic"))
                    .collect()
            });
            if answers.is_empty() || interrupt::came() {
                return None;
            }
            for (pid, heap) in answers {
                // Answers do not come in the order in which they were made.
                let known: &mut Heap = heaps.entry(pid).or_insert(heap);
                *known = if heap.objects > known.objects { heap } else { *known };
            }
            if heaps.len() >= self.workers as usize {
                return Some(Heaps(heaps));
            }
        }
        None
    }

    fn ask_one(&self) -> Option<(u32, Heap)> {
        let request = Request { path: self.path.into(), ..Request::default() };
        let request = request::head(&request, "127.0.0.1", false);
        let connection = Connection::open_for(self.address, Protocol::Http, ANSWER).ok()?;
        let (_, body) = connection.ask_all(request.as_bytes()).ok()?;
        parse(&String::from_utf8(body).ok()?)
    }
}

/// The three numbers of the page.
fn parse(page: &str) -> Option<(u32, Heap)> {
    let mut words = page.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    Some((pid, Heap { objects: words.next()?.parse().ok()?, gc_ns: words.next()?.parse().ok()? }))
}

impl Heaps {
    /// Per request since an earlier moment; `None` where these are not the same processes, or there was no request.
    pub(crate) fn since(&self, earlier: &Heaps, requests: u64) -> Option<RubyWork> {
        if requests == 0 || !self.0.keys().eq(earlier.0.keys()) {
            return None;
        }
        let more = |figure: fn(&Heap) -> u64| {
            let sum = |heaps: &Heaps| heaps.0.values().map(figure).sum::<u64>();
            sum(self).saturating_sub(sum(earlier)) as f64
        };
        Some(RubyWork {
            objects_per_request: more(|heap| heap.objects) / requests as f64,
            gc_us_per_request: more(|heap| heap.gc_ns) / 1e3 / requests as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heaps(all: &[(u32, u64, u64)]) -> Heaps {
        Heaps(all.iter().map(|&(pid, objects, gc_ns)| (pid, Heap { objects, gc_ns })).collect())
    }

    #[test]
    fn a_page_is_read() {
        assert_eq!(parse("7 1234 56\n"), Some((7, Heap { objects: 1234, gc_ns: 56 })));
        assert_eq!((parse("no 12 3"), parse("7 1234"), parse("")), (None, None, None));
    }

    #[test]
    fn all_processes_are_summed_up() {
        let (before, after) = (heaps(&[(1, 100, 0), (2, 50, 0)]), heaps(&[(1, 300, 5000), (2, 50, 1000)]));
        let work = after.since(&before, 20).unwrap();
        assert_eq!((work.objects_per_request, work.gc_us_per_request), (10.0, 0.3));
        assert!(after.since(&before, 0).is_none());
        assert!(after.since(&heaps(&[(1, 100, 0), (3, 0, 0)]), 20).is_none());
    }
}
