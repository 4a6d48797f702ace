//! The reports of sample results: what people must be able to rely on in each form.

mod sample;

use highball_bench::report::{html, json, markdown, table};
use highball_bench::results::{Errors, Results, RubyWork, Sample};
use sample::{empty, results, HOSTILE};

/// Every form of these results, by name.
fn forms(results: &Results) -> [(&'static str, String); 4] {
    [
        ("table", table(results)),
        ("json", json(results)),
        ("markdown", markdown(results)),
        ("html", html(results)),
    ]
}

/// Two schemes, one workload, one load: samples with these CPU times (µs) of each, one per round.
fn two(first: &[f64], second: &[f64]) -> Results {
    let mut results = results();
    let wanted = ["iodine", "itsi"];
    results.schemes.retain(|scheme| wanted.contains(&scheme.name.as_str()));
    results.workloads.truncate(1);
    results.bounds.clear();
    let template = results.samples[0].clone();
    let one = |scheme: &str, (round, cpu): (usize, &f64)| Sample {
        scheme: scheme.into(),
        round: round as u32 + 1,
        cpu_user_us: cpu - 1.0,
        cpu_system_us: 1.0,
        ..template.clone()
    };
    results.samples = first.iter().enumerate().map(|sample| one(wanted[0], sample)).collect();
    results.samples.extend(second.iter().enumerate().map(|sample| one(wanted[1], sample)));
    results
}

/// The line of the terminal's table that has this title.
fn line_of(table: &str, title: &str) -> String {
    let found = table.lines().find(|line| line.split_whitespace().nth(1) == Some(title));
    found.unwrap_or_else(|| panic!("no line of {title} in\n{table}")).to_string()
}

#[test]
fn the_table_fits_a_terminal() {
    for line in table(&results()).lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        assert!(!line.ends_with(' '), "{line:?}");
    }
}

#[test]
fn a_terminal_gets_plain_text_only() {
    let mut results = results();
    results.title = "\u{1b}[31mred\u{7}".into();
    results.schemes[0].title = "\u{1b}]0;title\u{7}".into();
    results.samples[0].errors.reset = 1;
    let text = table(&results);
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()));
}

#[test]
fn schemes_stand_by_median_cpu() {
    // By mean the first would come last: a single slow round must not decide.
    let text = table(&two(&[20.0, 21.0, 200.0], &[40.0, 41.0, 42.0]));
    let (iodine, itsi) = (text.find("Iodine ").unwrap(), text.find("Itsi ").unwrap());
    assert!(iodine < itsi, "{text}");
    assert!(line_of(&text, "Iodine").contains(" 21.0 >99%"), "{text}");
    assert!(line_of(&text, "Itsi").contains(" 41.0  ±2%"), "{text}");
}

#[test]
fn the_median_of_an_even_number_of_rounds_is_between() {
    let text = table(&two(&[20.0, 22.0], &[40.0, 44.0]));
    assert!(line_of(&text, "Iodine").contains(" 21.0  ±5%"), "{text}");
}

#[test]
fn highball_is_divided_by_others_round_by_round() {
    let mut results = two(&[10.0, 30.0, 20.0], &[100.0, 60.0, 50.0]);
    for (name, title) in [("iodine", "Highball"), ("itsi", "Puma")] {
        let scheme = results.schemes.iter_mut().find(|scheme| scheme.name == name).unwrap();
        scheme.title = title.into();
    }
    assert!(!markdown(&results).contains("Highball / Puma"));
    results.schemes[0].name = "highball".into();
    results.samples.iter_mut().filter(|sample| sample.scheme == "iodine").for_each(|sample| {
        sample.scheme = "highball".into();
    });
    // The medians of the figures would be 20 / 60.
    assert!(
        markdown(&results).contains("| Highball / Puma       | 0.400 (0.100–0.500)"),
        "{}",
        markdown(&results)
    );
    assert!(html(&results).contains("Highball / Puma"));
    let text = table(&results);
    assert!(text.lines().any(|line| line.contains("Highball / Puma") && line.contains(" 0.400 ")), "{text}");
}

