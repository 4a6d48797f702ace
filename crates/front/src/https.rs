//! What HTTPS means for requests and answers: clients are sent to it, and browsers kept there. [`on_demand`]: names
//! that get a certificate when a client asks for one.

pub(crate) mod on_demand;

use std::rc::Rc;
use std::sync::Arc;

use highball_config::TlsSettings;

use on_demand::OnDemand;

use crate::http_syntax::write_number;
use crate::location;
use crate::message::request_head::Head;
use crate::transport::tls::Tls;

/// What connections with TLS need, and clients of other addresses learn of it.
#[derive(Debug)]
pub(crate) struct Https {
    pub(crate) tls: Arc<Tls>,
    /// Whether clients of HTTP addresses are sent here.
    pub(crate) redirects: bool,
    /// Certificates that are obtained when a client asks for one, if some are.
    pub(crate) on_demand: Option<Rc<OnDemand>>,
    port: Option<u16>,
    /// A field line.
    hsts: Option<Vec<u8>>,
}

impl Https {
    pub(crate) fn new(tls: Arc<Tls>, port: Option<u16>, settings: &TlsSettings) -> Self {
        let line = |age: u64| format!("strict-transport-security: max-age={age}\r\n").into_bytes();
        let hsts = settings.hsts.map(|time| line(time.as_secs()));
        let on_demand = OnDemand::new(settings.acme.as_ref(), &tls);
        Https { tls, on_demand, redirects: settings.redirect, port, hsts }
    }

    /// Where a request over HTTP is to be sent.
    pub(crate) fn url_of(&self, head: Head<'_>, server_name: &str) -> Vec<u8> {
        let name = head.host_name().unwrap_or(server_name.as_bytes());
        location::at(&self.origin_of(head, name), head.path(), head.query())
    }

    /// The origin of this host where it is served over HTTPS. A client that names no port knows this server by the usual ones,
    /// whatever it listens on itself.
    pub(crate) fn origin_of(&self, head: Head<'_>, name: &[u8]) -> Vec<u8> {
        let mut url = b"https://".to_vec();
        let named = head.host();
        url.extend_from_slice(name);
        if let Some(port) =
            self.port.filter(|port| *port != 443 && named.is_none_or(|host| host.port.is_some()))
        {
            url.push(b':');
            write_number(u64::from(port), &mut url);
        }
        url
    }

    /// The field line for HSTS, for answers that do not have the field: what an application says about it counts.
    pub(crate) fn hsts(&self) -> Option<&[u8]> {
        self.hsts.as_deref()
    }
}
