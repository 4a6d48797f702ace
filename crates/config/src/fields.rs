//! Where the values of options are stored: in the settings themselves, or here, where more than the option decides what it
//! means. What is not given has its default, which is stored in the same way; an option without a default leaves its field
//! as it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::access_format::LogRules;
use crate::error::ConfigError;
use crate::form::{Form, Place, Raw, Written};
use crate::settings::{AcmeSettings, App, Bind, BindProtocol, RunsAs, Settings};
use crate::threads::Threads;
use crate::value::Address;

/// The port of an address for health checks that names none.
pub const ADMIN_PORT: u16 = 9394;
/// The port of an address for agent checks that names none.
pub const AGENT_PORT: u16 = 9395;

/// The values of the requested options; the fields of others are empty.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) server: Settings,
    pub(crate) app: App,

    // Of the server.
    pub(crate) config: Option<PathBuf>,
    pub(crate) port: u16,
    pub(crate) binds: Vec<Address>,
    /// Which versions of the PROXY protocol are read: the text form, the binary form.
    pub(crate) proxy_versions: (bool, bool),
    pub(crate) admin: Vec<Address>,
    pub(crate) agent_check: Vec<Address>,
    pub(crate) redirect_https: Option<bool>,
    pub(crate) acme: AcmeSettings,
    pub(crate) acme_eab_kid: Option<String>,
    pub(crate) acme_eab_key_file: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    /// `Some(None)`: nowhere.
    pub(crate) otlp_endpoint: Option<Option<String>>,
    pub(crate) spool_dir: Option<PathBuf>,
    /// How much all buffers may hold.
    pub(crate) buffer_bytes: Option<u64>,

    // Of the server, or of one application.
    /// `Some(None)`: nowhere.
    pub(crate) access_log: Option<Option<PathBuf>>,
    pub(crate) access_log_rules: LogRules,
    pub(crate) tls_certificates: Vec<PathBuf>,
    pub(crate) tls_keys: Vec<PathBuf>,

    // Of an application.
    pub(crate) name: Option<String>,
    pub(crate) hosts: Option<Vec<String>>,
    /// `None`: as many as the load needs.
    pub(crate) workers: Option<u16>,
    pub(crate) min_workers: u16,
    /// `None`: by the number of CPUs.
    pub(crate) max_workers: Option<u16>,
    /// `None`: by the environment and the memory.
    pub(crate) threads: Option<Threads>,
    pub(crate) user: Option<RunsAs>,
    pub(crate) basic_auth: Option<PathBuf>,
    pub(crate) basic_auth_realm: String,
    /// The processes of its Procfile that run beside its workers.
    pub(crate) procfile: Vec<String>,
    pub(crate) prestart: Option<bool>,
    pub(crate) puma_config: bool,
}

impl Fields {
    /// The values that this application has, as far as it shows them.
    pub(crate) fn of_app(app: &App) -> Fields {
        Fields {
            app: app.clone(),
            name: Some(app.name.clone()),
            workers: app.pool.is_none().then_some(app.workers),
            threads: (!app.threads.are_default).then_some(app.threads),
            user: Some(app.runs_as.clone()),
            ..Fields::default()
        }
    }

    /// Where to listen. With `https`, addresses for HTTP become addresses for HTTPS, if none is given.
    pub(crate) fn addresses(&self) -> Vec<Bind> {
        let mut binds: Vec<Bind> = self.binds.iter().map(|bind| bind.at_port(self.port)).collect();
        let has_https = binds.iter().any(|bind| bind.protocol == BindProtocol::Https);
        let of_http = |bind: &&mut Bind| bind.protocol == BindProtocol::Http && bind.tcp_address().is_some();
        if self.server.tls.is_local && !has_https {
            binds.iter_mut().filter(of_http).for_each(|bind| bind.protocol = BindProtocol::Https);
        }
        binds
    }

    /// Where to answer health checks.
    pub(crate) fn admin_addresses(&self) -> Vec<Bind> {
        self.admin.iter().map(|address| address.at_port(ADMIN_PORT)).collect()
    }

    /// Where to answer the agent checks of load balancers.
    pub(crate) fn agent_addresses(&self) -> Vec<Bind> {
        self.agent_check.iter().map(|address| address.at_port(AGENT_PORT)).collect()
    }
}

/// The value of an option: its form, and the field that it is stored in. The type of the field may be another one than the form
/// reads, if it can be made from that ([`Holds`]).
pub(crate) struct Value<F, T: 'static>(pub(crate) F, pub(crate) fn(&mut Fields) -> &mut T);

/// A [`Value`] of any type.
pub(crate) trait Stored: Sync {
    /// How the value is written.
    fn form(&self) -> &dyn Written;

    /// Reads the value and stores it. `raws` has several if the option was given several times.
    ///
    /// # Errors
    /// One of them cannot be understood, or cannot be; where it was given.
    fn store(&self, raws: &[Raw], fields: &mut Fields, place: &Place<'_>) -> Result<(), ConfigError>;

    /// Whether both have the same value.
    fn is_same(&self, one: &mut Fields, other: &mut Fields) -> bool;
}

impl<F: Form + Sync, T: Holds<F::Value> + PartialEq> Stored for Value<F, T> {
    fn form(&self) -> &dyn Written {
        &self.0
    }

    fn store(&self, raws: &[Raw], fields: &mut Fields, place: &Place<'_>) -> Result<(), ConfigError> {
        if let Some(value) = self.0.read_all(raws, place)? {
            *(self.1)(fields) = T::holding(value);
        }
        Ok(())
    }

    fn is_same(&self, one: &mut Fields, other: &mut Fields) -> bool {
        (self.1)(one) == (self.1)(other)
    }
}

/// The type of a field for values of the type `V`.
pub(crate) trait Holds<V> {
    fn holding(value: V) -> Self;
}

impl<V> Holds<V> for V {
    fn holding(value: V) -> V {
        value
    }
}

/// `None` stands for an option that is not given.
impl<V> Holds<V> for Option<V> {
    fn holding(value: V) -> Option<V> {
        Some(value)
    }
}

impl Holds<u64> for usize {
    fn holding(value: u64) -> usize {
        usize::try_from(value).unwrap_or(usize::MAX)
    }
}

impl<K: Ord, V> Holds<Vec<(K, V)>> for BTreeMap<K, V> {
    fn holding(value: Vec<(K, V)>) -> BTreeMap<K, V> {
        value.into_iter().collect()
    }
}

impl<T: Clone> Holds<Vec<Vec<T>>> for Vec<T> {
    fn holding(value: Vec<Vec<T>>) -> Vec<T> {
        value.concat()
    }
}
