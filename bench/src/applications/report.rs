//! The page: both years side by side, then each figure of today.

use super::account::{self, Application, APPLICATIONS};
use super::heaps::Heap;
use super::trial::{LoadTurn, Trial};
use super::{Results, SCHEMES};
use crate::report::{count, errors_in_words, number, time};
use crate::statistics::Spread;

/// Bytes of a heap slot in MRI.
const SLOT_BYTES: f64 = 40.0;
/// Above this share of the machine's time, what others used may have changed figures.
const NOTEWORTHY: f64 = 0.05;

/// The trials of an application, in the order of the schemes.
pub(super) fn rows<'a>(results: &'a Results, workload: &'a str) -> Vec<&'a Trial> {
    SCHEMES.iter().filter_map(|scheme| results.of(workload, scheme).next()).collect()
}

/// `0`, or what failed and how often.
fn failed(trial: &Trial) -> String {
    match trial.errors.total() {
        0 => "0".into(),
        _ => format!("**{}**", errors_in_words(&trial.errors)),
    }
}

/// Slots of a worker's heap, on average.
fn slots(trial: &Trial, slots: impl Fn(&Heap) -> u64) -> f64 {
    let all: u64 = trial.heaps.iter().map(slots).sum();
    all as f64 / trial.heaps.len().max(1) as f64
}

/// A figure in whole turns: `10.6 (9.3–12.0)`.
pub(super) fn over_turns(trial: &Trial, decimals: usize, figure: fn(&LoadTurn) -> f64) -> String {
    let spread = Spread::of(trial.turns.iter().map(figure)).expect("a trial has turns");
    in_words(spread, decimals)
}

pub(super) fn in_words(spread: Spread, decimals: usize) -> String {
    let [median, least, most] =
        [spread.median, spread.least, spread.most].map(|value| number(value, decimals));
    if least == most {
        median
    } else {
        format!("{median} ({least}–{most})")
    }
}

/// Private dirty memory of a worker.
fn worker_mib(trial: &Trial) -> f64 {
    trial.memory_of_workers.private_dirty_mib / f64::from(trial.memory_of_workers.processes.max(1))
}

/// For the terminal.
pub(super) fn table(results: &Results) -> String {
    measured(results).map(|(_, rows)| speed(&rows)).collect::<Vec<String>>().join("\n")
}

/// The whole page.
pub(super) fn markdown(results: &Results) -> String {
    let mut page = String::from("# Three real applications, 2008 and today\n\n");
    if let (Some(first), Some(last)) = (
        results.trials.iter().map(|trial| trial.began).min(),
        results.trials.iter().map(|trial| trial.began).max(),
    ) {
        page += &format!(
            "Measured by `highball bench origins`. The first application began at {}, the last at {}.\n\n",
            time(first),
            time(last)
        );
    }
    page += &format!(
        "{}, {} cores, {} MiB; {}, {}; {}.\n\n",
        results.machine.cpu,
        results.machine.cores,
        number(results.machine.memory_mib as f64, 0),
        results.machine.system,
        results.machine.kernel,
        results.machine.ruby
    );
    page += &disturbance(results);
    page += "![Requests per second of both years](origins.svg)\n\n";
    page += &both_years(results);
    page += &today(results);
    page += &pairs(results);
    page += &memory(results);
    page += &applications(results);
    page += &method(results);
    page.trim_end().to_string() + "\n"
}

/// The applications of which there is a trial.
fn measured(results: &Results) -> impl Iterator<Item = (&'static Application, Vec<&Trial>)> {
    APPLICATIONS.iter().map(|one| (one, rows(results, one.workload))).filter(|(_, rows)| !rows.is_empty())
}

/// The first columns hold names, the others figures.
pub(super) fn heading(names: usize, cells: &[&str]) -> String {
    let lines = " --- |".repeat(names) + &" --: |".repeat(cells.len() - names);
    format!("| {} |\n|{lines}\n", cells.join(" | "))
}

fn disturbance(results: &Results) -> String {
    let most = |share: fn(&Trial) -> f64| results.trials.iter().map(share).fold(0.0, f64::max);
    let (stolen, others) = (most(|trial| trial.stolen), most(|trial| trial.others));
    let mut text = format!(
        "In any measurement, the hypervisor kept at most {:.1}% of the CPU time, and unrelated processes used at most {:.1}%.\n\n",
        100.0 * stolen,
        100.0 * others
    );
    if stolen > NOTEWORTHY || others > NOTEWORTHY {
        text +=
            "> The machine was not idle otherwise: measure again before you rely on small differences.\n\n";
    }
    text
}

