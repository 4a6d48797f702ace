//! The configuration file: TOML, each key the name of an option; and an `[[app]]` for each application, where there are
//! several.

use std::path::{Path, PathBuf};

use highball_tenant::{Links, OpenError, TenantFolder};
use highball_users::User;
use toml::de::{DeTable, DeValue};

use crate::companions;
use crate::error::{reason, ConfigError, Origin};
use crate::foreign;
use crate::form::{Notation, Raw};
use crate::given::Given;
use crate::given_path::absolute;
use crate::options::{named, options, Opt, Scope};
use crate::spelling::did_you_mean;
use highball_users::trust::{Author, Stranger};

/// Where the file may lie in an application.
pub(crate) const PLACES: [&str; 2] = ["config/highball.toml", "highball.toml"];
/// The largest configuration file, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// What a file says.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// Where it is.
    pub(crate) path: Option<PathBuf>,
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

/// The rights of a file's author.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) author: Author,
    /// The number of the user who owns the application that the file lies in.
    pub(crate) owner: Option<u32>,
    /// Whether the server alone says where applications are reached: it is root's, and there are several.
    pub(crate) server_routes: bool,
    /// Who reads it; `None`: this process.
    pub(crate) reader: Option<User>,
}

impl Rights {
    /// The rights of the user who starts Highball.
    pub(crate) fn of_server() -> Rights {
        Rights { author: Author::Server, owner: None, server_routes: false, reader: None }
    }
}

/// Where an application has a file in each of the places.
pub(crate) fn two_files(first: &Path, second: PathBuf) -> ConfigError {
    let problem = format!("there is also {}; keep one of them", first.display());
    ConfigError::File { path: second, line: None, problem }
}

/// Where relative paths in the file of a server begin: at the folder that it lies in, or around that, where it is `config`.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let levels = if path.ends_with(PLACES[0]) { 2 } else { 1 };
    path.ancestors().nth(levels).unwrap_or(Path::new("/")).to_owned()
}

/// Reads the file that the user who starts Highball has named. Without entries, relative paths in it begin at `app`.
pub(crate) fn read_named(path: &Path, app: &Path) -> Result<File, ConfigError> {
    let wrong = |problem| ConfigError::File { path: path.to_owned(), line: None, problem };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(reason(&error)))?;
    not_foreign(path, &text)?;
    read(&text, path, app, &Rights::of_server())
}

/// Makes sure that a file is not for another program, whatever it would be read as.
///
/// # Errors
/// It is; what to do.
pub(crate) fn not_foreign(path: &Path, text: &str) -> Result<(), ConfigError> {
    let Some(foreign) = foreign::recognise(path, text) else { return Ok(()) };
    Err(ConfigError::File { path: path.to_owned(), line: None, problem: foreign::refusal(foreign) })
}

