//! The page that a developer's browser shows instead of an application that did not boot, or of an answer that did not
//! come. It needs nothing from elsewhere and no JavaScript; everything that comes from the application or from a
//! request is escaped.

use highball_front::refusals::page::{self, Escaped};
use highball_front::DevelopmentPages;
use highball_link::{Diagnosis, Excerpt, FailedRequest, RubyError, Step};
use highball_text::{json, visible_lines, visible_name, visible_path};
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash, Hasher};
use std::path::Path;

/// What browsers and other programs are shown.
pub(crate) fn pages(diagnosis: &Diagnosis) -> DevelopmentPages {
    let mut hasher = DefaultHasher::new();
    (format!("{:?}{:?}", diagnosis.error, diagnosis.sources), &diagnosis.cause).hash(&mut hasher);
    let id = format!("{:016x}", hasher.finish());
    let nonce = format!("{:016x}", RandomState::new().hash_one(&id));
    DevelopmentPages {
        html: html(diagnosis, &id, &nonce).into_bytes(),
        json: json::pretty(diagnosis).into_bytes(),
        text: visible_lines(&diagnosis.to_string()).into_owned().into_bytes(),
        policy: format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        id,
    }
}

fn html(diagnosis: &Diagnosis, id: &str, nonce: &str) -> String {
    let name = visible_name(diagnosis.folder.file_name().unwrap_or_default());
    let cause = words_of(&diagnosis.cause);
    let about = if is_unknown(diagnosis) { &diagnosis.error.class } else { &cause };
    let what = what_happened(diagnosis);
    // A page that replaces an answer does not reload by itself: that would repeat the request.
    let (refresh, script) = match diagnosis.step {
        Some(_) => {
            let script = include_str!("diagnosis_page.js").replace("DIAGNOSIS", id);
            let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n";
            (refresh, format!("<script nonce=\"{nonce}\">\n{script}</script>\n"))
        }
        None => ("", String::new()),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{refresh}\
         <title>{} {}: {}</title>\n<style nonce=\"{nonce}\">\n{}{}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&name),
        Escaped(what),
        Escaped(about),
        page::STYLE,
        include_str!("diagnosis_page.css")
    );
    page += &header(diagnosis, &name, what);
    page += &remedy(diagnosis);
    for (number, source) in diagnosis.sources.iter().enumerate() {
        page += &excerpt(source, diagnosis, number == 0);
    }
    page += &details(diagnosis);
    let _ = write!(
        page,
        "</main>\n<footer>Highball shows this page in development, and to this machine alone.{}</footer>\n\
         {script}</body>\n</html>\n",
        diagnosis.step.map_or("", |_| " The same in a terminal: <code>highball status</code>")
    );
    page
}

/// Whether it is an exception of a request without a known cause.
fn is_unknown(diagnosis: &Diagnosis) -> bool {
    diagnosis.step.is_none() && diagnosis.cause == "exception"
}

/// `did not boot`, and what else may happen.
fn what_happened(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.request.as_ref().map(|request| request.status) {
        None => "did not boot",
        Some(500) => "raised an exception",
        Some(502) => "got no answer",
        Some(503) => "cannot take this request",
        Some(504) => "did not answer in time",
        Some(_) => "did not answer",
    }
}

/// What few people need, folded.
fn details(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for cause in &diagnosis.causes {
        let words = cause.to_string();
        text += &list(&format!("Caused by {}", words.lines().next().unwrap_or_default()), &cause.backtrace);
    }
    let mut threads = diagnosis.threads.iter();
    let first = threads.next().map_or("Backtrace".into(), |thread| format!("Where {} is", thread.name));
    text += &list(&first, &diagnosis.error.backtrace);
    for thread in threads {
        text += &list(&format!("Where {} is", thread.name), &thread.backtrace);
    }
    if let Some(request) = &diagnosis.request {
        text += &table("Parameters", request.parameters.iter().map(|(name, value)| (name, value)));
        text += &table("Header fields", request.fields.iter().map(|(name, value)| (name, value)));
    }
    text += &list("What it printed last", &diagnosis.log_tail);
    text += &table("Versions", diagnosis.versions.iter());
    text + &table("Environment", diagnosis.environment.iter())
}

fn header(diagnosis: &Diagnosis, name: &str, what: &str) -> String {
    // The folder is named below; in every line of the message it would only be in the way.
    let error = diagnosis.error.to_string().replace(&format!("{}/", diagnosis.folder.display()), "");
    let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
    let mut text = format!(
        "<header>\n<p class=\"app\"><strong>{}</strong> {}</p>\n<h1>{}</h1>\n",
        Escaped(name),
        Escaped(what),
        Escaped(first)
    );
    text += &diagnosis.step.map(journey).unwrap_or_default();
    text += &diagnosis.request.as_ref().map(request_line).unwrap_or_default();
    if !rest.trim().is_empty() {
        let _ = writeln!(text, "<pre class=\"message\">{}</pre>", Escaped(rest.trim_end()));
    }
    text + "</header>\n"
}

fn journey(failed: Step) -> String {
    let steps = failed.journey();
    let steps =
        steps.map(|(step, state)| format!("<li class=\"{state}\">{}</li>", Escaped(&step.to_string())));
    format!("<ol class=\"journey\">{}</ol>\n", steps.collect::<String>())
}

fn request_line(request: &FailedRequest) -> String {
    format!("<p class=\"request\"><b>{}</b> <code>{}</code></p>\n", request.status, Escaped(&request.line))
}

