//! The page, in the order in which people see it.

use super::tables::table;
use super::{charts, escape, rates, tabs, Colours};
use crate::report::comparison::Comparison;
use crate::report::figure::{
    Figure, CALLS, COLD_START, CPU, DEVIATION, DIRTY, GC, MAX, MEAN, OBJECTS, P50, P90, P99, P999, PROCESSES,
    PSS, REQUESTS, RINGS, SWITCHES, SYSTEM, USER,
};
use crate::report::weaknesses::standings;
use crate::report::{origins, remarks, tables, words};
use crate::results::Results;

const ALL: [Figure; 20] = [
    CPU, USER, SYSTEM, REQUESTS, MEAN, DEVIATION, P50, P90, P99, P999, MAX, DIRTY, RINGS, PSS, PROCESSES,
    SWITCHES, CALLS, OBJECTS, GC, COLD_START,
];

/// The whole page.
pub(in crate::report) fn page(results: &Results) -> String {
    let comparisons = Comparison::all(results);
    let colours = Colours::of(results);
    let mut sections = Sections::default();
    sections.add("glance", "At a glance", table(&tables::glance(&comparisons), &colours));
    sections.add("origins", "The schemes of 2006, today", schemes_of_2006(&comparisons, &colours));
    for (index, workload) in results.workloads.iter().enumerate() {
        let these: Vec<&Comparison> =
            comparisons.iter().filter(|one| one.workload == workload.name).collect();
        let group = format!("w{index}");
        let drawn = workload_charts(&group, &these, &colours) + &rates::charts(results, workload, &colours);
        sections.add(&group, &workload.title, drawn);
    }
    sections.add("weaknesses", "Where Highball is not the best", weaknesses(&comparisons, &colours));
    sections.add("tables", "All figures", all_tables(&comparisons, &colours));
    sections.add("method", "Method", method(results));
    sections.add("machine", "Machine and versions", machine(results, &colours));
    sections.add("skipped", "Not measured", table(&tables::skipped(results), &colours));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}{}</style>\n</head>\n\
         <body>\n{HATCHES}{}<main>\n{}</main>\n</body>\n</html>\n",
        escape(&results.title),
        include_str!("style.css"),
        tabs::style(),
        header(results, &comparisons, &sections, &colours),
        sections.html
    )
}

/// Floors are hatched, whatever their colour.
const HATCHES: &str = "<svg class=\"shared\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" \
    patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"hatch-back\"/>\
    <rect width=\"2.5\" height=\"6\" class=\"hatch-line\"/></pattern></defs></svg>\n";

/// Sections with their places in the contents; an empty one is left out of both.
#[derive(Default)]
struct Sections {
    contents: String,
    html: String,
}

impl Sections {
    fn add(&mut self, id: &str, title: &str, inside: String) {
        if inside.is_empty() {
            return;
        }
        let title = escape(title);
        self.contents += &format!("<a href=\"#{id}\">{title}</a>\n");
        self.html += &format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{inside}</section>\n");
    }
}

fn header(results: &Results, comparisons: &[Comparison], sections: &Sections, colours: &Colours) -> String {
    let mut text = format!("<header>\n<h1>{}</h1>\n", escape(&results.title));
    if let Some(answer) = &results.answer {
        text += &format!("<p class=\"answer\">{}</p>\n", escape(answer));
    }
    let machine = &results.machine;
    text += &format!(
        "<p class=\"facts\">{} · {} · {} · {} × {} · took {}</p>\n",
        words::time(results.started_unix),
        words::count(results.schemes.len() as u64, "scheme"),
        words::count(results.method.rounds.into(), "round"),
        machine.cores,
        escape(&machine.cpu),
        words::duration(results.took_seconds)
    );
    for warning in remarks::warnings(results, comparisons) {
        text += &format!("<p class=\"warning\">{}</p>\n", escape(&warning));
    }
    text += &format!("<nav aria-label=\"Contents\">\n{}</nav>\n", sections.contents);
    if !comparisons.is_empty() {
        text += &colours.legend(results);
    }
    text + "</header>\n"
}