fn both_years(results: &Results) -> String {
    let mut text = String::from(
        "## Requests per second, both years\n\nThe machines differ, so compare within a year.\n\n",
    );
    let mut cells = vec!["2008"];
    cells.extend(account::SERVERS);
    text += &heading(1, &cells);
    for one in &APPLICATIONS {
        let figures: Vec<String> = one.requests_per_second.iter().map(|figure| number(*figure, 0)).collect();
        text += &format!("| {} | {} |\n", one.kind, figures.join(" | "));
    }
    text += &format!("\n{}.\n\n", account::FAILED);
    text += "Today's figures are the requests of all turns, divided by their time. The tables below have medians of the turns.\n\n";
    let titles: Vec<&str> = SCHEMES
        .iter()
        .filter_map(|scheme| results.trials.iter().find(|trial| trial.scheme == *scheme))
        .map(|trial| trial.title.as_str())
        .collect();
    let mut cells = vec!["today"];
    cells.extend(&titles);
    text += &heading(1, &cells);
    for (one, rows) in measured(results) {
        text += &format!("| {}", one.workload);
        for title in &titles {
            let row = rows.iter().find(|row| row.title == *title);
            let figure = row.map_or("–".into(), |row| {
                let failed = row.errors.total();
                let mark = if failed > 0 { format!(", **{failed} failed**") } else { String::new() };
                number(row.requests_per_second, 0) + &mark
            });
            text += &format!(" | {figure}");
        }
        text += " |\n";
    }
    let failed: u64 = results.trials.iter().map(|trial| trial.errors.total()).sum();
    text += &match failed {
        0 => "\nNo request failed.\n\n".into(),
        _ => format!("\n{} requests failed.\n\n", number(failed as f64, 0)),
    };
    text
}

fn today(results: &Results) -> String {
    let mut text = String::from("## Each application\n\n");
    for (_, rows) in measured(results) {
        let first = rows[0];
        let requests = number(first.load.requests.into(), 0);
        text += &format!("### {}: {requests} requests\n\n{}\n", first.application, speed(&rows));
    }
    text
}

fn speed(rows: &[&Trial]) -> String {
    let mut text = heading(
        1,
        &[
            rows[0].workload.as_str(),
            "CPU per request, µs",
            "user",
            "system",
            "requests/s",
            "p50, ms",
            "p99, ms",
            "most, ms",
            "failed",
            "cold start, ms",
        ],
    );
    for row in rows {
        let cells = [
            over_turns(row, 0, |turn| turn.cpu_us),
            number(row.cpu_user_us, 0),
            number(row.cpu_system_us, 0),
            over_turns(row, 1, |turn| turn.requests_per_second),
            over_turns(row, 0, |turn| turn.p50),
            over_turns(row, 0, |turn| turn.p99),
            number(row.latency.max, 0),
            failed(row),
            number(row.cold_start_ms, 0),
        ];
        text += &format!("| {} | {} |\n", row.title, cells.join(" | "));
    }
    text
}

/// What is compared in pairs of turns: whether more is better, and the figure.
type Compared = (bool, fn(&LoadTurn) -> f64);

const COMPARED: [Compared; 4] = [
    (true, |turn| turn.requests_per_second),
    (false, |turn| turn.cpu_us),
    (false, |turn| turn.p50),
    (false, |turn| turn.p99),
];

