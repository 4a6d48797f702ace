//! The forms that values of options have: how each is written, read, and named in the help and the manual. A value that may
//! also be `none` or `auto`, or be given several times, has a form around the value's.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::access_format::{self, LineFormat};
use crate::companions;
use crate::error::{ConfigError, Origin};
use crate::network::{networks, Network};
use crate::ownership::Starter;
use crate::rate_limit;
use crate::redirects;
use crate::response_headers;
use crate::settings::{
    Affinity, Companion, HeaderRule, MemoryBound, PathPattern, PathTimeout, RateRule, Redirect, ReforkAfter,
    RunsAs, SentFolder,
};
use crate::spelling::guess;
use crate::threads::Threads;
use crate::traces;
use crate::value::{self, duration_text, size_text, Address};
use highball_cgroups::CpuMax;

/// One value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

impl Raw {
    /// An error that names the place this value was given at.
    pub(crate) fn wrong(&self, problem: String) -> ConfigError {
        ConfigError::Value { origin: self.origin.clone(), problem }
    }

    /// Where relative paths begin: those of a file where it says, all others at the current folder.
    pub(crate) fn folder<'a>(&'a self, current: &'a Path) -> &'a Path {
        match &self.origin {
            Origin::File { folder, .. } => folder,
            _ => current,
        }
    }

    /// The absolute path that it is.
    fn path(&self, place: &Place<'_>) -> Result<PathBuf, String> {
        if self.text.is_empty() {
            return Err("a path is missing".into());
        }
        Ok(self.folder(&place.current).join(&self.text))
    }

    pub(crate) fn read<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        parse(&self.text).map_err(|problem| self.wrong(problem))
    }
}

/// What reading a value needs to know beside its text.
pub(crate) struct Place<'a> {
    /// Where relative paths begin that stand in no file.
    pub(crate) current: PathBuf,
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
}

/// How a value is written in a configuration file, and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notation {
    /// As a text.
    Text,
    /// As a number.
    Number,
    /// As `on` or `off`, in the file also `true` or `false`.
    Switch,
    /// The same; on the command line, the option's name alone means `on`.
    Flag,
    /// As a list, or the option several times.
    List,
    /// The same, or as a table.
    Table,
    /// As a list of texts or of tables: `[[name]]`.
    Entries,
}

/// How values of a form are written.
pub(crate) trait Written {
    /// What stands for the value in the help.
    fn metavar(&self) -> String;

    /// What it may be, for the manual, where the option's text does not say it.
    fn range(&self) -> Option<String> {
        None
    }

    fn notation(&self) -> Notation {
        Notation::Text
    }

    /// Values that shells complete.
    fn suggestions(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether this text is a path, and not a keyword. Relative ones begin at a folder.
    fn is_path(&self, _text: &str) -> bool {
        false
    }
}

/// The form of a value.
pub(crate) trait Form: Written {
    /// What is read.
    type Value;

    /// Reads one text.
    ///
    /// # Errors
    /// What is wrong with it, and what it may be.
    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<Self::Value, String>;

    /// Reads what counts of these: the last one.
    ///
    /// # Errors
    /// It cannot be understood, or cannot be; where it was given.
    fn read_all(&self, raws: &[Raw], place: &Place<'_>) -> Result<Option<Self::Value>, ConfigError> {
        let read = |raw: &Raw| self.read(raw, place).map_err(|problem| raw.wrong(problem));
        raws.last().map(read).transpose()
    }
}

/// A form that a function reads from the text alone.
pub(crate) struct Text<T> {
    metavar: &'static str,
    range: Option<&'static str>,
    suggestions: &'static [&'static str],
    read: fn(&str) -> Result<T, String>,
}

const fn text<T>(metavar: &'static str, read: fn(&str) -> Result<T, String>) -> Text<T> {
    Text { metavar, range: None, suggestions: &[], read }
}

impl<T> Text<T> {
    const fn range(self, range: &'static str) -> Self {
        Text { range: Some(range), ..self }
    }

