//! The page that a developer's browser shows in the place of an application that did not boot. It needs nothing from
//! elsewhere and no JavaScript; everything that comes from the application is escaped.

use highball_config::App;
use highball_front::page::{self, Escaped};
use highball_front::{DevelopmentPages, FailurePages};
use highball_supervisor::{Diagnosis, Excerpt};
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;

/// The largest page of the application's own, in bytes.
const PUBLIC_BYTES: u64 = 256 * 1024;

/// What browsers, other programs and the public are shown.
pub(crate) fn pages(diagnosis: &Diagnosis, app: &App) -> FailurePages {
    let development = app.is_development().then(|| {
        let mut hasher = DefaultHasher::new();
        (format!("{:?}{:?}", diagnosis.error, diagnosis.sources), &diagnosis.cause).hash(&mut hasher);
        let id = format!("{:016x}", hasher.finish());
        let nonce = format!("{:016x}", RandomState::new().hash_one(&id));
        DevelopmentPages {
            html: html(diagnosis, &id, &nonce).into_bytes(),
            text: diagnosis.to_string().into_bytes(),
            policy: format!(
                "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            id,
        }
    });
    FailurePages { development, public: page_of_the_application(&diagnosis.folder) }
}

/// `public/503.html` of the application, for visitors.
fn page_of_the_application(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join("public/503.html");
    let about = path.metadata().ok()?;
    if !about.is_file() || about.len() > PUBLIC_BYTES {
        return None;
    }
    let mut page = Vec::new();
    std::fs::File::open(path).ok()?.take(PUBLIC_BYTES).read_to_end(&mut page).ok()?;
    Some(page)
}

fn html(diagnosis: &Diagnosis, id: &str, nonce: &str) -> String {
    let name = diagnosis.folder.file_name().unwrap_or_default().to_string_lossy();
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n\
         <title>{} does not boot: {}</title>\n<style nonce=\"{nonce}\">\n{}{}</style>\n</head>\n<body>\n<main>\n",
        Escaped(&name),
        Escaped(&words_of(&diagnosis.cause)),
        page::STYLE,
        include_str!("diagnosis_page.css")
    );
    page += &header(diagnosis, &name);
    page += &remedy(diagnosis);
    for (number, source) in diagnosis.sources.iter().enumerate() {
        page += &excerpt(source, diagnosis, number == 0);
    }
    page += &list("What it printed last", &diagnosis.log_tail);
    page += &list("Backtrace", &diagnosis.error.backtrace);
    page += &table("Versions", &diagnosis.versions);
    page += &table("Environment", &diagnosis.environment);
    let _ = write!(
        page,
        "</main>\n<footer>Highball shows this page in development, and to this machine alone. \
         The same in a terminal: <code>highball status</code></footer>\n\
         <script nonce=\"{nonce}\">\n{}</script>\n</body>\n</html>\n",
        include_str!("diagnosis_page.js").replace("DIAGNOSIS", id)
    );
    page
}

fn header(diagnosis: &Diagnosis, name: &str) -> String {
    // The folder is named below; in every line of the message it would only be in the way.
    let error = diagnosis.error.to_string().replace(&format!("{}/", diagnosis.folder.display()), "");
    let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
    let mut text = format!(
        "<header>\n<p class=\"app\"><strong>{}</strong> did not boot</p>\n<h1>{}</h1>\n<ol class=\"journey\">",
        Escaped(name),
        Escaped(first)
    );
    for (step, state) in diagnosis.step.journey() {
        let _ = write!(text, "<li class=\"{state}\">{}</li>", Escaped(&step.to_string()));
    }
    text += "</ol>\n";
    if !rest.trim().is_empty() {
        let _ = writeln!(text, "<pre class=\"message\">{}</pre>", Escaped(rest.trim_end()));
    }
    text + "</header>\n"
}

fn remedy(diagnosis: &Diagnosis) -> String {
    let cause = words_of(&diagnosis.cause);
    let mut text =
        format!("<section class=\"remedy\">\n<h2>What to do <span>{}</span></h2>\n", Escaped(&cause));
    let sentence = diagnosis.remedy.as_deref().unwrap_or("Mend what the message names.");
    let _ = writeln!(text, "<p>{}</p>", Escaped(sentence));
    if let Some(command) = &diagnosis.command {
        let _ = writeln!(
            text,
            "<pre class=\"command\"><code>{}</code></pre>\n<p class=\"where\">in {}</p>",
            Escaped(command),
            Escaped(&diagnosis.folder.to_string_lossy())
        );
    }
    text + "<p class=\"then\">Then reload this page: the application boots again. (It reloads by itself, too.)</p>\n\
            </section>\n"
}

fn excerpt(source: &Excerpt, diagnosis: &Diagnosis, is_first: bool) -> String {
    let path = Path::new(&source.file);
    let path = path.strip_prefix(&diagnosis.folder).unwrap_or(path).to_string_lossy();
    let mut text = format!(
        "<section class=\"source\">\n<h2>{}<span>:{}</span>{}</h2>\n<pre>",
        Escaped(&path),
        source.line,
        if is_first { "" } else { " <small>called from here</small>" }
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

fn table(title: &str, facts: &BTreeMap<String, String>) -> String {
    let rows = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>\n", Escaped(name), Escaped(value)));
    let rows: String = rows.collect();
    format!("<details><summary>{}</summary>\n<dl>\n{rows}</dl>\n</details>\n", Escaped(title))
}

/// `missing_gem` as people say it.
fn words_of(cause: &str) -> String {
    cause.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let with = html(&a_diagnosis(evil), "id", "nonce");
            let without = html(&a_diagnosis("plain"), "id", "nonce");
            assert!(!with.contains(evil), "{evil}");
            let tags = |page: &str| page.matches('<').count();
            assert_eq!(tags(&with), tags(&without), "{evil}");
        }
    }

    #[test]
    fn the_page_names_no_other_place() {
        let page = html(&a_diagnosis("plain"), "id", "nonce");
        for outside in ["src=", "href=", "url(", "@import", "http://", "https://"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