/// Highball beside each other server: medians of the ratios of all pairs of turns.
fn pairs(results: &Results) -> String {
    let mut lines = String::new();
    let (mut count, mut behind) = (0, 0);
    for (one, rows) in measured(results) {
        let Some(highball) = rows.iter().find(|row| row.scheme == "highball") else { continue };
        for other in rows.iter().filter(|row| row.scheme != "highball") {
            let mut cells: Vec<(bool, String)> = COMPARED
                .iter()
                .map(|(more, figure)| {
                    let spread = ratios(highball, other, *figure);
                    (if *more { spread.median < 1.0 } else { spread.median > 1.0 }, in_words(spread, 2))
                })
                .collect();
            let memory = highball.memory.own_mib() / other.memory.own_mib();
            cells.push((memory > 1.0, number(memory, 2)));
            count += cells.len();
            behind += cells.iter().filter(|(is_behind, _)| *is_behind).count();
            let cells: Vec<String> = cells
                .into_iter()
                .map(|(is_behind, text)| if is_behind { format!("**{text}**") } else { text })
                .collect();
            lines += &format!("| {} | {} | {} |\n", one.workload, other.title, cells.join(" | "));
        }
    }
    if count == 0 {
        return String::new();
    }
    let turns = results.trials.first().map_or(0, |trial| trial.load.turns);
    let names = ["application", "beside", "requests/s", "CPU per request", "p50", "p99", "memory"];
    format!(
        "## Highball beside each other server\n\nEach figure is Highball's divided by the other's: the median of {turns} pairs of turns, \
         with the smallest and the largest. More requests/s is better, less of everything else. Of {count} comparisons, Highball is \
         behind in {behind}, in **bold**.\n\n{}{lines}\n",
        heading(2, &names)
    )
}

pub(super) fn ratios(ours: &Trial, other: &Trial, figure: fn(&LoadTurn) -> f64) -> Spread {
    let pairs = ours.turns.iter().zip(&other.turns);
    Spread::of(pairs.map(|(ours, other)| figure(ours) / figure(other))).expect("a trial has turns")
}

fn memory(results: &Results) -> String {
    let before = Counts::of(results, |trial| trial.requests_before_memory);
    let mut text = format!(
        "## Memory after {before} requests and a garbage collection\n\nPrivate dirty memory of all processes (with Highball's rings, and \
         with nginx), and of a worker; slots of the Ruby heap of a worker, and what they take (40 bytes each). {}\n\n",
        account::MEMORY
    );
    text += &heading(
        2,
        &[
            "application",
            "server",
            "all processes, MiB",
            "a worker, MiB",
            "slots used",
            "free",
            "used, MiB",
            "free, MiB",
            "processes",
        ],
    );
    for (one, rows) in measured(results) {
        for row in rows {
            let (used, free) = (slots(row, |heap| heap.used), slots(row, |heap| heap.free));
            let mib = |slots: f64| number(slots * SLOT_BYTES / 1024.0 / 1024.0, 1);
            let cells = [
                number(row.memory.own_mib(), 1),
                number(worker_mib(row), 1),
                number(used, 0),
                number(free, 0),
                mib(used),
                mib(free),
                number(row.memory.processes.into(), 0),
            ];
            text += &format!("| {} | {} | {} |\n", one.workload, row.title, cells.join(" | "));
        }
    }
    text + "\n"
}

fn applications(results: &Results) -> String {
    let mut text = String::from("## The applications, and why they are representative\n\n");
    for (one, rows) in measured(results) {
        let mut differ = 0.0_f64;
        let first = &rows[0].page_bytes;
        for trial in &rows {
            for (bytes, other) in first.iter().zip(&trial.page_bytes) {
                differ = differ.max(bytes.abs_diff(*other) as f64 / (*bytes).max(1) as f64);
            }
        }
        text += &format!(
            "- **{}** (in 2008, a {}). {} {} addresses, {} KiB on average. Each page had the same status and marker under all servers, and \
             lengths differed by at most {:.1}%.\n",
            one.workload,
            one.kind,
            one.why,
            first.len(),
            number(first.iter().sum::<u64>() as f64 / first.len().max(1) as f64 / 1024.0, 1),
            100.0 * differ
        );
    }
    text + "\n"
}

