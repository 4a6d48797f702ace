//! The forms that values of options have. Each says how a text is read, and has the function that stores what was read in
//! the option's typed field.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::access_format::{self, LineFormat};
use crate::error::{ConfigError, Origin};
use crate::fields::Fields;
use crate::network::{networks, Network};
use crate::ownership::Starter;
use crate::settings::{MemoryBound, PathTimeout, ReforkAfter, RunsAs, SentFolder};
use crate::spelling::guess;
use crate::value::{self, Address};
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
    pub(crate) fn path(&self, current: &Path) -> Result<PathBuf, String> {
        if self.text.is_empty() {
            return Err("a path is missing".into());
        }
        Ok(self.folder(current).join(&self.text))
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

/// What the value of an option looks like, and where it goes.
pub(crate) enum Form {
    /// An address to listen on; may be given several times.
    Addresses(fn(&mut Fields, Vec<Address>)),
    /// Addresses of peers; may be given several times.
    Networks(fn(&mut Fields, Vec<Network>)),
    /// A whole number in a range.
    Count(RangeInclusive<u64>, fn(&mut Fields, u64) -> Result<(), String>),
    /// A whole number in a range, or `auto`.
    CountOrAuto(RangeInclusive<u64>, fn(&mut Fields, Option<u64>) -> Result<(), String>),
    /// A whole number in a range, or two with a colon between them, of which the larger one counts.
    CountOrRange(RangeInclusive<u64>, fn(&mut Fields, u64) -> Result<(), String>),
    /// Bytes in a range.
    Size(RangeInclusive<u64>, fn(&mut Fields, usize)),
    /// Bytes in a range, or `none`.
    SizeOrNone(RangeInclusive<u64>, fn(&mut Fields, Option<u64>)),
    /// CPUs such as `1.5`, or `none`.
    CpusOrNone(fn(&mut Fields, Option<CpuMax>)),
    /// Bytes, a share of the memory such as `25%`, or `none`; `auto`, where the first value is true.
    Memory(bool, fn(&mut Fields, MemoryBound)),
    /// A span of time in a range.
    Duration(RangeInclusive<Duration>, fn(&mut Fields, Duration)),
    /// A span of time in a range, or `none`.
    DurationOrNone(RangeInclusive<Duration>, fn(&mut Fields, Option<Duration>)),
    /// A file or folder.
    Path(fn(&mut Fields, PathBuf)),
    /// A file, or `none`.
    PathOrNone(fn(&mut Fields, Option<PathBuf>)),
    /// Files; may be given several times.
    Paths(fn(&mut Fields, Vec<PathBuf>)),
    /// A folder that can be written to.
    WritableFolder(fn(&mut Fields, PathBuf)),
    /// A program: a path, or a name that is looked up in `PATH`.
    Program(fn(&mut Fields, PathBuf)),
    /// A file for a log, `-` for standard output, or `none`.
    LogFile(fn(&mut Fields, Option<PathBuf>)),
    /// Text that can stand between quotes in a header field.
    Phrase(fn(&mut Fields, String)),
    /// Free text without blanks.
    Word(fn(&mut Fields, String)),
    /// The environment of the application: a word, on which defaults of other options depend.
    Environment(fn(&mut Fields, String)),
    /// A user of this machine.
    User(fn(&mut Fields, RunsAs)),
    /// The path of a URL, with or without a query.
    UrlPath(fn(&mut Fields, String)),
    /// Paths of URLs; may be given several times.
    UrlPaths(fn(&mut Fields, Vec<String>)),
    /// One of these words.
    OneOf(&'static [Choice]),
    /// `on` or `off`.
    Switch(fn(&mut Fields, bool)),
    /// The same; on the command line, its name alone means `on`.
    Flag(fn(&mut Fields, bool)),
    /// When workers are forked again: whole numbers in a range, with commas between them, `auto`, or `off`. Where it was
    /// given is stored, too.
    Refork(RangeInclusive<u64>, fn(&mut Fields, ReforkAfter, &Origin)),
    /// Names that an authority issues certificates for; may be given several times.
    Domains(fn(&mut Fields, Vec<String>)),
    /// E-mail addresses; may be given several times.
    Emails(fn(&mut Fields, Vec<String>)),
    /// Host names; may be given several times.
    Hosts(fn(&mut Fields, Vec<String>)),
    /// The beginning of a URL's path.
    Prefix(fn(&mut Fields, String)),
    /// `NAME=VALUE`; may be given several times.
    Variables(fn(&mut Fields, BTreeMap<String, String>)),
    /// Names of variables, or their beginnings with `*` after them; may be given several times.
    VariableNames(fn(&mut Fields, Vec<String>)),
    /// `PATH=TIME`; may be given several times.
    PathTimeouts(fn(&mut Fields, Vec<PathTimeout>)),
    /// The name of a header field, or `none`; stored as its env key.
    HeaderOrNone(fn(&mut Fields, Option<String>)),
    /// The form of the lines of an access log.
    LineFormat(fn(&mut Fields, LineFormat)),
    /// A percentage, in parts of [`WHOLE`](crate::access_format::WHOLE).
    Share(fn(&mut Fields, u32)),
    /// `FOLDER` or `PREFIX=FOLDER`; may be given several times.
    SentFolders(fn(&mut Fields, Vec<SentFolder>)),
}

/// One of the words that an option may have.
pub(crate) struct Choice {
    pub(crate) word: &'static str,
    pub(crate) set: fn(&mut Fields),
}

impl Form {
    /// Reads the values that count, and stores them. Of several for an option that does not repeat the last one counts.
    ///
    /// # Errors
    /// One of them cannot be understood, or cannot be; where it was given.
    pub(crate) fn store(&self, raws: &[Raw], to: &mut Fields, place: &Place<'_>) -> Result<(), ConfigError> {
        let at_most = |most: usize, what: &str| match raws.get(most) {
            Some(raw) => Err(raw.wrong(format!("there are more than {most} {what}"))),
            None => Ok(()),
        };
        match self {
            Form::Addresses(set) => {
                let folder = |raw: &Raw| raw.folder(&place.current).to_owned();
                set(to, all(raws, |raw| value::address(&raw.text, &folder(raw)))?);
            }
            Form::Networks(set) => {
                set(to, all::<_, Vec<_>>(raws, |raw| networks(&raw.text))?.concat());
            }
            Form::Domains(set) => set(to, all(raws, |raw| value::domain_or_hosts(&raw.text))?),
            Form::Emails(set) => set(to, all(raws, |raw| value::email(&raw.text))?),
            Form::Hosts(set) => set(to, all(raws, |raw| value::host(&raw.text))?),
            Form::Variables(set) => set(to, all(raws, |raw| value::variable(&raw.text))?),
            Form::VariableNames(set) => set(to, all(raws, |raw| value::variable_name(&raw.text))?),
            Form::PathTimeouts(set) => {
                at_most(value::PATH_TIMEOUTS, "paths")?;
                set(to, all(raws, |raw| value::path_timeout(&raw.text))?);
            }
            Form::SentFolders(set) => {
                at_most(value::SENT_FOLDERS, "folders")?;
                set(to, all(raws, |raw| value::sent_folder(&raw.text))?);
            }
            Form::Paths(set) => set(to, all(raws, |raw| raw.path(&place.current))?),
            Form::UrlPaths(set) => set(to, all(raws, |raw| value::url_path(&raw.text))?),
            Form::Share(_)
            | Form::Count(..)
            | Form::CountOrRange(..)
            | Form::CountOrAuto(..)
            | Form::Size(..)
            | Form::SizeOrNone(..)
            | Form::CpusOrNone(_)
            | Form::Memory(..)
            | Form::Duration(..)
            | Form::DurationOrNone(..) => self.store_number(raws, to)?,
            Form::LineFormat(_)
            | Form::HeaderOrNone(_)
            | Form::Path(_)
            | Form::PathOrNone(_)
            | Form::Phrase(_)
            | Form::WritableFolder(_)
            | Form::Program(_)
            | Form::LogFile(_)
            | Form::Word(_)
            | Form::Environment(_)
            | Form::User(_)
            | Form::UrlPath(_)
            | Form::OneOf(_)
            | Form::Switch(_)
            | Form::Flag(_)
            | Form::Refork(..)
            | Form::Prefix(_) => self.store_word(raws, to, place)?,
        }
        Ok(())
    }

    /// The same for what is no number, and does not repeat.
    fn store_word(&self, raws: &[Raw], to: &mut Fields, place: &Place<'_>) -> Result<(), ConfigError> {
        let path = |raw: &Raw| raw.path(&place.current);
        match self {
            Form::LineFormat(set) => {
                put(raws, |raw| access_format::line_format(&raw.text), |value| set(to, value))?;
            }
            Form::HeaderOrNone(set) => put(raws, |raw| value::header_key(&raw.text), |key| set(to, key))?,
            Form::Path(set) => put(raws, path, |value| set(to, value))?,
            Form::PathOrNone(set) => {
                put(raws, |raw| unless_none(&raw.text, |_| path(raw)), |value| set(to, value))?;
            }
            Form::Phrase(set) => put(raws, |raw| value::phrase(&raw.text), |value| set(to, value))?,
            Form::WritableFolder(set) => {
                put(raws, |raw| value::writable_folder(path(raw)?), |value| set(to, value))?
            }
            Form::Program(set) => {
                put(raws, |raw| value::program(&raw.text, path(raw)?, place.env), |value| set(to, value))?;
            }
            Form::LogFile(set) => {
                put(raws, |raw| Ok(value::log_file(&raw.text, path(raw)?)), |value| set(to, value))?
            }
            Form::Word(set) | Form::Environment(set) => {
                put(raws, |raw| value::word(&raw.text), |value| set(to, value))?
            }
            Form::User(set) => put(raws, |raw| Starter::now().runs_as(&raw.text), |value| set(to, value))?,
            Form::UrlPath(set) => put(raws, |raw| value::url_path(&raw.text), |value| set(to, value))?,
            Form::OneOf(choices) => {
                put(raws, |raw| self.chosen(choices, &raw.text), |choice| (choice.set)(to))?
            }
            Form::Switch(set) | Form::Flag(set) => {
                put(raws, |raw| value::switch(&raw.text), |value| set(to, value))?
            }
            Form::Refork(range, set) => {
                put(
                    raws,
                    |raw| Ok((value::refork_after(&raw.text, range)?, &raw.origin)),
                    |(after, origin)| set(to, after, origin),
                )?;
            }
            Form::Prefix(set) => put(raws, |raw| value::prefix(&raw.text), |value| set(to, value))?,
            _ => unreachable!("`store` has read it"),
        }
        Ok(())
    }

    /// The same for a number: a count, a size or a time.
    fn store_number(&self, raws: &[Raw], to: &mut Fields) -> Result<(), ConfigError> {
        match self {
            Form::Share(set) => put(raws, |raw| access_format::share(&raw.text), |value| set(to, value))?,
            Form::Count(range, set) => one(raws, |raw| set(to, value::count(&raw.text, range)?))?,
            Form::CountOrRange(range, set) => {
                one(raws, |raw| set(to, value::count_or_range(&raw.text, range)?))?;
            }
            Form::CountOrAuto(range, set) => {
                one(raws, |raw| set(to, value::count_or_auto(&raw.text, range)?))?;
            }
            Form::Size(range, set) => {
                put(raws, |raw| value::bytes(&raw.text, range), |value| set(to, value))?
            }
            Form::SizeOrNone(range, set) => {
                put(
                    raws,
                    |raw| unless_none(&raw.text, |text| value::size(text, range)),
                    |value| set(to, value),
                )?;
            }
            Form::CpusOrNone(set) => {
                put(raws, |raw| unless_none(&raw.text, value::cpus), |value| set(to, value))?;
            }
            Form::Memory(may_be_auto, set) => {
                put(raws, |raw| value::memory_bound(&raw.text, *may_be_auto), |value| set(to, value))?;
            }
            Form::Duration(range, set) => {
                put(raws, |raw| value::duration(&raw.text, range), |value| set(to, value))?
            }
            Form::DurationOrNone(range, set) => {
                put(
                    raws,
                    |raw| unless_none(&raw.text, |text| value::duration(text, range)),
                    |value| set(to, value),
                )?;
            }
            _ => unreachable!("`store` has read it"),
        }
        Ok(())
    }

    fn chosen<'a>(&self, choices: &'a [Choice], text: &str) -> Result<&'a Choice, String> {
        let found = choices.iter().find(|choice| choice.word == text);
        found.ok_or_else(|| {
            let guess = guess(text, choices.iter().map(|choice| choice.word));
            format!("`{text}` is none of: {}{guess}", self.words())
        })
    }

    /// The words that may be chosen from, with commas between them.
    pub(crate) fn words(&self) -> String {
        let Form::OneOf(choices) = self else { return String::new() };
        choices.iter().map(|choice| choice.word).collect::<Vec<_>>().join(", ")
    }

    /// Whether it may be given several times.
    pub(crate) fn repeats(&self) -> bool {
        matches!(
            self,
            Form::Addresses(_)
                | Form::Networks(_)
                | Form::Paths(_)
                | Form::UrlPaths(_)
                | Form::Hosts(_)
                | Form::Domains(_)
                | Form::Emails(_)
                | Form::Variables(_)
                | Form::VariableNames(_)
                | Form::SentFolders(_)
                | Form::PathTimeouts(_)
        )
    }

    /// Whether a value is, or may be, a path.
    pub(crate) fn is_path(&self) -> bool {
        matches!(
            self,
            Form::Path(_)
                | Form::PathOrNone(_)
                | Form::Paths(_)
                | Form::WritableFolder(_)
                | Form::Program(_)
                | Form::LogFile(_)
        )
    }

    /// Whether this text is a path, and not a keyword of the option.
    pub(crate) fn takes_as_path(&self, text: &str) -> bool {
        match self {
            Form::Program(_) => text.contains('/'),
            Form::LogFile(_) => !value::is_word_for_log(text),
            Form::PathOrNone(_) => text != "none",
            _ => self.is_path(),
        }
    }

    /// The option with its value, as the help has it.
    pub(crate) fn synopsis(&self, long: &str) -> String {
        match self {
            Form::Flag(_) => format!("--{long}[={}]", self.metavar()),
            _ => format!("--{long} {}", self.metavar()),
        }
    }

    /// The option with this value, as arguments.
    pub(crate) fn arguments(&self, long: &str, text: String) -> Vec<String> {
        match self {
            Form::Flag(_) => vec![format!("--{long}={text}")],
            _ => vec![format!("--{long}"), text],
        }
    }

    /// What stands for the value in the help.
    pub(crate) fn metavar(&self) -> &'static str {
        match self {
            Form::Addresses(_) | Form::Networks(_) => "ADDR",
            Form::Count(..) | Form::CountOrRange(..) => "N",
            Form::CountOrAuto(..) => "N|auto",
            Form::Size(..) => "SIZE",
            Form::SizeOrNone(..) => "SIZE|none",
            Form::CpusOrNone(_) => "N|none",
            Form::Memory(true, _) => "SIZE|N%|auto|none",
            Form::Memory(false, _) => "SIZE|N%|none",
            Form::Duration(..) => "TIME",
            Form::DurationOrNone(..) => "TIME|none",
            Form::PathOrNone(_) => "PATH|none",
            Form::Path(_)
            | Form::Paths(_)
            | Form::WritableFolder(_)
            | Form::Program(_)
            | Form::LogFile(_) => "PATH",
            Form::UrlPath(_) | Form::UrlPaths(_) | Form::Prefix(_) => "PATH",
            Form::Word(_) | Form::Environment(_) | Form::User(_) => "NAME",
            Form::Phrase(_) => "TEXT",
            Form::OneOf(_) => "FORM",
            Form::Switch(_) | Form::Flag(_) => "on|off",
            Form::Refork(..) => "auto|N,N,…|off",
            Form::Hosts(_) => "HOST",
            Form::Domains(_) => "NAME|hosts",
            Form::Emails(_) => "ADDRESS",
            Form::Variables(_) => "NAME=VALUE",
            Form::VariableNames(_) => "NAME",
            Form::SentFolders(_) => "PATH",
            Form::PathTimeouts(_) => "PATH=TIME",
            Form::HeaderOrNone(_) => "FIELD",
            Form::LineFormat(_) => "FORM",
            Form::Share(_) => "PERCENT",
        }
    }
}

