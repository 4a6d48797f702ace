//! What `highball memory` shows to people: tables of at most 100 columns.

use super::report::{
    Heap, HeapTotal, InstanceReport, MachineReport, MeasuredApp, MemoryTotal, OtherServerReport,
    ProcessReport,
};
use highball_text::{cut_line, visible};
use std::fmt::Write as _;

/// The widest line.
const COLUMNS: usize = 100;

/// All of it.
pub(crate) fn tables(report: &MachineReport) -> String {
    let mut text = String::new();
    if report.highball.is_empty() {
        text.push_str("No Highball is running for this user.\n");
    }
    for instance in &report.highball {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&instance_tables(instance));
    }
    text.push('\n');
    if report.others.is_empty() {
        text.push_str("No other Ruby server was found on this machine.\n");
    } else {
        text.push_str("Other Ruby servers on this machine\n");
    }
    for server in &report.others {
        text.push('\n');
        text.push_str(&server_table(server));
    }
    text
}

fn instance_tables(instance: &InstanceReport) -> String {
    let runs_on = |app: &MeasuredApp| {
        let framework = app.framework.as_deref().unwrap_or("not booted yet");
        let ruby = app.ruby.as_ref().map(|ruby| format!(", Ruby {ruby}")).unwrap_or_default();
        format!("{framework}{ruby}")
    };
    let highball = format!("Highball {} (pid {})", instance.version, instance.pid);
    let mut lines = match &instance.apps[..] {
        [app] => vec![
            format!("{highball}, {}", runs_on(app)),
            format!("{} ({})", app.app.display(), app.environment),
        ],
        _ => vec![highball],
    };
    if instance.apps.len() > 1 {
        let line = |app: &MeasuredApp| {
            format!("{}: {}, {} ({})", app.name, runs_on(app), app.app.display(), app.environment)
        };
        lines.extend(instance.apps.iter().map(line));
    }
    let mut text: String = lines.iter().map(|line| cut(line) + "\n").collect();
    text.push('\n');
    text.push_str(&memory_table(&instance.processes, &instance.total));
    let _ = writeln!(
        text,
        "  rings: {:.2} MiB, shared by highball and its workers, counted once and not as private dirty",
        instance.total.ring_mib
    );
    text.push('\n');
    text.push_str(&heap_table(&instance.processes, &instance.heap_total));
    text
}

fn server_table(server: &OtherServerReport) -> String {
    let title = format!("{} (pid {}), user {}: {}", server.server, server.pid, server.user, server.command);
    format!("{}\n\n{}", cut(&title), memory_table(&server.processes, &server.total))
}

fn memory_table(processes: &[ProcessReport], total: &MemoryTotal) -> String {
    let width = width_of_names(processes);
    let mut text = format!(
        "  {:<width$} {:>8}  {:>13}  {:>10}  {:>10}  {:>10}\n",
        "MiB", "pid", "private dirty", "PSS", "RSS", "swap"
    );
    for process in processes {
        let figures = match (&process.memory, &process.memory_missing) {
            (Some(memory), _) => {
                columns([memory.private_dirty_mib, memory.pss_mib, memory.rss_mib, memory.swap_mib])
            }
            (None, why) => why.clone().unwrap_or_default(),
        };
        let _ =
            writeln!(text, "{}", cut(&format!("  {:<width$} {:>8}  {figures}", name(process), pid(process))));
    }
    let sum = columns([total.private_dirty_mib, total.pss_mib, total.rss_mib, total.swap_mib]);
    let unreadable = match total.unreadable_processes {
        0 => String::new(),
        some => format!("  ({some} not read)"),
    };
    let _ = writeln!(text, "  {:<width$} {:>8}  {sum}{unreadable}", "total", "");
    text
}

fn columns([private_dirty, pss, rss, swap]: [f64; 4]) -> String {
    format!("{:>13}  {:>10}  {:>10}  {:>10}", mib(private_dirty), mib(pss), mib(rss), mib(swap))
}

fn heap_table(processes: &[ProcessReport], total: &HeapTotal) -> String {
    let width = width_of_names(processes);
    let mut text = format!(
        "  {:<width$} {:>11}  {:>10}  {:>10}  {:>8}  {:>10}  {:>8}  {:>9}\n",
        "Ruby heap", "used slots", "free slots", "fragmented", "heap MiB", "malloc MiB", "GCs", "GC time"
    );
    for process in processes {
        let figures = match (&process.heap, &process.heap_missing) {
            (Some(heap), _) => heap_columns(heap),
            (None, Some(why)) => why.clone(),
            (None, None) => continue, // it has none
        };
        let _ = writeln!(text, "{}", cut(&format!("  {:<width$} {figures}", name(process))));
    }
    let _ = writeln!(
        text,
        "  {:<width$} {:>11}  {:>10}  {:>10}  {:>8}  {:>10}",
        "total",
        grouped(total.live_slots),
        grouped(total.free_slots),
        percent(total.fragmentation),
        mib(total.heap_mib),
        malloc_mib(total.malloc_increase_bytes)
    );
    text.push_str(
        "  fragmented: free slots on pages that hold an object, and so cannot be released, as a share of all\n  \
         slots on such pages. malloc: since the last GC. Counts go on from those of the mold.\n",
    );
    text
}