    const fn suggesting(self, suggestions: &'static [&'static str]) -> Self {
        Text { suggestions, ..self }
    }
}

impl<T> Written for Text<T> {
    fn metavar(&self) -> String {
        self.metavar.into()
    }

    fn range(&self) -> Option<String> {
        self.range.map(Into::into)
    }

    fn suggestions(&self) -> Vec<&'static str> {
        self.suggestions.to_vec()
    }
}

impl<T> Form for Text<T> {
    type Value = T;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<T, String> {
        (self.read)(&raw.text)
    }
}

/// Processes of a Procfile.
pub(crate) const PROCFILE: Text<Vec<String>> = text("NAMES", companions::procfile_names);
/// Free text without blanks.
pub(crate) const WORD: Text<String> = text("NAME", value::word);
/// A Rails environment. An application may have others.
pub(crate) const ENVIRONMENT: Text<String> =
    WORD.suggesting(&["development", "production", "staging", "test"]);
/// Text that can stand between quotes in a header field.
pub(crate) const QUOTABLE: Text<String> = text("TEXT", value::quotable);
/// A user of this machine.
pub(crate) const USER: Text<RunsAs> = text("NAME", |text| Starter::now().runs_as(text));
/// The path of a URL, with or without a query.
pub(crate) const URL_PATH: Text<String> = text("PATH", value::url_path);
/// The URL of a collector of traces.
pub(crate) const COLLECTOR: Text<String> = text("URL", traces::collector);
/// The beginning of a URL's path.
pub(crate) const PREFIX: Text<String> = text("PATH", value::prefix);
/// A host name.
pub(crate) const HOST: Text<String> = text("HOST", value::host).range("host names without ports, or `*`");
/// One host name.
pub(crate) const ONE_HOST: Text<String> = text("HOST", value::one_host).range("a host name without a port");
/// Where requests for some paths are sent.
pub(crate) const REDIRECT: Text<Redirect> = text("FROM TO [STATUS]", redirects::redirect)
    .range("`FROM TO`, or `FROM TO STATUS`; `*` may stand at the end of both paths");
/// A change to the header fields of responses.
pub(crate) const HEADER_RULE: Text<HeaderRule> = text("[PATH] NAME: VALUE", response_headers::header_rule)
    .range("`NAME: VALUE`, `+NAME: VALUE` or `-NAME`, with a path before it");
/// A limit on requests.
pub(crate) const RATE_LIMIT: Text<RateRule> = text("[PATH] N/UNIT", rate_limit::rate_limit)
    .range("`N/UNIT`, with a path before and `burst N` behind it; the units are `s`, `min`, `h` and `d`");
/// A name that an authority issues certificates for.
pub(crate) const DOMAIN: Text<String> = text("NAME|hosts", value::domain_or_hosts)
    .range("names of sites, such as `blog.example.org`, or `hosts`");
/// An e-mail address.
pub(crate) const EMAIL: Text<String> = text("ADDRESS", value::email).range("e-mail addresses");
/// Addresses of peers.
pub(crate) const NETWORKS: Text<Vec<Network>> = text("ADDR", networks)
    .range("IP addresses, networks such as `10.0.0.0/8`, `loopback`, `private`, `none`");
/// A variable with its value.
pub(crate) const VARIABLE: Text<(String, String)> = text("NAME=VALUE", value::variable);
/// The name of a variable, or its beginning with `*` after it.
pub(crate) const VARIABLE_NAME: Text<String> =
    text("NAME", value::variable_name).range("names of variables; `*` may stand at the end");
/// A time for requests to some paths.
pub(crate) const PATH_TIMEOUT: Text<PathTimeout> = text("PATH=TIME", value::path_timeout)
    .range("`PATH=TIME`; `*` may stand at the end of the path, and `none` in the place of a time");
/// Some paths.
pub(crate) const PATH_PATTERN: Text<PathPattern> =
    text("PATH", value::path_pattern).range("paths; `*` may stand at the end");