/// A count that may differ by application: `10,000`, or `10,000 (redmine: 2,000)`.
struct Counts(Vec<(&'static str, u32)>);

impl Counts {
    fn of(results: &Results, count: impl Fn(&Trial) -> u32) -> Counts {
        Counts(measured(results).map(|(one, rows)| (one.workload, count(rows[0]))).collect())
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let written = |count: u32| number(count.into(), 0);
        let Some(&(_, most)) = self.0.iter().max_by_key(|(_, count)| *count) else { return Ok(()) };
        write!(formatter, "{}", written(most))?;
        let others: Vec<String> = self
            .0
            .iter()
            .filter(|(_, count)| *count != most)
            .map(|(name, count)| format!("{name}: {}", written(*count)))
            .collect();
        match others.is_empty() {
            true => Ok(()),
            false => write!(formatter, " ({})", others.join(", ")),
        }
    }
}

fn method(results: &Results) -> String {
    let Some(Trial { load, .. }) = results.trials.first() else { return String::new() };
    let mut versions: Vec<&str> = Vec::new();
    for trial in &results.trials {
        if !versions.contains(&trial.version.as_str()) {
            versions.push(&trial.version);
        }
    }
    let clients_us = Spread::of(results.trials.iter().map(|trial| trial.clients_us));
    format!(
        "## Method\n\nAs in 2008: {} clients at a time (`ab -c 100`), a new connection for each request, {} requests that are measured \
         (`-n 10000`) after {} that are not. After {} in all, the load pauses for the garbage collections, and memory is read. A request \
         has failed if there is no connection, if it breaks, if 30 seconds pass without an answer, or if the answer has another status or \
         length than the page. Failed requests count neither in requests per second nor in latencies.\n\nEvery server has {} processes \
         of {}. In 2008 there were ten. Two for each core keep a core busy while a process waits; the other benchmarks of \
         this repository have as many. Passenger and Unicorn have no threads. Each server gets the same application, freshly \
         started, in production mode, without an access log, configured as in `bench/schemes`. All clients always have a request under way, so latencies are those of a queue: the clients divided by the \
         requests per second. CPU time counts all of a server's processes, nginx included. The clients run on the same machine and \
         use {} µs a request.\n\nThe servers of an application run at the same time. Each gets a part of its requests while the others have none, in {} \
         rounds, and another one begins each round: the speed of a machine may change by a fifth within minutes. What a server does between \
         its turns counts as its CPU time.\n\n{}.\n",
        load.clients,
        Counts::of(results, |trial| trial.load.requests),
        Counts::of(results, |trial| trial.warm_up),
        Counts::of(results, |trial| trial.requests_before_memory),
        load.workers,
        count(load.threads.into(), "thread"),
        number(clients_us.map_or(0.0, |one| one.median), 0),
        load.turns,
        versions.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_page_has_both_years_and_what_failed() {
        let results = sample::results();
        let page = markdown(&results);
        assert!(page.contains("| blog | 306 | 388 | 398 |"), "{page}");
        assert!(page.contains("| blog | 900, **3 failed** | 1,000 |"), "{page}");
        assert!(page.contains("**3 errors: 2 no answer in time, 1 wrong status**"), "{page}");
        assert!(page.contains("\n3 requests failed."), "{page}");
        assert!(!page.contains("| redmine |"), "it was not measured: {page}");
    }

    #[test]
    fn the_page_says_where_highball_is_behind() {
        let page = markdown(&sample::results());
        assert!(page.contains("Of 5 comparisons, Highball is behind in 1"), "{page}");
        assert!(page.contains("| blog | Puma | 1.11 | 0.91 | 0.91 | 0.91 | **1.33** |"), "{page}");
    }

    #[test]
    fn pairs_of_turns_have_a_median_and_a_spread() {
        let mut results = sample::results();
        results.trials[1].turns[0].requests_per_second = 1800.0;
        assert!(markdown(&results).contains("| blog | Puma | 1.56 (1.11–2.00) |"), "{}", markdown(&results));
    }

    #[test]
    fn an_application_may_have_another_number_of_requests() {
        let mut results = sample::results();
        assert!(markdown(&results).contains("10,000 requests that are measured"));
        let mut shop = results.trials[0].clone();
        (shop.workload, shop.load.requests) = ("shop".into(), 2000);
        results.trials.push(shop);
        assert!(markdown(&results).contains("10,000 (shop: 2,000) requests that are measured"));
    }

    #[test]
    fn turns_have_a_median_and_a_spread() {
        assert!(table(&sample::results()).contains("1,050.0 (1,000.0–1,100.0)"));
    }

    #[test]
    fn memory_is_that_of_processes_and_of_heaps() {
        let page = markdown(&sample::results());
        assert!(
            page.contains("| blog | Highball | 120.0 | 25.0 | 262,144 | 131,072 | 10.0 | 5.0 | 6 |"),
            "{page}"
        );
    }
}
