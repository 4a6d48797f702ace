//! The configuration file: TOML, flat, each key the name of an option.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::error::{reason, ConfigError};
use crate::given::{Given, Origin, Raw};
use crate::options::{did_you_mean, named, Opt, OPTIONS};

/// Where the file may lie in an application.
const PLACES: [&str; 2] = ["config/highball.toml", "highball.toml"];

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

/// Adds the options of the file at `path`.
pub(crate) fn read(path: &Path, given: &mut Given) -> Result<(), ConfigError> {
    let wrong = |line, problem| ConfigError::File { path: path.to_owned(), line, problem };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(None, reason(&error)))?;
    let line_of = |offset: usize| text[..offset].matches('\n').count() + 1;
    let table = DeTable::parse(&text)
        .map_err(|error| wrong(error.span().map(|span| line_of(span.start)), error.message().to_owned()))?;
    for (key, value) in table.into_inner() {
        let line = line_of(key.span().start);
        let name: &str = key.get_ref();
        let option = option(name).map_err(|problem| wrong(Some(line), problem))?;
        let origin = Origin::File { path: path.to_owned(), line, name: option.name };
        let texts = texts(option, value.get_ref()).map_err(|problem| wrong(Some(line), problem))?;
        let values = texts.into_iter().map(|text| Raw { text, origin: origin.clone() }).collect();
        given.add(option, values);
    }
    Ok(())
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