#[test]
fn a_terminal_gets_what_was_counted() {
    let mut results = two(&[20.0, 21.0], &[40.0, 41.0]);
    for sample in &mut results.samples {
        (sample.system_calls_per_request, sample.ruby) = (None, None);
    }
    let text = table(&results);
    assert!(!text.contains("system calls"), "{text}");
    let iodine = results.samples.iter_mut().find(|sample| sample.scheme == "iodine").unwrap();
    iodine.system_calls_per_request = Some(2.204);
    iodine.ruby = Some(RubyWork { objects_per_request: 8.0, gc_us_per_request: 0.6 });
    let itsi = results.samples.iter_mut().find(|sample| sample.scheme == "itsi").unwrap();
    itsi.system_calls_per_request = Some(10.6);
    let text = table(&results);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = lines.iter().position(|line| line.ends_with(&["system", "calls", "Ruby", "objects"]));
    let head = head.unwrap_or_else(|| panic!("nothing counted in\n{text}"));
    assert_eq!(
        lines[head + 1..head + 3],
        [vec!["Iodine", "2.20", "8.0"], vec!["Itsi", "10.60", "-"]],
        "{text}"
    );
}

#[test]
fn places_say_what_is_clear_and_what_is_not() {
    let clear = table(&two(&[20.0, 21.0, 22.0], &[22.5, 23.0, 24.0]));
    assert!(line_of(&clear, "Iodine").trim_start().starts_with("1 "), "{clear}");
    assert!(line_of(&clear, "Itsi").trim_start().starts_with("2 "), "{clear}");
    let overlapping = table(&two(&[20.0, 21.0, 22.6], &[22.5, 23.0, 24.0]));
    for title in ["Iodine", "Itsi"] {
        assert!(line_of(&overlapping, title).trim_start().starts_with("1–2 "), "{overlapping}");
    }
}

#[test]
fn one_round_gives_no_place() {
    let results = two(&[20.0], &[40.0]);
    let text = table(&results);
    assert!(line_of(&text, "Iodine").trim_start().starts_with("- "), "{text}");
    for (form, text) in forms(&results).iter().filter(|(form, _)| *form != "json") {
        assert!(text.contains("only one round"), "{form} does not say so");
    }
}

#[test]
fn errors_are_marked_and_counted_in_every_form() {
    let mut results = two(&[20.0, 21.0, 22.0], &[40.0, 41.0, 42.0]);
    results.samples[1].errors = Errors { reset: 7, content: 3, ..Errors::default() };
    results.samples[2].errors = Errors { time_out: 2, ..Errors::default() };
    let [table, json, markdown, html] = forms(&results).map(|(_, text)| text);
    let line = line_of(&table, "Iodine");
    assert!(line.trim_start().starts_with('!') && line.ends_with(" !12"), "{line}");
    let kinds = "12 errors: 7 reset, 2 no answer in time, 3 wrong content";
    assert!(table.contains(&format!("! Iodine: {kinds}")), "{table}");
    assert!(json.contains("\"reset\": 7") && json.contains("\"content\": 3"));
    let row = markdown.lines().find(|line| line.starts_with("| Iodine | ! ")).expect("a marked row");
    assert!(row.contains(kinds), "{row}");
    assert!(html.contains(&format!("<td class=\"errors\">! {kinds}</td>")));
    assert!(html.matches("failed\"><span class=\"place\">!</span><span class=\"name\">Iodine").count() >= 4);
}

#[test]
fn a_failed_scheme_has_no_place_and_moves_no_other() {
    let mut results = two(&[20.0, 21.0, 22.0], &[40.0, 41.0, 42.0]);
    results.samples[0].errors.status = 1;
    assert!(line_of(&table(&results), "Itsi").trim_start().starts_with("1 "));
    assert!(markdown(&results).contains("Itsi 41.0"), "the best at a glance is the one without errors");
}

#[test]
fn html_shows_every_string_as_it_is() {
    let mut results = results();
    // Fields that come from the world outside, each with its own name.
    let hostile = |field: &str| format!("<i title=\"{field}\">'&{field}'</i>");
    results.title = hostile("title");
    results.answer = Some(hostile("answer"));
    results.command = hostile("command");
    results.machine.cpu = hostile("cpu");
    results.machine.system = hostile("system");
    results.machine.kernel = hostile("kernel");
    results.machine.ruby = hostile("ruby");
    results.method.generators = vec![hostile("generator")];
    results.workloads[0].title = hostile("workload");
    results.schemes[0].title = hostile("scheme");
    results.schemes[0].version = hostile("version");
    results.schemes[1].stands_for = Some(hostile("then"));
    results.schemes[11].server = hostile("server");
    results.skipped[0].why = hostile("why");
    results.skipped[0].packages = vec![hostile("package")];
    results.skipped[0].scheme = hostile("skipped");
    let page = html(&results);
    assert!(!page.contains("<i title"), "a string is markup");
    for field in [
        "title",
        "answer",
        "command",
        "cpu",
        "system",
        "kernel",
        "ruby",
        "generator",
        "workload",
        "scheme",
        "version",
        "then",
        "server",
        "why",
        "package",
        "skipped",
    ] {
        let escaped = format!("&lt;i title=&quot;{field}&quot;&gt;&#39;&amp;{field}&#39;&lt;/i&gt;");
        assert!(page.contains(&escaped), "{field} is not on the page");
    }
    check_balance(&page);
}