fn remedy(diagnosis: &Diagnosis) -> String {
    let cause = if is_unknown(diagnosis) { String::new() } else { words_of(&diagnosis.cause) };
    let mut text =
        format!("<section class=\"remedy\">\n<h2>What to do <span>{}</span></h2>\n", Escaped(&cause));
    let sentence = diagnosis.remedy.as_deref().unwrap_or(match diagnosis.step {
        Some(_) => "Fix what the message names.",
        None => "Look at the line below, and at the calls that led there.",
    });
    let _ = writeln!(text, "<p>{}</p>", Escaped(sentence));
    if let Some(command) = &diagnosis.command {
        let _ = writeln!(
            text,
            "<pre class=\"command\"><code>{}</code></pre>\n<p class=\"where\">in {}</p>",
            Escaped(command),
            Escaped(&visible_path(&diagnosis.folder))
        );
    }
    text += match diagnosis.step {
        Some(_) => {
            "<p class=\"then\">Then reload this page: the application boots again. (It reloads by itself, too.)</p>\n"
        }
        None => {
            "<p class=\"then\">Then reload this page: that repeats the request. Where the application does not load its \
             changed files by itself, <code>highball restart</code> does.</p>\n"
        }
    };
    text + "</section>\n"
}

fn excerpt(source: &Excerpt, diagnosis: &Diagnosis, is_first: bool) -> String {
    let path = Path::new(&source.file);
    let path = visible_path(path.strip_prefix(&diagnosis.folder).unwrap_or(path));
    let is_of_cause =
        |cause: &RubyError| cause.file.as_ref() == Some(&source.file) && cause.line == Some(source.line);
    let label = match diagnosis.causes.iter().find(|cause| is_of_cause(cause)) {
        _ if is_first => String::new(),
        Some(cause) => format!(" <small>{} was raised here</small>", Escaped(&cause.class)),
        None => " <small>called from here</small>".into(),
    };
    let mut text = format!(
        "<section class=\"source\">\n<h2>{}<span>:{}</span>{}</h2>\n<pre>",
        Escaped(&path),
        source.line,
        label
    );
    for (number, line) in (source.first_line..).zip(&source.lines) {
        let class = if number == source.line { " class=\"here\"" } else { "" };
        let _ = write!(text, "<code{class}><b>{number}</b>{}\n</code>", Escaped(line));
    }
    text + "</pre>\n</section>\n"
}

fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.join("\n");
    format!("<details><summary>{}</summary>\n<pre>{}</pre>\n</details>\n", Escaped(title), Escaped(&lines))
}

fn table<'a>(title: &str, facts: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let row = |(name, value): (&String, &String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", Escaped(name), Escaped(value))
    };
    let rows: String = facts.map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("<details><summary>{}</summary>\n<dl>\n{rows}</dl>\n</details>\n", Escaped(title))
}

/// `missing_gem` as people say it.
fn words_of(cause: &str) -> String {
    cause.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use highball_link::ThreadPlace;

    /// One of a boot, and one of a request.
    fn diagnoses(evil: &str) -> [Diagnosis; 2] {
        let boot = a_diagnosis(evil);
        let error = boot.error.clone();
        let thread =
            ThreadPlace { name: evil.into(), backtrace: vec![evil.into()], ..ThreadPlace::default() };
        let pairs = vec![(evil.to_string(), evil.to_string())];
        let request =
            FailedRequest { status: 504, line: evil.into(), fields: pairs.clone(), parameters: pairs };
        let (causes, threads) = (vec![error], vec![thread.clone(), thread]);
        let run = Diagnosis { step: None, request: Some(request), causes, threads, ..boot.clone() };
        [boot, run]
    }

    fn a_diagnosis(evil: &str) -> Diagnosis {
        let error = serde_json::json!({ "class": evil, "message": evil, "file": evil, "line": 1, "backtrace": [evil] });
        let source = serde_json::json!({ "file": evil, "line": 1, "first_line": 1, "lines": [evil] });
        let diagnosis = serde_json::json!({
            "cause": evil, "step": "load_app", "error": error, "remedy": evil, "command": evil, "sources": [source],
            "folder": format!("/srv/{evil}"), "versions": { evil: evil }, "environment": { evil: evil },
            "log_tail": [evil]
        });
        serde_json::from_value(diagnosis).unwrap()
    }

    #[test]
    fn everything_is_escaped() {
        for evil in ["<script>x()</script>", "\"><img src=x>", "'onload='x()", "</style><b>"] {
            for (with, without) in diagnoses(evil).iter().zip(&diagnoses("plain")) {
                let (with, without) = (html(with, "id", "nonce"), html(without, "id", "nonce"));
                assert!(!with.contains(evil), "{evil}");
                let tags = |page: &str| page.matches('<').count();
                assert_eq!(tags(&with), tags(&without), "{evil}");
            }
        }
    }

    #[test]
    fn the_page_names_no_other_place() {
        for diagnosis in diagnoses("plain") {
            let page = html(&diagnosis, "id", "nonce");
            for outside in ["src=", "href=", "url(", "@import", "http://", "https://"] {
                assert!(!page.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn only_the_page_of_a_boot_looks_again_by_itself() {
        let [boot, run] = diagnoses("plain").map(|diagnosis| html(&diagnosis, "id", "nonce"));
        assert!(boot.contains("<script") && boot.contains("http-equiv"));
        assert!(!run.contains("<script") && !run.contains("http-equiv"));
    }
}
