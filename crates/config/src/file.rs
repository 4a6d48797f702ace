//! The configuration file: TOML, each key the name of an option; and an `[[app]]` for each application, where there are
//! several.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::error::{reason, ConfigError};
use crate::given::{Given, Origin, Raw};
use crate::options::{did_you_mean, named, Opt, Scope, OPTIONS};

/// Where the file may lie in an application.
const PLACES: [&str; 2] = ["config/highball.toml", "highball.toml"];

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// For the server, and for all applications.
    pub(crate) top: Given,
    /// The applications.
    pub(crate) entries: Vec<Entry>,
}

/// One `[[app]]`.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its `path`, absolute.
    pub(crate) path: PathBuf,
    /// What it says else.
    pub(crate) given: Given,
}

/// The application's own configuration file, if it has one.
pub(crate) fn find(app: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let mut found = PLACES.iter().map(|place| app.join(place)).filter(|path| path.exists());
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err(ConfigError::File {
            path: second,
            line: None,
            problem: format!("there is also {}; keep one of them", first.display()),
        }),
        (first, _) => Ok(first),
    }
}

/// Where relative paths in the file of a server begin: at the folder that it lies in, or around that, where it is `config`.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let levels = if path.ends_with(PLACES[0]) { 2 } else { 1 };
    path.ancestors().nth(levels).unwrap_or(Path::new("/")).to_owned()
}

/// Reads the file at `path`. Without entries, relative paths in it begin at `app`.
pub(crate) fn read(path: &Path, app: &Path) -> Result<File, ConfigError> {
    let wrong = |line, problem| ConfigError::File { path: path.to_owned(), line, problem };
    let (text, owner) = text_and_owner(path).map_err(|error| wrong(None, reason(&error)))?;
    let reader = Reader { path, text: &text, owner };
    let table = DeTable::parse(&text).map_err(|error| {
        wrong(error.span().map(|span| reader.line_of(span.start)), error.message().to_owned())
    })?;
    let folder = if table.get_ref().contains_key("app") { folder_of(path) } else { app.to_owned() };
    let mut file = File::default();
    for (key, value) in table.into_inner() {
        let line = reader.line_of(key.span().start);
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("app", DeValue::Array(entries)) => {
                for entry in entries.iter() {
                    let DeValue::Table(table) = entry.get_ref() else {
                        return Err(wrong(Some(line), "`app` stands alone in a line: [[app]]".into()));
                    };
                    file.entries.push(reader.entry(table, reader.line_of(entry.span().start), &folder)?);
                }
            }
            ("app", _) => {
                return Err(wrong(Some(line), "each application is an entry of its own: [[app]]".into()))
            }
            (name, value) => reader.add(&mut file.top, name, value, line, &folder)?,
        }
    }
    Ok(file)
}

/// What stands in a file, and the number of the user whom it belongs to: of the file that was read, whatever stands there
/// by then.
fn text_and_owner(path: &Path) -> io::Result<(String, u32)> {
    let mut file = std::fs::File::open(path)?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, file.metadata()?.uid()))
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    owner: u32,
}

impl Reader<'_> {
    fn line_of(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    fn wrong(&self, line: usize, problem: String) -> ConfigError {
        ConfigError::File { path: self.path.to_owned(), line: Some(line), problem }
    }

    fn entry(&self, table: &DeTable<'_>, line: usize, folder: &Path) -> Result<Entry, ConfigError> {
        let path = match table.get("path").map(|path| path.get_ref()) {
            Some(DeValue::String(path)) => folder.join(path.as_ref()),
            Some(_) => return Err(self.wrong(line, "path takes one value, such as \"/srv/blog\"".into())),
            None => {
                let problem = "the entry has no `path`; write the folder of the application, such as path = \"/srv/blog\"";
                return Err(self.wrong(line, problem.into()));
            }
        };
        let mut given = Given::default();
        for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != "path") {
            let (name, line) = (key.get_ref().as_ref(), self.line_of(key.span().start));
            if named(name).is_some_and(|option| option.scope == Scope::Server && option.in_file()) {
                let problem = format!("`{name}` is the server's; write it above the first [[app]]");
                return Err(self.wrong(line, problem));
            }
            self.add(&mut given, name, value.get_ref(), line, &path)?;
        }
        Ok(Entry { path, given })
    }

    /// Adds an option and its value.
    fn add(
        &self,
        given: &mut Given,
        name: &str,
        value: &DeValue<'_>,
        line: usize,
        folder: &Path,
    ) -> Result<(), ConfigError> {
        let wrong = |problem| self.wrong(line, problem);
        let option = option(name).map_err(wrong)?;
        let (path, folder) = (self.path.to_owned(), folder.to_owned());
        let origin = Origin::File { path, line, name: option.name, folder, owner: self.owner };
        let texts = texts(option, value).map_err(wrong)?;
        let values = texts.into_iter().map(|text| Raw { text, origin: origin.clone() }).collect();
        given.add(option, values);
        Ok(())
    }
}

fn option(name: &str) -> Result<&'static Opt, String> {
    if let Some(option) = named(name).filter(|option| option.in_file()) {
        return Ok(option);
    }
    let known = OPTIONS.iter().filter(|option| option.in_file()).map(|option| option.name);
    Err(match did_you_mean(name, known) {
        Some(guess) => format!("there is no option `{name}`; did you mean `{guess}`?"),
        None => format!("there is no option `{name}`; `highball help serve` lists them all"),
    })
}

/// The texts of a value: several where the option may be given several times.
fn texts(option: &Opt, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Array(values) if option.repeats() && !values.is_empty() => {
            values.iter().map(|value| text(option, value.get_ref())).collect()
        }
        DeValue::Table(variables) if option.name == "variables" => variables
            .iter()
            .map(|(name, value)| Ok(format!("{}={}", name.get_ref(), text(option, value.get_ref())?)))
            .collect(),
        value => text(option, value).map(|text| vec![text]),
    }
}

fn text(option: &Opt, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(switch) => Ok(switch.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err(format!("{} takes one value, such as \"{}\"", option.name, option.example))
        }
    }
}
