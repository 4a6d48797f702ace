//! How the authority is reached: over HTTPS, with a limit of time for each request, and of bytes for each answer.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use highball_outbound::{client_config, Authorities};
use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::Client as Connections;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

/// The longest that the authority may take for an answer, with the connection.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest answer that is read. Chains of certificates have some kilobytes.
const MOST_BYTES: usize = 256 << 10;

/// Makes requests.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    connections: Connections<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    refusal: Arc<Mutex<Refusal>>,
}

/// How the authority has asked for patience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// When it may be asked again, if it has named a time.
    pub(crate) until: Option<SystemTime>,
    /// There were too many requests.
    pub(crate) is_at_limit: bool,
}

impl Client {
    /// A client for an authority that the certificates in this file vouch for; without a file, the authorities that this machine trusts.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, String> {
        let config = client_config(authorities.map_or(Authorities::OfMachine, Authorities::File))?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(config);
        let connector = connector.https_only().enable_http1().build();
        Ok(Client {
            connections: Connections::builder(TokioExecutor::new()).build(connector),
            refusal: Arc::default(),
        })
    }

    /// What the last answer has asked for.
    pub(crate) fn refusal(&self) -> Refusal {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let is_signed = request.method() == Method::POST;
        let answer = self.connections.request(request).await.map_err(|error| Error::Other(error.into()))?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, MOST_BYTES).collect().await.map_err(Error::Other)?.to_bytes();
        let refusal =
            Refusal::of(parts.status, parts.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()));
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
        if parts.status.is_success() {
            return Ok(Response::from_parts(parts, Full::new(body)).into());
        }
        let body = problem_document(parts.status, body);
        if is_signed {
            return Ok(Response::from_parts(parts, Full::new(body)).into());
        }
        // The answer to a request without a signature is taken for what was asked for.
        Err(Error::Api(serde_json::from_slice(&body)?))
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let answer = tokio::time::timeout(PATIENCE, client.answer(request)).await;
            answer.unwrap_or_else(|_| {
                Err(Error::Other(format!("it has not answered within {} s", PATIENCE.as_secs()).into()))
            })
        })
    }
}

impl Refusal {
    fn of(status: StatusCode, retry_after: Option<&str>) -> Self {
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return Refusal::default();
        }
        let text = retry_after.map(str::trim).unwrap_or_default();
        let until = match text.parse::<u32>() {
            Ok(seconds) => Some(SystemTime::now() + Duration::from_secs(seconds.into())),
            Err(_) => httpdate::parse_http_date(text).ok(),
        };
        Refusal { until, is_at_limit: status == StatusCode::TOO_MANY_REQUESTS }
    }
}

/// A refusal as the client reads it (RFC 7807). What stands before an authority answers with a page.
fn problem_document(status: StatusCode, body: Bytes) -> Bytes {
    let is_document = serde_json::from_slice::<serde_json::Value>(&body).is_ok_and(|found| found.is_object());
    if is_document {
        return body;
    }
    serde_json::json!({ "detail": format!("status {status}"), "status": status.as_u16() }).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_names_a_time_in_seconds_or_as_a_date() {
        let soon = Refusal::of(StatusCode::TOO_MANY_REQUESTS, Some("120"));
        let left = soon.until.expect("a time").duration_since(SystemTime::now()).expect("later");
        assert!(soon.is_at_limit && (100..=120).contains(&left.as_secs()));
        let date = Refusal::of(StatusCode::SERVICE_UNAVAILABLE, Some("Fri, 31 Dec 1999 23:59:59 GMT"));
        assert_eq!(date.until, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(946_684_799)));
        assert!(!date.is_at_limit);
        for text in [None, Some(""), Some("-1"), Some("99999999999999999999"), Some("soon")] {
            assert_eq!(Refusal::of(StatusCode::TOO_MANY_REQUESTS, text).until, None, "{text:?}");
        }
        assert_eq!(Refusal::of(StatusCode::OK, Some("120")), Refusal::default());
    }

    #[test]
    fn a_page_becomes_a_problem_with_its_status() {
        let read = |body: &'static str| {
            let document = problem_document(StatusCode::BAD_GATEWAY, body.into());
            serde_json::from_slice::<instant_acme::Problem>(&document).expect("a document").detail
        };
        assert_eq!(read("<h1>Bad gateway</h1>").as_deref(), Some("status 502 Bad Gateway"));
        assert_eq!(read(r#"{"detail":"words"}"#).as_deref(), Some("words"));
    }
}
