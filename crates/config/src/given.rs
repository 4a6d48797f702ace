//! What was given, and where. Sources are added in the order of their weight (command line, environment,
//! file): what is there already stays. Defaults come last, when a value is asked for.

use std::collections::HashMap;

use crate::error::{ConfigError, Origin};
use crate::fields::{Fields, ADMIN_PORT, AGENT_PORT};
use crate::form::{Place, Raw};
use crate::options::{named, options, Default, Opt, Scope};
use crate::restriction;
use crate::settings::LogFormat;
use crate::value;

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

    /// Where the options that are meant were given; in the order of the table.
    pub(crate) fn of_options(&self, is_meant: impl Fn(&Opt) -> bool) -> impl Iterator<Item = &Origin> {
        let options = options().filter(move |option| is_meant(option));
        options.filter_map(|option| self.origin(option.name))
    }

    /// The user who is asked for; the option counts as not given from then on.
    pub(crate) fn take_user(&mut self) -> Result<Option<String>, ConfigError> {
        let raws = self.values.remove("user").unwrap_or_default();
        raws.last().map(|raw| raw.read(value::word)).transpose()
    }

    /// Whether this option was given on the command line, or by Highball's own variable: for this start.
    pub(crate) fn is_for_this_start(&self, name: &str) -> bool {
        match self.origin(name) {
            Some(Origin::CommandLine { .. }) => true,
            Some(Origin::Environment { variable }) => variable.starts_with("HIGHBALL_"),
            _ => false,
        }
    }

    /// Whether this gives the restriction of an option, or what takes its place. Who names a port for this start, or a domain,
    /// has named where to listen.
    pub(crate) fn gives_restriction(&self, name: &str) -> bool {
        self.names(name) || (name == "bind" && (self.is_for_this_start("port") || self.names("domain")))
    }

    /// The first value of an option as it was written.
    pub(crate) fn first_of(&self, name: &str) -> Option<&Raw> {
        self.values.get(name)?.first()
    }

    /// The values of an option as they were written.
    pub(crate) fn values_of(&self, name: &str) -> &[Raw] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Where each value of an option was given, in words.
    pub(crate) fn places_of(&self, name: &str) -> Vec<String> {
        self.values.get(name).into_iter().flatten().map(|raw| raw.origin.to_string()).collect()
    }

    /// Takes away what variables of platforms and frameworks say (WEB_CONCURRENCY) where a Puma configuration says something
    /// else, which usually has read them itself. The environment stays: what Rails obeys is RAILS_ENV.
    pub(crate) fn yield_to(&mut self, puma: &Given) {
        let values = std::mem::take(&mut self.values);
        let stays =
            |name: &str| named(name).is_some_and(Opt::is_environment) || !puma.values.contains_key(name);
        let of_platform = |raws: &[Raw]| {
            matches!(raws.first().map(|raw| &raw.origin),
                     Some(Origin::Environment { variable }) if !variable.starts_with("HIGHBALL_"))
        };
        self.values = values.into_iter().filter(|(name, raws)| stays(name) || !of_platform(raws)).collect();
    }

    /// Where the option of this name was given.
    pub(crate) fn origin(&self, name: &str) -> Option<&Origin> {
        self.first_of(name).map(|raw| &raw.origin)
    }

    /// Whether the option of this name is given.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn has(&self, option: &Opt) -> bool {
        self.values.contains_key(option.name)
    }

    /// Adds the environment. A blank variable counts as unset.
    ///
    /// # Errors
    /// The blank value is a restriction's, and no source that goes before gives that option.
    pub(crate) fn add_environment(
        &mut self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), ConfigError> {
        for option in options() {
            let value = |variable: String| env(&variable).map(|text| (variable, text));
            let set: Vec<(String, String)> = option.variables().filter_map(value).collect();
            let Some((variable, text)) = set.iter().find(|(_, text)| !text.trim().is_empty()) else {
                if let Some((variable, _)) = set.first().filter(|_| !self.has(option)) {
                    restriction::of_blank(option, variable)?;
                }
                continue;
            };
            let raw = |text: &str| Raw {
                text: text.trim().to_owned(),
                origin: Origin::Environment { variable: variable.clone() },
            };
            let values = match option.separator() {
                Some(separator) => text.trim().split(separator).map(raw).collect(),
                None => vec![raw(text)],
            };
            self.add(option, values);
        }
        Ok(())
    }

    /// Another environment than the table's, where none was given.
    pub(crate) fn default_environment(&mut self, text: &str) {
        for option in options().filter(|option| option.is_environment()) {
            let origin = Origin::Default { name: option.name };
            self.add(option, vec![Raw { text: text.into(), origin }]);
        }
    }

    /// What the command line and the environment say, as arguments that mean the same in every folder and environment.
    pub(crate) fn as_arguments(&self, place: &Place<'_>) -> Result<Vec<String>, ConfigError> {
        let port = self.fields(place, |option| option.scope == Scope::Server)?.port;
        let default_port = |option: &Opt| match option.name {
            "bind" => Some(port),
            "admin" => Some(ADMIN_PORT),
            "agent_check" => Some(AGENT_PORT),
            _ => None,
        };
        let mut arguments = Vec::new();
        for option in options() {
            let is_given = |raw: &&Raw| !matches!(raw.origin, Origin::File { .. });
            for raw in self.values.get(option.name).into_iter().flatten().filter(is_given) {
                let folder = raw.folder(&place.current);
                let text = match default_port(option) {
                    Some(port) => raw.read(|text| value::address(text, folder))?.at_port(port).to_string(),
                    None if option.value.form().is_path(&raw.text) => {
                        value::utf_8(&folder.join(&raw.text)).map_err(ConfigError::Usage)?
                    }
                    None => raw.text.clone(),
                };
                arguments.extend(option.arguments(text));
            }
        }
        Ok(arguments)
    }

    /// The typed values of the options that are `asked` for, their defaults included.
    ///
    /// # Errors
    /// One cannot be understood, or cannot be; where it was given.
    pub(crate) fn fields(
        &self,
        place: &Place<'_>,
        asked: impl Fn(&Opt) -> bool,
    ) -> Result<Fields, ConfigError> {
        let mut fields = Fields::default();
        for option in options().filter(|option| asked(option)) {
            match (self.values.get(option.name), self.default_of(option, place)?) {
                (Some(raws), _) => option.value.store(raws, &mut fields, place)?,
                (None, Some(raw)) => option.value.store(&[raw], &mut fields, place)?,
                (None, None) => {}
            }
        }
        Ok(fields)
    }

    /// The default that the table has, where the option was not given.
    fn default_of(&self, option: &Opt, place: &Place<'_>) -> Result<Option<Raw>, ConfigError> {
        let text = match option.default {
            _ if self.has(option) => return Ok(None),
            Default::Is(text) => text,
            Default::InDevelopment { yes, .. } if self.is_development(place)? => yes,
            Default::InDevelopment { no, .. } => no,
            Default::WithJsonLog { yes, .. } if self.logs_json(place)? => yes,
            Default::WithJsonLog { no, .. } => no,
            Default::Without(_) => return Ok(None),
        };
        Ok(Some(Raw { text: text.to_owned(), origin: Origin::Default { name: option.name } }))
    }

    /// Whether the log is for programs.
    pub(crate) fn logs_json(&self, place: &Place<'_>) -> Result<bool, ConfigError> {
        let fields = self.fields(place, |option| option.name == "log_format")?;
        Ok(fields.server.log.format == LogFormat::Json)
    }

    fn is_development(&self, place: &Place<'_>) -> Result<bool, ConfigError> {
        let fields = self.fields(place, Opt::is_environment)?;
        Ok(fields.app.is_development())
    }
}
