//! What was given, and where. Sources are added in the order of their weight (command line, environment,
//! file): what is there already stays. Defaults come last, when a value is asked for.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ConfigError;
use crate::options::{named, Default, Form, Opt, Scope, OPTIONS};
use crate::settings::Bind;
use crate::value;

/// Where a value comes from, in the words of an error message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `--threads` on the command line.
    CommandLine {
        /// The option's long name, without dashes before it.
        long: String,
    },
    /// An environment variable.
    Environment {
        /// The variable.
        variable: String,
    },
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The option's name.
        name: &'static str,
        /// Where relative paths begin.
        folder: PathBuf,
    },
    /// The table of options.
    Default {
        /// The option's name.
        name: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::CommandLine { long } => write!(f, "option --{long}"),
            Origin::Environment { variable } => write!(f, "environment variable {variable}"),
            Origin::File { path, line, name, .. } => {
                write!(f, "configuration file {}, line {line}, {name}", path.display())
            }
            Origin::Default { name } => write!(f, "default of {name}"),
        }
    }
}

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
    fn folder<'a>(&'a self, current: &'a Path) -> &'a Path {
        match &self.origin {
            Origin::File { folder, .. } => folder,
            _ => current,
        }
    }

    fn read<T>(&self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        parse(&self.text).map_err(|problem| self.wrong(problem))
    }
}

/// What was given for `highball serve`, for the server or for one application. Nothing has been checked yet but the names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    values: HashMap<&'static str, Vec<Raw>>,
}

impl Given {
    /// Adds what one source says about an option, unless a weightier one has spoken.
    pub(crate) fn add(&mut self, option: &Opt, values: Vec<Raw>) {
        self.values.entry(option.name).or_insert(values);
    }

    /// Adds what another source says, as far as `counts`.
    pub(crate) fn add_all(&mut self, other: &Given, counts: impl Fn(&Opt) -> bool) {
        for (name, values) in &other.values {
            if let Some(option) = named(name).filter(|option| counts(option)) {
                self.add(option, values.clone());
            }
        }
    }

    /// The options of these scopes that were given, and where; in the order of the table.
    pub(crate) fn of_scope(&self, is_meant: impl Fn(Scope) -> bool) -> impl Iterator<Item = &Origin> {
        let options = OPTIONS.iter().filter(move |option| is_meant(option.scope));
        options.filter_map(|option| Some(&self.values.get(option.name)?.first()?.origin))
    }

    /// The value of an option that has no default; it counts as not given from then on.
    pub(crate) fn take_word(&mut self, name: &str) -> Result<Option<String>, ConfigError> {
        let word = if self.has(name) { Some(self.word(name)?) } else { None };
        self.values.remove(name);
        Ok(word)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Adds the environment. A blank variable counts as unset.
    pub(crate) fn add_environment(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for option in OPTIONS {
            let own = option.own_variable();
            let variables = std::iter::once(own.as_str()).chain(option.env.iter().copied());
            let found = variables
                .filter_map(|variable| Some((variable, env(variable)?)))
                .find(|(_, text)| !text.trim().is_empty());
            let Some((variable, text)) = found else { continue };
            let raw = |text: &str| Raw {
                text: text.trim().to_owned(),
                origin: Origin::Environment { variable: variable.to_owned() },
            };
            let values = if option.repeats() { text.split(',').map(raw).collect() } else { vec![raw(&text)] };
            self.add(option, values);
        }
    }

    /// Another default than that of the table, where nobody has said anything.
    pub(crate) fn unless_said(&mut self, name: &str, text: &str) {
        let option = named(name).expect("option is in the table");
        self.add(option, vec![Raw { text: text.into(), origin: Origin::Default { name: option.name } }]);
    }

    /// What the command line and the environment say, as arguments that mean the same in every folder and environment.
    pub(crate) fn as_arguments(&self, current: &Path) -> Result<Vec<String>, ConfigError> {
        let mut arguments = Vec::new();
        for option in OPTIONS {
            let said = |raw: &&Raw| !matches!(raw.origin, Origin::File { .. });
            for raw in self.values.get(option.name).into_iter().flatten().filter(said) {
                let text = match &option.form {
                    Form::Addresses => {
                        let port = self.count("port")?;
                        raw.read(|text| value::bind(text, port, raw.folder(current)))?.to_string()
                    }
                    Form::Path if is_path(option.name, &raw.text) => {
                        raw.folder(current).join(&raw.text).display().to_string()
                    }
                    _ => raw.text.clone(),
                };
                arguments.extend([format!("--{}", option.long()), text]);
            }
        }
        Ok(arguments)
    }

    /// The values that count for an option, its default included; `None` where it has none.
    ///
    /// Asking for an option that is not in the table is a bug, which any call of `resolve` brings out.
    fn values(&self, name: &str) -> Result<(&'static Opt, Option<Vec<Raw>>), ConfigError> {
        let option = named(name).expect("option is in the table");
        if let Some(values) = self.values.get(name) {
            return Ok((option, Some(values.clone())));
        }
        let text = match option.default {
            Default::Is(text) => text,
            Default::InDevelopment { yes, .. } if self.word("environment")? == "development" => yes,
            Default::InDevelopment { no, .. } => no,
            Default::Without(_) => return Ok((option, None)),
        };
        let raw = Raw { text: text.to_owned(), origin: Origin::Default { name: option.name } };
        Ok((option, Some(vec![raw])))
    }

    /// The one value that counts for an option which always has one.
    fn value(&self, name: &str) -> Result<(&'static Form, Raw), ConfigError> {
        let (option, values) = self.values(name)?;
        let last = values.and_then(|mut values| values.pop()).expect("option has a default");
        Ok((&option.form, last))
    }

    pub(crate) fn word(&self, name: &str) -> Result<String, ConfigError> {
        let (form, raw) = self.value(name)?;
        raw.read(|text| match form {
            Form::OneOf(words) if !words.contains(&text) => {
                Err(format!("`{text}` is none of: {}", words.join(", ")))
            }
            Form::UrlPath if !is_url_path(text) => {
                Err(format!("`{text}` is not the path of a URL, such as /up"))
            }
            _ if text.is_empty() || text.contains(char::is_whitespace) => {
                Err(format!("`{text}` is not a name"))
            }
            _ => Ok(text.to_owned()),
        })
    }

    /// A count that fits the type asked for: the ranges in the table see to that.
    pub(crate) fn count<T: TryFrom<u64>>(&self, name: &str) -> Result<T, ConfigError> {
        Ok(self.count_or_auto(name)?.expect("option has no `auto`"))
    }

    /// `None` is `auto`.
    pub(crate) fn count_or_auto<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        let (form, raw) = self.value(name)?;
        let fit = |number| T::try_from(number).map_err(|_| format!("{number} is too large"));
        raw.read(|text| match form {
            Form::CountOrAuto(_) if text == "auto" => Ok(None),
            Form::CountOrAuto(range) => value::count(text, range)
                .map_err(|problem| format!("{problem}, or auto"))
                .and_then(fit)
                .map(Some),
            Form::Count(range) => value::count(text, range).and_then(fit).map(Some),
            _ => unreachable!("{name} is no count"),
        })
    }