#[test]
fn html_is_well_formed() {
    for results in [results(), empty(), two(&[20.0], &[40.0])] {
        check_balance(&html(&results));
    }
}

#[test]
fn html_needs_nothing_from_elsewhere() {
    let page = html(&results()).replace(&escaped(HOSTILE), "");
    for word in
        ["http:", "https:", "src=", "@import", "<script", "<link", "<iframe", "<object", "file:", "//"]
    {
        assert!(!page.contains(word), "{word} is on the page");
    }
    for (at, _) in page.match_indices("url(") {
        assert!(page[at..].starts_with("url(#"), "{}", &page[at..at + 40]);
    }
    for (at, _) in page.match_indices("href=") {
        assert!(page[at..].starts_with("href=\"#"), "{}", &page[at..at + 40]);
        let id = page[at + 7..].split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "nothing has the id {id}");
    }
}

#[test]
fn html_has_no_id_twice() {
    let page = html(&results());
    let mut ids: Vec<&str> =
        page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn floors_stand_apart() {
    let results = results();
    let page = html(&results);
    assert!(page.contains("<li class=\"floor\"><span class=\"place\"></span><span class=\"name\">bare epoll"));
    let text = table(&results);
    assert_eq!(text.matches("\nfloor  bare epoll").count(), 5);
    let markdown = markdown(&results);
    let weaknesses = section(&markdown, "Where Highball is not the best");
    assert!(!weaknesses.contains("bare epoll"), "{weaknesses}");
}

#[test]
fn weaknesses_are_shown_plainly() {
    let text = markdown(&results());
    let weaknesses = section(&text, "Where Highball is not the best");
    let row = weaknesses.lines().find(|line| line.contains("cold start ms") && line.contains("| Highball 4"));
    let row = row.unwrap_or_else(|| panic!("nothing says that Highball starts slowly:\n{weaknesses}"));
    assert!(row.contains("and 23 more"), "{row}");
    assert!(!weaknesses.contains("CPU per request µs  | Highball 1"), "{weaknesses}");
}

#[test]
fn highballs_own_errors_are_a_weakness() {
    let mut results = results();
    let mine = results.samples.iter_mut().find(|sample| sample.scheme == "highball").unwrap();
    mine.errors.length = 5;
    let text = markdown(&results);
    let weaknesses = section(&text, "Where Highball is not the best");
    assert!(weaknesses.contains("> ! Highball had errors"), "{weaknesses}");
    assert!(html(&results).contains("! Highball had errors"));
}

#[test]
fn the_schemes_of_2006_stand_beside_highball() {
    let text = markdown(&results());
    let then = section(&text, "The schemes of 2006, by today's stand-ins");
    let row = |words: &str| then.lines().find(|line| line.contains(words));
    assert!(
        row("nginx → 4 mongrels").is_some_and(|line| line.contains("Puma × 2 behind nginx, TCP")),
        "{then}"
    );
    assert!(row("| Highball × 2 behind pen, TCP").is_some(), "{then}");
    assert!(row("Iodine").is_none(), "{then}");
    assert!(
        then.contains("### Hello world (Rack), 100 connections"),
        "the load nearest to that of 2006: {then}"
    );
    assert!(html(&results()).contains("<small>in 2006: nginx → 4 mongrels</small>"));
}

#[test]
fn what_was_skipped_is_named_with_its_remedy() {
    let [table, json, markdown, html] = forms(&results()).map(|(_, text)| text);
    assert!(table.contains("- pound-puma: pound is not there: apt-get install pound\n"), "{table}");
    assert!(json.contains("\"scheme\": \"pound-puma\""));
    assert!(markdown.contains("apt-get install pound"));
    assert!(html.contains("<code>apt-get install pound</code>"));
}

#[test]
fn bounds_name_the_most_within_them() {
    let [table, json, markdown, html] = forms(&results()).map(|(_, text)| text);
    assert!(table.contains("p99 within 25.00 ms") && table.contains("none  p99 within"), "{table}");
    assert!(json.contains("\"steps\""));
    assert!(markdown.contains("none stayed within"));
    assert!(
        html.contains("nothing stayed within 25.0 ms") && html.contains("aria-label=\"p99 over requests")
    );
}

#[test]
fn an_interrupted_run_says_so() {
    let mut results = results();
    for (form, text) in forms(&results).iter().filter(|(form, _)| *form != "json") {
        assert!(!text.contains("Interrupted"), "{form}");
    }
    results.interrupted = true;
    for (form, text) in forms(&results) {
        assert!(
            text.contains(if form == "json" { "\"interrupted\": true" } else { "Interrupted" }),
            "{form}"
        );
    }
}

#[test]
fn a_disturbed_machine_is_named() {
    let mut results = results();
    results.samples.iter_mut().for_each(|sample| sample.stolen = 0.31);
    for (form, text) in forms(&results).iter().filter(|(form, _)| *form != "json") {
        assert!(text.contains("31.0%") && text.contains("not ours alone"), "{form}");
    }
}

#[test]
fn nothing_measured_is_a_report_as_well() {
    for (form, text) in forms(&empty()).iter().filter(|(form, _)| *form != "json") {
        assert!(text.contains("Nothing was measured"), "{form}: {text}");
    }
}

#[test]
fn broken_figures_and_unknown_names_do_not_stop_a_report() {
    let mut results = results();
    results.schemes.clear();
    results.workloads.remove(1);
    for (place, sample) in results.samples.iter_mut().enumerate() {
        sample.latency.p99 = [f64::NAN, f64::INFINITY, 0.0, -1.0][place % 4];
        sample.cpu_user_us = if place % 5 == 0 { f64::NAN } else { 0.0 };
        sample.requests_per_second = 0.0;
    }
    results.bounds[0].steps[0].p99_ms = f64::NAN;
    results.bounds[1].steps.clear();
    results.bounds[2].scheme = "unknown".into();
    for (form, text) in forms(&results) {
        assert!(!text.contains("NaN") && !text.contains("inf%"), "{form}");
    }
    check_balance(&html(&results));
}

#[test]
fn json_brings_everything_back() {
    let results = results();
    let again: Results = serde_json::from_str(&json(&results)).unwrap();
    assert_eq!(markdown(&again), markdown(&results));
    assert_eq!(html(&again), html(&results));
}

#[test]
fn markdown_has_whole_tables_and_shows_every_string_as_it_is() {
    let text = markdown(&results());
    let mut columns = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = None;
            continue;
        }
        let cells = line.replace("\\|", "").matches('|').count();
        assert_eq!(*columns.get_or_insert(cells), cells, "{line}");
    }
    assert!(!text.contains("<b>") && !text.contains("[a](http"), "markup of a title is in force");
    assert!(text.contains("&lt;b&gt;\"Tom\" &amp; 'Jerry'&lt;/b&gt; \\| \\*bold\\* \\_x\\_ \\[a\\]"));
}

/// The text of a section of Markdown, without what follows it.
fn section<'a>(markdown: &'a str, title: &str) -> &'a str {
    let begin = markdown.find(&format!("## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
    let rest = &markdown[begin + 3..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

/// Every element that is opened is closed in its turn, every attribute is quoted, and `<` and `&` stand in no text.
fn check_balance(page: &str) {
    const EMPTY: [&str; 2] = ["meta", "input"];
    let (before, rest) = page.split_once("<style>").expect("a style");
    let (_, after) = rest.split_once("</style>").expect("the end of the style");
    let mut open: Vec<&str> = Vec::new();
    let page = before.to_string() + after;
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("a document type");
    let mut rest = body;
    while let Some(begin) = rest.find('<') {
        check_text(&rest[..begin]);
        let end = begin + rest[begin..].find('>').expect("the end of a tag");
        let tag = &rest[begin + 1..end];
        assert!(!tag.contains('<'), "a tag in a tag: {tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed by </{name}> at {}", &rest[..begin]);
        } else if !tag.ends_with('/') && !EMPTY.contains(&name) {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|entity| text[at..].starts_with(entity)), "{text}");
    }
}
