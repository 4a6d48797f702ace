//! The page that a developer's browser shows instead of an application that did not boot, or of an answer that did not
//! come. It needs nothing from elsewhere and no JavaScript; everything that comes from the application or from a
//! request is escaped.

use super::editor::Editor;
use super::source::Shown;
use highball_front::refusals::page::{self, Escaped};
use highball_front::DevelopmentPages;
use highball_link::{Call, Diagnosis, Excerpt, FailedRequest, Step, ThreadPlace};
use highball_text::{json, visible_lines, visible_name, visible_path};
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hash, Hasher};

/// What browsers and other programs are shown.
pub(crate) fn pages(diagnosis: &Diagnosis) -> DevelopmentPages {
    let mut hasher = DefaultHasher::new();
    (format!("{:?}{:?}", diagnosis.error, diagnosis.sources), &diagnosis.cause).hash(&mut hasher);
    let id = format!("{:016x}", hasher.finish());
    let nonce = format!("{:016x}", RandomState::new().hash_one(&id));
    let text = visible_lines(&diagnosis.to_string()).into_owned();
    let editor = Editor::of_environment();
    let shown = Shown { diagnosis, editor: editor.as_ref() };
    DevelopmentPages {
        html: shown.html(&text, &id, &nonce).into_bytes(),
        json: json::pretty(diagnosis).into_bytes(),
        text: text.into_bytes(),
        policy: format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        id,
    }
}