/// A file for maintenance, below an application's folder or absolute.
pub(crate) const MAINTENANCE_FILE: Text<PathBuf> = text("PATH", value::maintenance_file);
/// The name of a Ruby class.
pub(crate) const CLASS: Text<String> = text("CLASS", value::class_name).range("the name of a Ruby class");
/// A folder of files that an application sends.
pub(crate) const SENT_FOLDER: Text<SentFolder> =
    text("PATH", value::sent_folder).range("`FOLDER`, or `PREFIX=FOLDER` for URIs that begin with `PREFIX`");
/// The name of a header field; read as its env key.
pub(crate) const HEADER: Text<String> = text("FIELD", value::header_key).range("the name of a header field");
/// How the requests of a session are known.
pub(crate) const AFFINITY: Text<Affinity> = text("cookie|header:FIELD", value::affinity);
/// The form of the lines of an access log.
pub(crate) const LINE_FORMAT: Text<LineFormat> = text("FORM", access_format::line_format)
    .range("`combined`, `json`, or a text with names of fields in braces");
/// A percentage, in parts of [`WHOLE`](crate::access_format::WHOLE).
pub(crate) const SHARE: Text<u32> = text("PERCENT", access_format::share).range("`0%` to `100%`");
/// A number of threads, or a range of numbers.
pub(crate) const THREADS: Text<Threads> =
    text("N|N..N", value::threads).range("1 to 256, or a range such as `3..32`");
/// CPUs such as `1.5`.
pub(crate) const CPUS: Text<CpuMax> = text("N", value::cpus).range("0.01 to 1024");
/// How much memory something may have.
pub(crate) const MEMORY: Text<MemoryBound> = text("SIZE|N%|none", |text| value::memory_bound(text, false))
    .range("a size, a share of the memory such as `25%`, or `none`");
/// The same, where Highball may decide it.
pub(crate) const MEMORY_OR_AUTO: Text<MemoryBound> =
    text("SIZE|N%|auto|none", |text| value::memory_bound(text, true))
        .range("a size, a share of the memory such as `25%`, `auto`, or `none`");
/// When workers are forked again.
pub(crate) const REFORK: Text<ReforkAfter> = text("auto|N,N,…|off", value::refork_after)
    .range("`auto`, numbers from 1 to 1000000000 with commas between them, or `off`");

/// A form with paths, of which relative ones begin at a folder.
pub(crate) struct InFolder<T> {
    metavar: &'static str,
    is_path: fn(&str) -> bool,
    read: fn(&Raw, &Place<'_>) -> Result<T, String>,
}

impl<T> Written for InFolder<T> {
    fn metavar(&self) -> String {
        self.metavar.into()
    }

    fn is_path(&self, text: &str) -> bool {
        (self.is_path)(text)
    }
}

impl<T> Form for InFolder<T> {
    type Value = T;

    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<T, String> {
        (self.read)(raw, place)
    }
}

/// A file or folder that need not be there.
pub(crate) const PATH: InFolder<PathBuf> = InFolder { metavar: "PATH", is_path: |_| true, read: Raw::path };
/// A folder that can be written to.
pub(crate) const WRITABLE_FOLDER: InFolder<PathBuf> = InFolder {
    metavar: "PATH",
    is_path: |_| true,
    read: |raw, place| value::writable_folder(raw.path(place)?),
};
/// A program: a path, or a name that is looked up in `PATH`.
pub(crate) const PROGRAM: InFolder<PathBuf> = InFolder {
    metavar: "PATH",
    is_path: |text| text.contains('/'),
    read: |raw, place| value::program(&raw.text, raw.path(place)?, place.env),
};
/// A file for a log, `-` for standard output, or `none`.
pub(crate) const LOG_FILE: InFolder<Option<PathBuf>> = InFolder {
    metavar: "PATH",
    is_path: |text| !value::is_word_for_log(text),
    read: |raw, place| Ok(value::log_file(&raw.text, raw.path(place)?)),
};
/// An address to listen on, which may be a Unix socket's.
pub(crate) const LISTEN: InFolder<Address> = InFolder {
    metavar: "ADDR",
    is_path: |_| false,
    read: |raw, place| value::address(&raw.text, raw.folder(&place.current)),
};

/// A whole number in a range.
pub(crate) struct Count<T>(pub(crate) RangeInclusive<T>);

impl<T: Display> Written for Count<T> {
    fn metavar(&self) -> String {
        "N".into()
    }

