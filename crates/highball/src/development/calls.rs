//! A backtrace on the page: calls of the application open, with their source where there is some, and all others folded.

use super::source::Shown;
use highball_front::refusals::page::Escaped;
use highball_link::{Call, Excerpt};

/// A run of calls of one kind.
enum Run<'a> {
    Own(Call<'a>, &'a str),
    Others(Vec<&'a str>),
}

impl Shown<'_> {
    /// The calls of a backtrace, as a section with this title. Nothing if there are none. `sources`: excerpts that the page does
    /// not show yet; a call takes its own.
    pub(super) fn calls(&self, title: &str, backtrace: &[String], sources: &mut Vec<&Excerpt>) -> String {
        if backtrace.is_empty() {
            return String::new();
        }
        let runs = self.runs(backtrace);
        let title = Escaped(title);
        if let [Run::Others(lines)] = runs.as_slice() {
            return format!("<details><summary>{title}</summary>\n{}</details>\n", self.folded(lines));
        }
        let items = runs.iter().map(|run| match run {
            Run::Own(call, line) => self.own(call, line, sources),
            Run::Others(lines) => format!(
                "<li class=\"others\"><details><summary>{} in {}</summary>\n{}</details></li>\n",
                if lines.len() == 1 { "1 call".into() } else { format!("{} calls", lines.len()) },
                Escaped(&owners(lines)),
                self.folded(lines)
            ),
        });
        let items: String = items.collect();
        format!("<section class=\"calls\">\n<h2>{title}</h2>\n<ol>\n{items}</ol>\n</section>\n")
    }

    fn runs<'b>(&self, backtrace: &'b [String]) -> Vec<Run<'b>> {
        let mut runs: Vec<Run<'b>> = Vec::new();
        for line in backtrace {
            match (
                Call::of(line).filter(|call| call.is_of_application(&self.diagnosis.folder)),
                runs.last_mut(),
            ) {
                (Some(call), _) => runs.push(Run::Own(call, line)),
                (None, Some(Run::Others(lines))) => lines.push(line),
                (None, _) => runs.push(Run::Others(vec![line])),
            }
        }
        runs
    }

    /// A call of the application, with its source.
    fn own(&self, call: &Call<'_>, line: &str, sources: &mut Vec<&Excerpt>) -> String {
        let place = self.place(call.file, call.line);
        let found = sources.iter().position(|source| source.file == call.file && source.line == call.line);
        let lines = found.map_or(String::new(), |at| self.lines(sources.remove(at), |_| false));
        let (title, label) = (Escaped(line), Escaped(call.label));
        format!("<li title=\"{title}\">{place} <small>{label}</small>\n{lines}</li>\n")
    }

    fn folded(&self, lines: &[&str]) -> String {
        let lines = lines.iter().map(|line| match Call::of(line) {
            Some(call) => {
                format!("{} <small>{}</small>\n", self.place(call.file, call.line), Escaped(call.label))
            }
            None => format!("{}\n", Escaped(line)),
        });
        format!("<pre>{}</pre>\n", lines.collect::<String>())
    }
}

/// What these calls are in: `rack, activerecord and Ruby`, in their order, and each once.
fn owners(lines: &[&str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in lines {
        let name = owner(Call::of(line).map_or(line, |call| call.file));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.join(""),
    }
}

/// The gem that a file is of, by its path.
fn owner(file: &str) -> &str {
    let after = |folder: &str| file.rsplit_once(folder).and_then(|(_, rest)| rest.split('/').next());
    if let Some(gem) = after("/gems/") {
        let version =
            gem.rmatch_indices('-').find(|(at, _)| gem[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
        return version.map_or(gem, |(at, _)| &gem[..at]);
    }
    // Debian's packages of gems.
    if let Some(name) = after("/vendor_ruby/") {
        return name.strip_suffix(".rb").unwrap_or(name);
    }
    match () {
        () if file.starts_with('(') => "eval",
        () if file.starts_with("<internal:") || file.contains("/lib/ruby/") => "Ruby",
        () => "other files",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_by_their_gems() {
        let lines = [
            "/usr/share/rubygems-integration/all/gems/rack-2.2.7/lib/rack/builder.rb:1:in `call'",
            "/home/me/.gems/ruby/3.1.0/gems/rack-session-2.0.0.rc1/lib/x.rb:2:in `call'",
            "/usr/lib/ruby/vendor_ruby/active_record/base.rb:3:in `y'",
            "/usr/lib/ruby/vendor_ruby/sinatra.rb:3:in `y'",
            "/usr/lib/ruby/3.1.0/net/http.rb:4:in `z'",
            "<internal:kernel>:18:in `loop'",
            "(eval):1:in `w'",
            "no place",
        ];
        assert_eq!(owners(&lines), "rack, rack-session, active_record, sinatra, Ruby, eval and other files");
        assert_eq!(owners(&lines[..1]), "rack");
        assert_eq!(owners(&[]), "");
    }
}