impl Shown<'_> {
    /// `text`: the diagnosis as it is copied.
    fn html(&self, text: &str, id: &str, nonce: &str) -> String {
        let diagnosis = self.diagnosis;
        let name = visible_name(diagnosis.folder.file_name().unwrap_or_default());
        let cause = words_of(&diagnosis.cause);
        let about = if is_unknown(diagnosis) { &diagnosis.error.class } else { &cause };
        let what = what_happened(diagnosis);
        // A page that replaces an answer does not reload automatically: that would repeat the request.
        let (refresh, reload) = match diagnosis.step {
            Some(_) => {
                let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n";
                (refresh, include_str!("diagnosis_page.js").replace("DIAGNOSIS", id))
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
        page += &self.places();
        page += &details(diagnosis);
        let script = format!("{reload}{}", include_str!("copy_button.js"));
        let _ = write!(
            page,
            "<pre class=\"text\" tabindex=\"0\" hidden>{}</pre>\n</main>\n\
             <footer>Highball shows this page only in development, and only on this machine.{}{}</footer>\n\
             <script nonce=\"{nonce}\">\n{script}</script>\n</body>\n</html>\n",
            Escaped(text),
            diagnosis.step.map_or("", |_| " The same in a terminal: <code>highball status --details</code>."),
            if self.editor.is_some() { "" } else { EDITOR_HINT }
        );
        page
    }

    /// The source of the error, the calls that led there, and the same of the exceptions that caused it.
    fn places(&self) -> String {
        let Diagnosis { error, causes, threads, .. } = self.diagnosis;
        let mut sources: Vec<&Excerpt> = self.diagnosis.sources.iter().collect();
        let first = if sources.is_empty() { None } else { Some(sources.remove(0)) };
        let mut text = first.map(|source| self.source(source)).unwrap_or_default();
        let mut threads = threads.iter();
        let where_is = |thread: &ThreadPlace| format!("Backtrace of {}", thread.name);
        let title = threads.next().map_or("Backtrace".into(), where_is);
        text += &self.calls(&title, &error.backtrace, &mut sources);
        for cause in causes {
            let words = cause.to_string();
            let title = format!("Caused by {}", words.lines().next().unwrap_or_default());
            text += &self.calls(&title, &cause.backtrace, &mut sources);
        }
        for thread in threads {
            text += &self.calls(&where_is(thread), &thread.backtrace, &mut sources);
        }
        sources.into_iter().fold(text, |text, source| text + &self.source(source))
    }

    fn source(&self, source: &Excerpt) -> String {
        let calls = self.diagnosis.error.backtrace.iter().filter_map(|line| Call::of(line));
        let called: Vec<u32> = calls.filter(|call| call.file == source.file).map(|call| call.line).collect();
        format!(
            "<section class=\"source\">\n<h2>{}</h2>\n{}</section>\n",
            self.place(&source.file, source.line),
            self.lines(source, |line| called.contains(&line))
        )
    }
}

/// For developers whose editor is not known.
const EDITOR_HINT: &str =
    " <code>HIGHBALL_EDITOR=code</code> makes file names open VS Code; other editors work too.";

/// Whether it is an exception of a request without a known cause.
fn is_unknown(diagnosis: &Diagnosis) -> bool {
    diagnosis.step.is_none() && diagnosis.cause == "exception"
}

/// `did not boot`, and what else may happen.
fn what_happened(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.request.as_ref().map(|request| request.status) {
        None => "did not boot",
        Some(500) => "raised an exception",
        Some(502) => "sent no usable answer",
        Some(503) => "cannot take this request",
        Some(504) => "did not answer in time",
        Some(_) => "did not answer",
    }
}

/// What few people need, folded.
fn details(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if let Some(request) = &diagnosis.request {
        text += &table("Parameters", request.parameters.iter().map(|(name, value)| (name, value)));
        text += &table("Header fields", request.fields.iter().map(|(name, value)| (name, value)));
    }
    text += &list("Last output", &diagnosis.log_tail);
    text += &table("Versions", diagnosis.versions.iter());
    text + &table("Environment", diagnosis.environment.iter())
}

fn header(diagnosis: &Diagnosis, name: &str, what: &str) -> String {
    // The folder is named below; in every line of the message it would only be in the way.
    let error = diagnosis.error.to_string().replace(&format!("{}/", diagnosis.folder.display()), "");
    let (first, rest) = error.split_once('\n').unwrap_or((&error, ""));
    let mut text = format!(
        "<header>\n<button class=\"copy\" type=\"button\" hidden>Copy</button>\n\
         <p class=\"app\"><strong>{}</strong> {}</p>\n<h1>{}</h1>\n",
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

/// What to do, if there is more to say than the message does, and what happens then.
fn remedy(diagnosis: &Diagnosis) -> String {
    let then = match diagnosis.step {
        Some(_) => {
            "Reload this page to boot the application again. It also reloads when there is something new to see."
        }
        None => {
            "Reloading this page repeats the request. If the application doesn't reload its changed files, run \
             <code>highball restart</code> first."
        }
    };
    let then = format!("<p class=\"then\">{then}</p>\n{}", console(diagnosis));
    if diagnosis.remedy.is_none() && diagnosis.command.is_none() {
        return then;
    }
    let cause = if is_unknown(diagnosis) { String::new() } else { words_of(&diagnosis.cause) };
    let mut text =
        format!("<section class=\"remedy\">\n<h2>What to do <span>{}</span></h2>\n", Escaped(&cause));
    if let Some(sentence) = &diagnosis.remedy {
        let _ = writeln!(text, "<p>{}</p>", Escaped(sentence));
    }
    if let Some(command) = &diagnosis.command {
        let _ = writeln!(text, "<pre class=\"command\"><code>{}</code></pre>", Escaped(command));
        if !SYSTEM_COMMANDS.iter().any(|name| command.starts_with(name)) {
            let _ = writeln!(text, "<p class=\"where\">in {}</p>", Escaped(&visible_path(&diagnosis.folder)));
        }
    }
    text + &then + "</section>\n"
}

/// Commands that do the same in every folder.
const SYSTEM_COMMANDS: [&str; 2] = ["sudo ", "journalctl "];

/// Where a console is, for an application that has `web-console`.
fn console(diagnosis: &Diagnosis) -> &'static str {
    if diagnosis.request.is_none() || !diagnosis.versions.contains_key("web-console") {
        return "";
    }
    "<p class=\"console\">web-console adds its console to Rails' error page, and Rails has not rendered this error. \
     Write <code>binding.irb</code> above the line, and reload: a console opens in the terminal.</p>\n"
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

    fn html(diagnosis: &Diagnosis, editor: Option<&Editor>) -> String {
        Shown { diagnosis, editor }.html(&diagnosis.to_string(), "id", "nonce")
    }

    #[test]
    fn everything_is_escaped() {
        let editor = Editor::named("code").unwrap();
        for evil in
            ["<script>x()</script>", "\"><img src=x>", "'onload='x()", "</style><b>", "/a\"><b>:1:<i>"]
        {
            for (with, without) in diagnoses(evil).iter().zip(&diagnoses("plain")) {
                let (with, without) = (html(with, None), html(without, None));
                assert!(!with.contains(evil), "{evil}");
                let tags = |page: &str| page.matches('<').count();
                let places = 2 * with.matches("<small>").count();
                assert_eq!(tags(&with), tags(&without) + 2 * places, "{evil}");
            }
            for diagnosis in diagnoses(evil) {
                assert!(!html(&diagnosis, Some(&editor)).contains(evil), "{evil}");
            }
        }
    }

    #[test]
    fn calls_of_the_application_are_open_and_others_folded() {
        let mut diagnosis = a_diagnosis("plain");
        let line = |file: &str, line: u32| format!("{file}:{line}:in `call'");
        diagnosis.error.backtrace = vec![
            line("/srv/plain/app.rb", 3),
            line("/x/gems/rack-3.0/a.rb", 1),
            line("/x/gems/rack-3.0/b.rb", 2),
            line("/srv/plain/config.ru", 7),
        ];
        let editor = Editor::named("code");
        let page = html(&diagnosis, editor.as_ref());
        let link = "<a href=\"vscode://file/srv/plain/config.ru:7\">config.ru<span>:7</span></a>";
        let folded = page.find("<summary>2 calls in rack</summary>").unwrap();
        let (own, caller) = (page.find("app.rb:3").unwrap(), page.find(link).unwrap());
        let (opened, closed) =
            (page[..folded].rfind("<details>").unwrap(), page[folded..].find("</details>").unwrap());
        assert!(own < opened && caller > folded + closed, "{page}");
    }

    #[test]
    fn the_page_says_what_to_do_only_if_it_knows() {
        let [boot, run] = diagnoses("plain");
        for diagnosis in [boot, run] {
            assert!(html(&diagnosis, None).contains("What to do"));
            let silent = Diagnosis { remedy: None, command: None, ..diagnosis };
            assert!(!html(&silent, None).contains("What to do"));
        }
    }

    #[test]
    fn the_page_loads_nothing_from_another_place() {
        for diagnosis in diagnoses("plain") {
            let page = html(&diagnosis, None);
            for outside in ["src=", "href=", "url(", "@import", "http://", "https://"] {
                assert!(!page.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn only_the_page_of_a_boot_looks_again_by_itself() {
        let [boot, run] = diagnoses("plain").map(|diagnosis| html(&diagnosis, None));
        assert!(boot.contains("location.reload") && boot.contains("http-equiv"));
        assert!(!run.contains("location.reload") && !run.contains("http-equiv"));
    }
}
