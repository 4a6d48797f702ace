//! The typed value of every option, as the table stores them. What is not given has its default, which is stored in the same
//! way; an option without a default leaves its field empty.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::access_format::LineFormat;
use crate::error::Origin;
use crate::network::Network;
use crate::settings::{
    AppLimits, Bind, BindProtocol, Limits, LogFormat, MemoryLimits, Process, ProxyProtocol, RunsAs,
    SentFolder, ShowDiagnosis, StaticFiles,
};
use crate::value::Address;
use highball_cgroups::CpuMax;

/// The port of an address for health checks that names none.
pub const ADMIN_PORT: u16 = 9394;
/// The port of an address for agent checks that names none.
pub const AGENT_PORT: u16 = 9395;

/// Those that were asked for; the fields of others are empty.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) server: ServerFields,
    pub(crate) app: AppFields,
    /// Where the access log goes: the server's, or that of one application. `Some(None)`: nowhere.
    pub(crate) access_log: Option<Option<PathBuf>>,
    /// How its lines are written, and of which share of the requests.
    pub(crate) access_log_format: Option<LineFormat>,
    pub(crate) access_log_sample: Option<u32>,
    /// Certificates and their keys: the server's, or those of one application.
    pub(crate) tls_certificates: Vec<PathBuf>,
    pub(crate) tls_keys: Vec<PathBuf>,
}

/// Options of the server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ServerFields {
    pub(crate) config: Option<PathBuf>,
    pub(crate) port: u16,
    pub(crate) binds: Vec<Address>,
    pub(crate) proxy_protocol: ProxyProtocol,
    pub(crate) https: bool,
    pub(crate) tls_handshake_timeout: Duration,
    pub(crate) max_tls_handshakes: usize,
    pub(crate) redirect_https: Option<bool>,
    pub(crate) hsts: Option<Duration>,
    pub(crate) domains: Vec<String>,
    pub(crate) domains_on_demand: Vec<String>,
    pub(crate) domain_ask: Option<String>,
    pub(crate) acme_directory: String,
    pub(crate) acme_contacts: Vec<String>,
    pub(crate) acme_authorities: Option<PathBuf>,
    pub(crate) acme_eab_kid: Option<String>,
    pub(crate) acme_eab_key_file: Option<PathBuf>,
    pub(crate) acme_dns_hook: Option<PathBuf>,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) http2_cleartext: bool,
    pub(crate) trusted_proxies: Vec<Network>,
    pub(crate) request_id: bool,
    pub(crate) pidfile: Option<PathBuf>,
    pub(crate) server_user: Option<String>,
    /// But for the folder of spool files and the memory for buffers.
    pub(crate) limits: Limits,
    pub(crate) spool_dir: Option<PathBuf>,
    /// How much all buffers may hold.
    pub(crate) buffer_bytes: Option<u64>,
    pub(crate) admin: Vec<Address>,
    pub(crate) admin_hosts: Vec<String>,
    pub(crate) admin_actions: bool,
    pub(crate) agent_check: Vec<Address>,
    pub(crate) stuck_after: Option<Duration>,
    pub(crate) drain_grace: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) hijacked_drain_timeout: Duration,
    pub(crate) log_format: LogFormat,
}

impl ServerFields {
    /// Where to listen. With `https`, addresses for HTTP become addresses for HTTPS, if none is given.
    pub(crate) fn addresses(&self) -> Vec<Bind> {
        let mut binds: Vec<Bind> = self.binds.iter().map(|bind| bind.at_port(self.port)).collect();
        let has_https = binds.iter().any(|bind| bind.protocol == BindProtocol::Https);
        let of_http = |bind: &&mut Bind| bind.protocol == BindProtocol::Http && bind.tcp_address().is_some();
        if self.https && !has_https {
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

/// Options of one application.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AppFields {
    pub(crate) name: Option<String>,
    pub(crate) hosts: Option<Vec<String>>,
    pub(crate) prefix: Option<String>,
    pub(crate) environment: String,
    /// `None`: as many as the load needs.
    pub(crate) workers: Option<u16>,
    pub(crate) min_workers: u16,
    /// `None`: by the number of CPUs.
    pub(crate) max_workers: Option<u16>,
    pub(crate) threads: u16,
    pub(crate) early_hints: bool,
    pub(crate) timeout_header: Option<String>,
    pub(crate) health_path: Option<String>,
    pub(crate) request_start: bool,
    pub(crate) server_timing: bool,
    pub(crate) ruby: Option<PathBuf>,
    pub(crate) user: Option<RunsAs>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) pass_variables: Vec<String>,
    pub(crate) max_output_bytes: Option<u64>,
    pub(crate) memory: MemoryLimits,
    pub(crate) cpu_max: Option<CpuMax>,
    pub(crate) limits: AppLimits,
    pub(crate) static_files: StaticFiles,
    pub(crate) compress: bool,
    pub(crate) sendfile: Vec<SentFolder>,
    pub(crate) basic_auth: Option<PathBuf>,
    pub(crate) basic_auth_realm: String,
    pub(crate) process: Process,
    /// Where reforks were asked for, for an error that only shows beside other options.
    pub(crate) refork_origin: Option<Origin>,
    pub(crate) prestart: Option<bool>,
    pub(crate) puma_config: bool,
    pub(crate) sleep_after: Option<Duration>,
    pub(crate) show_diagnosis: ShowDiagnosis,
}

impl AppFields {
    pub(crate) fn is_development(&self) -> bool {
        self.environment == "development"
    }
}
