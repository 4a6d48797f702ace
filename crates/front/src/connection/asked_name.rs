//! The name that a client asks for in its TLS handshake, where certificates are obtained on demand ([`OnDemand`]).

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::https::on_demand::{Look, OnDemand};
use crate::refusals::failure_pages::Audience;
use crate::request::own_request::{self, Asked};
use crate::shared::Shared;

/// How long a client waits for a certificate.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait for the application's answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Longest wait for an attempt to obtain a certificate.
const OBTAINED_WITHIN: Duration = Duration::from_secs(120);

/// What the client has to wait for, if it has to: then there may be a certificate for the name.
pub(super) fn look(name: &str, shared: &Rc<Shared>) -> Option<Rc<Notify>> {
    let on_demand = shared.https.as_ref()?.on_demand.as_ref()?;
    let host = name.to_ascii_lowercase();
    let waits = on_demand.has_none(&host);
    let done = match on_demand.look(&host) {
        Look::Nothing => return None,
        Look::UnderWay(done) => done,
        Look::Begin(done) => {
            spawn_local(see_to(host, Rc::clone(&done), Rc::clone(on_demand), Rc::clone(shared)));
            done
        }
    };
    Some(done).filter(|_| waits)
}

/// Has the certificate obtained or renewed, if that is allowed.
async fn see_to(host: String, done: Rc<Notify>, on_demand: Rc<OnDemand>, shared: Rc<Shared>) {
    let is_allowed = on_demand.lists(&host) || is_allowed_by_app(&host, &on_demand, &shared).await;
    let order = if is_allowed { on_demand.tls().obtain(&host) } else { None };
    if let Some(obtained) = order {
        // When it takes longer, the certificate is there for a later client.
        let _ = timeout(OBTAINED_WITHIN, obtained).await;
    }
    on_demand.end(&host, is_allowed, &done);
}

async fn is_allowed_by_app(host: &str, on_demand: &OnDemand, shared: &Rc<Shared>) -> bool {
    let Some(path) = on_demand.path_to_ask() else { return false };
    let answer = timeout(ANSWER_WITHIN, ask(path, host, shared)).await;
    let why = match answer.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER_WITHIN.as_secs())))
    {
        Ok(status) => {
            tracing::debug!(host, status, "the application was asked whether to obtain a certificate");
            return status == 200;
        }
        Err(why) => why,
    };
    if on_demand.is_to_log() {
        let remedy = "Until it answers, there are no certificates for new names";
        tracing::warn!(
            name: "domain_not_answered",
            host,
            path,
            why,
            remedy,
            "the application does not say whether to obtain a certificate (`domain_ask`)"
        );
    }
    false
}

/// The status of the answer of the application that has this host.
async fn ask(path: &str, host: &str, shared: &Rc<Shared>) -> Result<u16, String> {
    let (app, prefix_bytes) = {
        let apps = shared.apps.borrow();
        let found = apps.route(Some(host.as_bytes()), path.as_bytes());
        let (app, prefix_bytes) = found.ok_or("no application is reached by this name and path")?;
        (Rc::clone(app), prefix_bytes)
    };
    let joint = if path.contains('?') { '&' } else { '?' };
    let path = format!("{}{joint}domain={host}", &path[prefix_bytes..]);
    let exchange = own_request::get(Asked { path: &path, host, https: true }, &app, shared)?;
    shared.turn.activate(&app);
    app.submit(&exchange, Audience::Public).map_err(|refusal| refusal.why().to_owned())?;
    own_request::status(&exchange, &app).await
}