/// Whether there is something of this name, which then has to be read: where it cannot be found out, it may narrow what an
/// application shows. A link that leads nowhere is something.
///
/// # Errors
/// It cannot be looked for; why.
pub(crate) fn is_there(folder: &TenantFolder, place: impl AsRef<Path>) -> Result<bool, OpenError> {
    match folder.look(place.as_ref(), Links::Anywhere) {
        Ok(_) => Ok(true),
        Err(OpenError::NotFound) => match is_link(folder, place.as_ref())? {
            false => Ok(false),
            true => Err(OpenError::NotFound),
        },
        // An application whose folder its user may not enter does not boot, and that is explained there.
        Err(_) if folder.look("./.", Links::Anywhere).is_err() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether this name, which leads nowhere, exists: as a link, in a folder to which links may lead.
fn is_link(folder: &TenantFolder, place: &Path) -> Result<bool, OpenError> {
    let around = place.parent().filter(|around| !around.as_os_str().is_empty());
    let found = match (around, place.file_name()) {
        (Some(around), Some(name)) => {
            if !is_there(folder, around)? {
                return Ok(false);
            }
            folder.folder(around, Links::Anywhere)?.look(name, Links::Refused)
        }
        _ => folder.look(place, Links::Refused),
    };
    Ok(!matches!(found, Err(OpenError::NotFound)))
}

/// Reads the file at this place in an application's folder, if its reader can find it. Relative paths in it begin
/// at `link`, by which the application is reached: that may lead to another release later.
pub(crate) fn read_own(
    (folder, link): (&Path, &Path),
    place: &str,
    rights: &Rights,
) -> Result<Option<File>, ConfigError> {
    let path = link.join(place);
    let wrong = |problem| ConfigError::File { path: path.clone(), line: None, problem };
    let unread = |error| wrong(format!("cannot be read: {error}"));
    let Ok(folder) = TenantFolder::open(folder, rights.reader.as_ref()) else { return Ok(None) };
    if !is_there(&folder, place).map_err(unread)? {
        return Ok(None);
    }
    let text = folder.read_text(place, Links::Anywhere, FILE_BYTES).map_err(unread)?;
    not_foreign(&path, &text)?;
    read(&text, &path, link, rights).map(Some)
}

fn read(text: &str, path: &Path, app: &Path, rights: &Rights) -> Result<File, ConfigError> {
    let wrong = |line, problem| ConfigError::File { path: path.to_owned(), line, problem };
    let reader = Reader { path, text, rights };
    let table = DeTable::parse(text).map_err(|error| {
        wrong(error.span().map(|span| reader.line_of(span.start)), error.message().to_owned())
    })?;
    let folder = if table.get_ref().contains_key("app") { folder_of(path) } else { app.to_owned() };
    let mut file = File { path: Some(path.to_owned()), ..File::default() };
    for (key, value) in table.into_inner() {
        let line = reader.line_of(key.span().start);
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("app", _) if matches!(rights.author, Author::App(_)) => return Err(reader.no_entry(line)),
            ("app", DeValue::Array(entries)) => {
                for entry in entries.iter() {
                    let DeValue::Table(table) = entry.get_ref() else {
                        return Err(wrong(Some(line), "`app` stands alone in a line: [[app]]".into()));
                    };
                    file.entries.push(reader.entry(table, reader.line_of(entry.span().start), &folder)?);
                }
            }
            ("app", _) => {
                return Err(wrong(Some(line), "each application has its own entry: [[app]]".into()))
            }
            (name, value) if is_section(name, value) => {
                return Err(wrong(Some(line), no_section(name, value)))
            }
            (name, value) => reader.add(&mut file.top, name, value, line, &folder)?,
        }
    }
    Ok(file)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    rights: &'a Rights,
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
            Some(DeValue::String(path)) => absolute(folder, Path::new(path.as_ref())),
            Some(_) => return Err(self.wrong(line, "path takes one value, such as \"/srv/blog\"".into())),
            None => {
                let problem = "the entry has no `path`; write the folder of the application, such as path = \"/srv/blog\"";
                return Err(self.wrong(line, problem.into()));
            }
        };
        let mut given = Given::default();
        for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != "path") {
            let (name, line) = (key.get_ref().as_ref(), self.line_of(key.span().start));
            if named(name).is_some_and(|option| option.scope == Scope::Server) {
                let problem = format!("`{name}` is the server's; write it above the first [[app]]");
                return Err(self.wrong(line, problem));
            }
            self.add(&mut given, name, value.get_ref(), line, &path)?;
        }
        Ok(Entry { path, given })
    }

    /// An `[[app]]` in the file of an application.
    fn no_entry(&self, line: usize) -> ConfigError {
        let Author::App(stranger) = &self.rights.author else { return self.wrong(line, String::new()) };
        let problem = format!(
            "an application's own file names no applications, and this is one, as {}; write [[app]] into a file that \
             --config names",
            stranger.reason(self.path)
        );
        self.wrong(line, problem)
    }

    /// Whether an application's own file may give this option.
    fn is_of_app(&self, option: &Opt, texts: &[String], stranger: &Stranger) -> Result<(), String> {
        let (name, reason) = (option.name, stranger.reason(self.path));
        let names_owner = || {
            let user = texts.last().and_then(|text| User::of(text));
            user.is_some_and(|user| Some(user.uid) == self.rights.owner)
        };
        let elsewhere = "give it on the command line, or in a file that --config names";
        if option.scope == Scope::Server {
            return Err(format!(
                "`{name}` is an option of the server, and this is the file of one application, as {reason}; {elsewhere}"
            ));
        }
        if option.scope.is_privileged() && !(option.is_user() && names_owner()) {
            return Err(format!(
                "`{name}` decides what Highball does with its own rights, and this is the file of one application, \
                 as {reason}; {elsewhere}"
            ));
        }
        if matches!(option.scope, Scope::Route(_)) && self.rights.server_routes {
            return Err(format!(
                "`{name}` decides where an application is reached, which the server's file says for all; this is the file of \
                 one, as {reason}; write it into its [[app]]"
            ));
        }
        Ok(())
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
        let texts = texts(option, value).map_err(wrong)?;
        if let Author::App(stranger) = &self.rights.author {
            self.is_of_app(option, &texts, stranger).map_err(wrong)?;
        }
        let (path, folder) = (self.path.to_owned(), folder.to_owned());
        let origin = Origin::File { path, line, name: option.name, folder };
        let values = texts.into_iter().map(|text| Raw { text, origin: origin.clone() }).collect();
        given.add(option, values);
        Ok(())
    }
}

/// Whether it is a section, `[name]` or `[[name]]`, and no option that has such a value.
fn is_section(name: &str, value: &DeValue<'_>) -> bool {
    named(name).is_none() && (matches!(value, DeValue::Table(_)) || is_list_of_tables(value))
}

fn is_list_of_tables(value: &DeValue<'_>) -> bool {
    matches!(value, DeValue::Array(values) if values.iter().any(|value| matches!(value.get_ref(), DeValue::Table(_))))
}

/// The error for a section: there are none, but for `[[app]]`.
fn no_section(name: &str, value: &DeValue<'_>) -> String {
    match value {
        DeValue::Table(_) => format!(
            "there is no section `[{name}]`: write the options of the server, which hold for all applications, at the top of the \
             file, and an [[app]] for each of several applications"
        ),
        _ => format!("there is no list `[[{name}]]`: each application has its own entry, [[app]]"),
    }
}

fn option(name: &str) -> Result<&'static Opt, String> {
    if let Some(option) = named(name).filter(|option| option.in_file()) {
        return Ok(option);
    }
    let known = options().filter(|option| option.in_file()).map(|option| option.name);
    Err(match did_you_mean(name, known) {
        Some(guess) => format!("there is no option `{name}`; did you mean `{guess}`?"),
        None => format!("there is no option `{name}`; `highball help serve` lists them all"),
    })
}

/// The texts of a value: several where the option may be given several times.
fn texts(option: &Opt, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Table(_) if option.value.form().notation() == Notation::Entries => {
            Err(format!("each has its own entry: write [[{0}]] in the place of [{0}]", option.name))
        }
        DeValue::Array(values) if option.repeats() && !values.is_empty() => {
            values.iter().map(|value| text(option, value.get_ref())).collect()
        }
        DeValue::Table(variables) if option.value.form().notation() == Notation::Table => variables
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
        DeValue::Table(table) if option.value.form().notation() == Notation::Entries => {
            Ok(companions::entry(table))
        }
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err(format!("{} takes one value, such as \"{}\"", option.name, option.example))
        }
    }
}