    fn range(&self) -> Option<String> {
        Some(format!("{} to {}", self.0.start(), self.0.end()))
    }

    fn notation(&self) -> Notation {
        Notation::Number
    }
}

impl<T: Display + FromStr + PartialOrd> Form for Count<T> {
    type Value = T;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<T, String> {
        value::count(&raw.text, &self.0)
    }
}

/// Bytes in a range.
pub(crate) struct Size(pub(crate) RangeInclusive<u64>);

impl Written for Size {
    fn metavar(&self) -> String {
        "SIZE".into()
    }

    fn range(&self) -> Option<String> {
        Some(format!("{} to {}", size_text(*self.0.start()), size_text(*self.0.end())))
    }
}

impl Form for Size {
    type Value = u64;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<u64, String> {
        value::size(&raw.text, &self.0)
    }
}

/// A span of time in a range.
pub(crate) struct Time(pub(crate) RangeInclusive<Duration>);

impl Written for Time {
    fn metavar(&self) -> String {
        "TIME".into()
    }

    fn range(&self) -> Option<String> {
        Some(format!("{} to {}", duration_text(*self.0.start()), duration_text(*self.0.end())))
    }
}

impl Form for Time {
    type Value = Duration;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<Duration, String> {
        value::duration(&raw.text, &self.0)
    }
}

/// `on` or `off`; [`Notation::Flag`] where the option's name alone means `on`.
pub(crate) struct Switch(Notation);

pub(crate) const SWITCH: Switch = Switch(Notation::Switch);
pub(crate) const FLAG: Switch = Switch(Notation::Flag);

impl Written for Switch {
    fn metavar(&self) -> String {
        "on|off".into()
    }

    fn notation(&self) -> Notation {
        self.0
    }

    fn suggestions(&self) -> Vec<&'static str> {
        match self.0 {
            Notation::Flag => vec!["on", "off"],
            _ => Vec::new(),
        }
    }
}

impl Form for Switch {
    type Value = bool;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<bool, String> {
        value::switch(&raw.text)
    }
}