fn schemes_of_2006(comparisons: &[Comparison], colours: &Colours) -> String {
    let panels: Vec<(String, String)> = origins::closest(comparisons)
        .into_iter()
        .map(|one| {
            let panel = charts::origins(one, colours) + &table(&tables::origins(one), colours);
            (format!("{}, {}", one.workload_title, words::load(&one.load)), panel)
        })
        .collect();
    if panels.is_empty() {
        return String::new();
    }
    String::from(
        "<p>In 2006, eleven ways to deploy were compared by hand with one small page and 100 connections. These are \
         their stand-ins of today, with Highball alone and behind each front end.</p>\n",
    ) + &tabs::tabs("origins-load", "loads", &panels, 0)
}

/// A tab for each load, and in it a chart for each figure: side by side on a desk, one at a time on a phone.
fn workload_charts(group: &str, comparisons: &[&Comparison], colours: &Colours) -> String {
    if comparisons.is_empty() {
        return String::new();
    }
    let panels: Vec<(String, String)> = comparisons
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let figures = [
                ("CPU".to_string(), charts::cpu(one, colours)),
                ("Requests/s".to_string(), charts::requests(one, colours)),
                ("Latency".to_string(), charts::latency(one, colours)),
                ("Memory".to_string(), charts::memory(one, colours)),
            ];
            let disturbance = format!("<p class=\"note\">CPU time: {}</p>\n", remarks::disturbance(one));
            let charts = tabs::tabs(&format!("{group}-{index}"), "figures", &figures, 0);
            (words::load(&one.load), disturbance + &charts)
        })
        .collect();
    // The one in the middle comes first: neither an idle server nor the flood.
    tabs::tabs(group, "loads", &panels, (panels.len() - 1) / 2)
}

fn weaknesses(comparisons: &[Comparison], colours: &Colours) -> String {
    let mut text = String::new();
    for standing in standings(comparisons) {
        text += &format!("<h3>{}</h3>\n<p>{}</p>\n", standing.title, escape(&standing.summary()));
        for failure in standing.failures() {
            text += &format!("<p class=\"warning\">{}</p>\n", escape(&failure));
        }
        if !standing.beaten.is_empty() {
            text += &format!(
                "<details open><summary>Clearly beaten</summary>\n{}</details>\n",
                table(&tables::beaten(&standing.beaten), colours)
            );
        }
    }
    text
}

fn all_tables(comparisons: &[Comparison], colours: &Colours) -> String {
    let mut text = String::new();
    for (index, one) in comparisons.iter().enumerate() {
        text += &format!(
            "<details{}><summary>{}, {}</summary>\n{}{}</details>\n",
            if index == 0 { " open" } else { "" },
            escape(one.workload_title),
            words::load(&one.load),
            table(&tables::figures(one, &ALL, true), colours),
            table(&tables::against_others(one), colours)
        );
    }
    text
}

fn method(results: &Results) -> String {
    let mut text = format!("<p>{}</p>\n<dl>\n", escape(&words::method(results)));
    for (term, meaning) in words::FIGURES {
        text += &format!("<dt>{}</dt><dd>{}</dd>\n", escape(term), escape(meaning));
    }
    text + &format!("</dl>\n<p>To measure again:</p>\n<pre>{}</pre>\n", escape(&results.command))
}

fn machine(results: &Results, colours: &Colours) -> String {
    let machine = &results.machine;
    let facts = [
        ("CPU", format!("{} × {}", machine.cores, machine.cpu)),
        ("Memory", format!("{} MiB", words::number(machine.memory_mib as f64, 0))),
        ("System", format!("{}, Linux {}", machine.system, machine.kernel)),
        ("Ruby", machine.ruby.clone()),
        ("Load", results.method.generators.join(", ")),
    ];
    let facts: String =
        facts.iter().map(|(term, words)| format!("<dt>{term}</dt><dd>{}</dd>\n", escape(words))).collect();
    format!("<dl class=\"machine\">\n{facts}</dl>\n{}", table(&tables::versions(results), colours))
}