/// What `read` makes of each value.
fn all<T, C: FromIterator<T>>(
    raws: &[Raw],
    read: impl Fn(&Raw) -> Result<T, String>,
) -> Result<C, ConfigError> {
    raws.iter().map(|raw| read(raw).map_err(|problem| raw.wrong(problem))).collect()
}

/// Reads the value that counts, and stores it.
fn put<'a, T>(
    raws: &'a [Raw],
    read: impl FnOnce(&'a Raw) -> Result<T, String>,
    store: impl FnOnce(T),
) -> Result<(), ConfigError> {
    one(raws, |raw| {
        store(read(raw)?);
        Ok(())
    })
}

/// Does something with the value that counts.
fn one<'a>(raws: &'a [Raw], store: impl FnOnce(&'a Raw) -> Result<(), String>) -> Result<(), ConfigError> {
    raws.last().map_or(Ok(()), |raw| store(raw).map_err(|problem| raw.wrong(problem)))
}

fn unless_none<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "none" {
        return Ok(None);
    }
    read(text).map(Some)
}

/// Stores a number in a field that has room for fewer: the ranges in the table ensure that it fits.
pub(crate) fn fit<T: TryFrom<u64>>(number: u64, field: &mut T) -> Result<(), String> {
    *field = T::try_from(number).map_err(|_| format!("{number} is too large"))?;
    Ok(())
}