/// One of these words, and what it stands for.
pub(crate) struct OneOf<T: 'static>(pub(crate) &'static [(&'static str, T)]);

impl<T> OneOf<T> {
    fn words(&self) -> String {
        self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

impl<T> Written for OneOf<T> {
    fn metavar(&self) -> String {
        "FORM".into()
    }

    fn range(&self) -> Option<String> {
        Some(self.words())
    }

    fn suggestions(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

impl<T: Copy> Form for OneOf<T> {
    type Value = T;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<T, String> {
        let text = &raw.text;
        let found = self.0.iter().find(|(word, _)| word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let guess = guess(text, self.0.iter().map(|(word, _)| *word));
            format!("`{text}` is not one of: {}{guess}", self.words())
        })
    }
}

/// The value, or `none`.
pub(crate) struct OrNone<F>(pub(crate) F);

impl<F: Written> Written for OrNone<F> {
    fn metavar(&self) -> String {
        format!("{}|none", self.0.metavar())
    }

    fn range(&self) -> Option<String> {
        self.0.range().map(|range| format!("{range}, or `none`"))
    }

    fn is_path(&self, text: &str) -> bool {
        text != "none" && self.0.is_path(text)
    }
}

impl<F: Form> Form for OrNone<F> {
    type Value = Option<F::Value>;

    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<Self::Value, String> {
        if raw.text == "none" {
            return Ok(None);
        }
        self.0.read(raw, place).map(Some)
    }
}

/// The value, or `off`; `none` and `0` are the same.
pub(crate) struct OrOff<F>(pub(crate) F);

impl<F: Written> Written for OrOff<F> {
    fn metavar(&self) -> String {
        format!("{}|off", self.0.metavar())
    }

    fn range(&self) -> Option<String> {
        self.0.range().map(|range| format!("{range}, or `off`"))
    }
}

impl<F: Form> Form for OrOff<F> {
    type Value = Option<F::Value>;

    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<Self::Value, String> {
        match &*raw.text {
            "off" | "none" | "0" => Ok(None),
            _ => self.0.read(raw, place).map(Some).map_err(|problem| format!("{problem}, or off")),
        }
    }
}

/// The value, or `auto`.
pub(crate) struct OrAuto<F>(pub(crate) F);

impl<F: Written> Written for OrAuto<F> {
    fn metavar(&self) -> String {
        format!("{}|auto", self.0.metavar())
    }

    fn range(&self) -> Option<String> {
        self.0.range().map(|range| format!("{range}, or `auto`"))
    }

    fn notation(&self) -> Notation {
        self.0.notation()
    }
}

impl<F: Form> Form for OrAuto<F> {
    type Value = Option<F::Value>;

    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<Self::Value, String> {
        if raw.text == "auto" {
            return Ok(None);
        }
        self.0.read(raw, place).map(Some).map_err(|problem| format!("{problem}, or auto"))
    }
}

/// Values of an option that may be given several times.
pub(crate) struct Several<F> {
    form: F,
    notation: Notation,
    /// The largest number of them, and what they are called in an error.
    most: (usize, &'static str),
}

pub(crate) const fn several<F>(form: F) -> Several<F> {
    Several { form, notation: Notation::List, most: (usize::MAX, "") }
}

/// The same, with a largest number of folders, paths or the like.
pub(crate) const fn at_most<F>(most: usize, what: &'static str, form: F) -> Several<F> {
    Several { form, notation: Notation::List, most: (most, what) }
}

/// The same, of values that may also stand in a table.
pub(crate) const fn table<F>(most: usize, what: &'static str, form: F) -> Several<F> {
    Several { form, notation: Notation::Table, most: (most, what) }
}

impl<F: Written> Written for Several<F> {
    fn metavar(&self) -> String {
        self.form.metavar()
    }

    fn range(&self) -> Option<String> {
        self.form.range()
    }

    fn notation(&self) -> Notation {
        self.notation
    }

    fn is_path(&self, text: &str) -> bool {
        self.form.is_path(text)
    }
}

impl<F: Form> Form for Several<F> {
    type Value = Vec<F::Value>;

    fn read(&self, raw: &Raw, place: &Place<'_>) -> Result<Self::Value, String> {
        self.form.read(raw, place).map(|value| vec![value])
    }

    fn read_all(&self, raws: &[Raw], place: &Place<'_>) -> Result<Option<Self::Value>, ConfigError> {
        let (most, what) = self.most;
        if let Some(raw) = raws.get(most) {
            return Err(raw.wrong(format!("there are more than {most} {what}")));
        }
        let read = |raw: &Raw| self.form.read(raw, place).map_err(|problem| raw.wrong(problem));
        raws.iter().map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// The companions of an application.
pub(crate) struct Companions;

pub(crate) const COMPANIONS: Companions = Companions;

impl Written for Companions {
    fn metavar(&self) -> String {
        "NAME=COMMAND".into()
    }

    fn range(&self) -> Option<String> {
        Some("`NAME=COMMAND`; in a file also `[[process]]`".into())
    }

    fn notation(&self) -> Notation {
        Notation::Entries
    }
}

impl Form for Companions {
    type Value = Vec<Companion>;

    fn read(&self, raw: &Raw, _place: &Place<'_>) -> Result<Vec<Companion>, String> {
        companions::companion(&raw.text).map(|companion| vec![companion])
    }

    fn read_all(&self, raws: &[Raw], _place: &Place<'_>) -> Result<Option<Vec<Companion>>, ConfigError> {
        let mut all: Vec<Companion> = Vec::new();
        for raw in raws {
            let wrong = |problem| raw.wrong(problem);
            all.push(companions::companion(&raw.text).map_err(wrong)?);
            companions::check(&all).map_err(wrong)?;
        }
        Ok(Some(all))
    }
}