fn heap_columns(heap: &Heap) -> String {
    format!(
        "{:>11}  {:>10}  {:>10}  {:>8}  {:>10}  {:>8}  {:>6} ms",
        grouped(heap.live_slots),
        grouped(heap.free_slots),
        percent(heap.fragmentation),
        mib(heap.heap_mib),
        malloc_mib(heap.malloc_increase_bytes),
        heap.gc_count,
        heap.gc_time_ms
    )
}

/// As wide as the longest name, and no narrower than those of a single application.
fn width_of_names(processes: &[ProcessReport]) -> usize {
    processes.iter().map(|process| name(process).chars().count()).max().unwrap_or(0).clamp(14, 30)
}

/// `worker 3`, `mold blog`, `opener www-data`.
fn name(process: &ProcessReport) -> String {
    let role = match (process.worker, &process.process) {
        (Some(number), _) => format!("{} {number}", process.role),
        (None, Some(name)) => format!("{} {name}", process.role),
        (None, None) => process.role.clone(),
    };
    match &process.app {
        Some(app) => format!("{role} {app}"),
        None if process.role == "opener" => format!("{role} {}", process.user),
        None => role,
    }
}

fn pid(process: &ProcessReport) -> String {
    process.pid.map_or("-".into(), |pid| pid.to_string())
}

fn mib(mib: f64) -> String {
    format!("{mib:.1}")
}

fn malloc_mib(bytes: u64) -> String {
    mib(bytes as f64 / (1024.0 * 1024.0))
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A line that is no wider than it may be. What other programs call themselves may hold anything.
fn cut(line: &str) -> String {
    cut_line(&visible(line), COLUMNS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_link::RubyHeap;
    use highball_proc::{ProcessMemory, RingMemory};

    fn process(role: &str, worker: Option<u32>, heap: Result<u64, &str>) -> ProcessReport {
        let memory = ProcessMemory {
            private_dirty_kib: 123_456 * 1024,
            pss_kib: 2_345_678 * 1024,
            rss_kib: 3_456_789 * 1024,
            swap_kib: 1536,
            rings: RingMemory::default(),
        };
        let ruby_heap = |live_slots| RubyHeap {
            live_slots,
            free_slots: 25_000_000,
            page_slots: 100_000_000,
            pages: 100_000,
            page_bytes: 65_536,
            gc_count: 1_234_567,
            gc_time_ms: 123_456,
            ..RubyHeap::default()
        };
        ProcessReport {
            role: role.into(),
            app: None,
            worker,
            process: None,
            state: None,
            pid: Some(4_194_304),
            user: "www-data".into(),
            command: "highball worker".into(),
            memory: Some(memory.into()),
            memory_missing: None,
            heap: heap.ok().map(|live_slots| ruby_heap(live_slots).into()),
            heap_missing: heap.err().map(str::to_owned),
        }
    }

    fn a_report() -> MachineReport {
        let mut hidden = process("worker", None, Err(""));
        (hidden.memory, hidden.memory_missing, hidden.heap_missing) =
            (None, Some("belongs to www-data, and cannot be read".into()), None);
        let silent = process("worker", Some(4_294_967_295), Err("did not answer within 1 s"));
        let instance = InstanceReport {
            pid: 4_194_304,
            version: "0.1.0".into(),
            apps: vec![MeasuredApp {
                name: "long".into(),
                app: format!("/srv/{}", "long/".repeat(40)).into(),
                environment: "production".into(),
                framework: Some("Rails 6.1.7".into()),
                ruby: Some("3.1.2".into()),
            }],
            binds: Vec::new(),
            processes: vec![process("worker", Some(1), Ok(75_000_000)), silent],
            total: MemoryTotal { ring_mib: 1.25, ..MemoryTotal::default() },
            heap_total: HeapTotal::default(),
        };
        let server = OtherServerReport {
            server: "Puma".into(),
            pid: 7,
            user: "www-data".into(),
            command: "puma\u{1b}[31m 5.6.5".into(),
            processes: vec![hidden],
            total: MemoryTotal { processes: 1, unreadable_processes: 1, ..MemoryTotal::default() },
        };
        MachineReport { gc: false, highball: vec![instance], others: vec![server] }
    }

    #[test]
    fn tables_say_what_matters() {
        let text = tables(&a_report());
        for part in [
            "Highball 0.1.0 (pid 4194304), Rails 6.1.7, Ruby 3.1.2",
            "worker 1",
            "123456.0",
            "75,000,000",
            "25.0%",
            "did not answer within 1 s",
            "rings: 1.25 MiB",
            "Puma (pid 7), user www-data: puma\\x1b[31m 5.6.5",
            "belongs to www-data, and cannot be read",
            "(1 not read)",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn lines_fit_and_numbers_are_aligned() {
        let text = tables(&a_report());
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        let starting = |start: &str| text.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
        let [memory, heap] = starting("  worker 1 ")[..] else { panic!("{text}") };
        assert_eq!(memory.len(), starting("  MiB ")[0].len());
        assert_eq!(heap.len(), starting("  Ruby heap ")[0].len());
    }

    #[test]
    fn without_anything_it_says_so() {
        let text = tables(&MachineReport { gc: false, highball: Vec::new(), others: Vec::new() });
        assert_eq!(
            text,
            "No Highball is running for this user.\n\nNo other Ruby server was found on this machine.\n"
        );
    }

    #[test]
    fn long_numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