    pub(crate) fn size(&self, name: &str) -> Result<usize, ConfigError> {
        let bytes = self.size_or_none(name)?.expect("option has no `none`");
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    pub(crate) fn size_or_none(&self, name: &str) -> Result<Option<u64>, ConfigError> {
        let (form, raw) = self.value(name)?;
        raw.read(|text| match form {
            Form::SizeOrNone(_) if text == "none" => Ok(None),
            Form::SizeOrNone(range) | Form::Size(range) => value::size(text, range).map(Some),
            _ => unreachable!("{name} is no size"),
        })
    }

    pub(crate) fn duration(&self, name: &str) -> Result<Duration, ConfigError> {
        Ok(self.duration_or_none(name)?.expect("option has no `none`"))
    }

    pub(crate) fn duration_or_none(&self, name: &str) -> Result<Option<Duration>, ConfigError> {
        let (form, raw) = self.value(name)?;
        raw.read(|text| match form {
            Form::DurationOrNone(_) if text == "none" => Ok(None),
            Form::DurationOrNone(range) | Form::Duration(range) => value::duration(text, range).map(Some),
            _ => unreachable!("{name} is no duration"),
        })
    }

    /// None for `off`.
    pub(crate) fn counts(&self, name: &str) -> Result<Vec<u64>, ConfigError> {
        let (form, raw) = self.value(name)?;
        let Form::CountsOrOff(range) = form else { unreachable!("{name} is no list of counts") };
        raw.read(|text| value::counts(text, range))
    }

    /// An error about the value of this option that only shows beside others.
    pub(crate) fn clash(&self, name: &str, problem: &str) -> Result<ConfigError, ConfigError> {
        Ok(self.value(name)?.1.wrong(problem.to_owned()))
    }

    /// Host names in small letters; `None` where none was given.
    pub(crate) fn hosts(&self) -> Result<Option<Vec<String>>, ConfigError> {
        let Some(values) = self.values("hosts")?.1 else { return Ok(None) };
        values.iter().map(|raw| raw.read(value::host)).collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn variables(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let values = self.values("variables")?.1.unwrap_or_default();
        values.iter().map(|raw| raw.read(value::variable)).collect()
    }

    /// What `read` makes of an option that may have no value.
    pub(crate) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let raw = self.values(name)?.1.and_then(|mut values| values.pop());
        raw.map(|raw| raw.read(read)).transpose()
    }

    pub(crate) fn switch(&self, name: &str) -> Result<bool, ConfigError> {
        self.value(name)?.1.read(value::switch)
    }

    /// Addresses; relative socket paths begin where relative paths of their source do.
    pub(crate) fn binds(&self, port: u16, current: &Path) -> Result<Vec<Bind>, ConfigError> {
        let (_, values) = self.values("bind")?;
        let values = values.expect("option has a default");
        values.iter().map(|raw| raw.read(|text| value::bind(text, port, raw.folder(current)))).collect()
    }

    /// A path, made absolute by `read`, which also says what may be wrong with it.
    pub(crate) fn path<T>(
        &self,
        name: &str,
        current: &Path,
        read: impl FnOnce(&str, PathBuf) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let (_, values) = self.values(name)?;
        let Some(raw) = values.and_then(|mut values| values.pop()) else { return Ok(None) };
        let path = raw.folder(current).join(&raw.text);
        if raw.text.is_empty() {
            return Err(raw.wrong("a path is missing".into()));
        }
        raw.read(|text| read(text, path)).map(Some)
    }
}

/// Whether the value of an option for paths is one, and not a word that has a meaning of its own there.
fn is_path(option: &str, text: &str) -> bool {
    match option {
        "ruby" => text.contains('/'),
        "access_log" => !matches!(text, "-" | "none"),
        _ => true,
    }
}

fn is_url_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}
