//! Why there is no certificate, and what to do about it.

use std::error::Error as _;
use std::time::SystemTime;

use instant_acme::{Error, Problem as Answer};

use crate::client::Refusal;

/// How the authority looks whether a name is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// At an entry in the DNS that a program makes.
    Dns,
    /// At port 80.
    Http,
    /// At port 443.
    Tls,
}

/// What failed, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Problem {
    pub(crate) what: String,
    pub(crate) remedy: String,
    /// The authority asks for fewer requests.
    pub(crate) is_at_limit: bool,
    /// When it may be asked again, if it has named a time.
    pub(crate) retry_at: Option<SystemTime>,
}

impl Problem {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Problem { what: what.into(), remedy: remedy.into(), is_at_limit: false, retry_at: None }
    }

    /// With what the last answer of the authority has asked for.
    pub(crate) fn with(mut self, refusal: Refusal) -> Self {
        self.is_at_limit |= refusal.is_at_limit;
        self.retry_at = refusal.until;
        self
    }

    /// What an authority has answered while it looked after `host`.
    pub(crate) fn of_answer(host: &str, answer: &Answer) -> Self {
        let kind = kind(answer);
        let details = answer.detail.clone().unwrap_or_else(|| answer.to_string());
        let mut problem = Problem::new(format!("the authority says: {details}"), remedy_for(kind, host));
        problem.is_at_limit = is_limit(answer);
        problem
    }

    /// What an authority has found when it looked at `host` this way.
    pub(crate) fn of_proof(host: &str, answer: &Answer, way: Way) -> Self {
        let mut problem = Problem::of_answer(host, answer);
        match (way, kind(answer)) {
            (Way::Dns, "connection" | "dns" | "unauthorized" | "incorrectResponse") => {
                problem.remedy = format!(
                    "Let the program of `acme_dns_hook` make the entry in the zone of {host}, and end when all servers of the zone \
                     answer with it"
                );
            }
            (Way::Tls, "connection") => problem.remedy = remedy_for("tls", host),
            _ => {}
        }
        problem
    }

    /// Why a request to the authority failed.
    pub(crate) fn of_request(host: &str, directory: &str, error: &Error) -> Self {
        match error {
            Error::Api(answer) => Problem::of_answer(host, answer),
            Error::Timeout(_) => Problem::new(
                "the authority has not come to a decision in time",
                "Highball tries again; look at the status page of the authority",
            ),
            error => Problem::new(
                format!("cannot reach {directory}: {}", with_causes(error)),
                "Let this machine reach that address over HTTPS (firewall, DNS, clock), or name another with `acme_directory`",
            ),
        }
    }
}

/// The type without its namespace.
fn kind(answer: &Answer) -> &str {
    let kind = answer.r#type.as_deref().unwrap_or_default();
    kind.rsplit(':').next().unwrap_or_default()
}

/// Whether there were too many requests, or certificates.
pub(crate) fn is_limit(answer: &Answer) -> bool {
    kind(answer) == "rateLimited" || answer.status == Some(429)
}

/// An error with what it stems from: the last of them is what people need.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

/// What to do about a problem of this type (RFC 8555 section 6.7).
fn remedy_for(kind: &str, host: &str) -> String {
    match kind {
        "connection" => format!(
            "Make port 80 of {host} reach this server from the internet: check DNS entries, firewalls and port forwarding"
        ),
        "dns" => format!("Add a DNS entry (A or AAAA) for {host} with the address of this machine"),
        "unauthorized" | "incorrectResponse" => format!(
            "Another server has answered for {host}: make its DNS entries (A and AAAA) name only this machine"
        ),
        "caa" => format!("Allow this authority in the CAA record of {host}, or remove the record"),
        "tls" => format!("Make port 443 of {host} reach this server. No proxy on the way may terminate TLS"),
        "rateLimited" => "Highball tries again later. For testing, use the authority's staging directory (`acme_directory`)".into(),
        "rejectedIdentifier" | "unsupportedIdentifier" => {
            format!("The authority issues no certificate for {host}: use a public name that you control")
        }
        "externalAccountRequired" => {
            "This authority requires an account that you create on its site. Set `acme_eab_kid` to its key identifier, and put the HMAC \
             key into the file of `acme_eab_key_file`"
                .into()
        }
        "accountDoesNotExist" => "The account is gone: remove the folder `accounts` in the state folder".into(),
        _ => "Highball tries again; if that does not help, see the documentation of the authority".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: &str) -> Answer {
        let text =
            format!(r#"{{"type":"urn:ietf:params:acme:error:{kind}","detail":"details","status":400}}"#);
        serde_json::from_str(&text).expect("a problem document")
    }

    #[test]
    fn each_kind_has_its_remedy() {
        for (kind, words) in [
            ("connection", "port 80 of blog.test"),
            ("dns", "DNS entry"),
            ("caa", "CAA record"),
            ("unauthorized", "Another server"),
            ("rateLimited", "later"),
            ("malformed", "tries again"),
        ] {
            let problem = Problem::of_answer("blog.test", &answer(kind));
            assert!(problem.remedy.contains(words), "{kind}: {}", problem.remedy);
            assert_eq!(problem.what, "the authority says: details");
            assert_eq!(problem.is_at_limit, kind == "rateLimited");
        }
    }
    #[test]
    fn the_remedy_is_for_the_way_in_which_the_authority_has_looked() {
        for (way, kind, words) in [
            (Way::Http, "connection", "port 80 of blog.test"),
            (Way::Tls, "connection", "port 443 of blog.test"),
            (Way::Dns, "unauthorized", "acme_dns_hook"),
            (Way::Dns, "dns", "acme_dns_hook"),
            (Way::Dns, "caa", "CAA record"),
            (Way::Tls, "rateLimited", "later"),
        ] {
            let problem = Problem::of_proof("blog.test", &answer(kind), way);
            assert!(problem.remedy.contains(words), "{way:?} {kind}: {}", problem.remedy);
        }
    }
}
