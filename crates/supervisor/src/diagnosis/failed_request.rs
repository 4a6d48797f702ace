//! Takes the secrets out of a request that failed.

use highball_link::{FailedRequest, RawRequest};
use highball_secrets::{parameters, Secrets};
use std::borrow::Cow;

/// Most header fields and parameters that are shown, and characters of each.
const SHOWN: usize = 100;
const VALUE_CHARACTERS: usize = 500;
/// The body of a form with more bytes is not read.
const FORM_BYTES: usize = 64 * 1024;

/// What may be shown of a request. What is secret in it becomes known to `secrets`: it may turn up in a message too.
pub(crate) fn shown(request: &RawRequest, status: u16, secrets: &mut Secrets) -> FailedRequest {
    let parameters = parameters_of(request);
    secrets.learn_request(&request.target, &request.fields, &form(request));
    secrets.learn_settings(&String::from_utf8_lossy(small_body(request))); // JSON, and forms in parts
    let cut = |text: String| text.chars().take(VALUE_CHARACTERS).collect::<String>();
    let field = |(name, value): &(String, String)| (cut(secrets.name(name)), cut(secrets.field(name, value)));
    let parameter =
        |(name, value): &(String, String)| (cut(secrets.name(name)), cut(secrets.parameter(name, value)));
    FailedRequest {
        status,
        line: cut(format!("{} {}", secrets.name(&request.method), secrets.target(&request.target))),
        fields: request.fields.iter().take(SHOWN).map(field).collect(),
        parameters: parameters.iter().take(SHOWN).map(parameter).collect(),
    }
}

/// Parameters of the query, then of a form.
fn parameters_of(request: &RawRequest) -> Vec<(String, String)> {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    parameters(query).into_iter().chain(parameters(&form(request))).collect()
}

/// The body, if it is a form.
fn form(request: &RawRequest) -> Cow<'_, str> {
    let is_form = request.fields.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type") && value.starts_with("application/x-www-form-urlencoded")
    });
    String::from_utf8_lossy(if is_form { small_body(request) } else { b"" })
}

fn small_body(request: &RawRequest) -> &[u8] {
    if request.body.len() <= FORM_BYTES {
        &request.body
    } else {
        b""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(target: &str, fields: &[(&str, &str)], body: &str) -> (FailedRequest, Secrets) {
        let mut secrets = Secrets::default();
        let request = RawRequest {
            method: "POST".into(),
            target: target.into(),
            fields: fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            body: body.into(),
        };
        (super::shown(&request, 500, &mut secrets), secrets)
    }

    #[test]
    fn secrets_of_a_request_are_masked_wherever_they_stand() {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        let fields = [
            ("Authorization", "Basic bWU6aHVudGVyMi1odW50ZXIy"), // me:hunter2-hunter2
            ("Cookie", "sid=abcdef123456; theme=dark"),
            ("X-Api-Key", "k3y-k3y-k3y"),
            ("Referer", "http://localhost/?user%5Btoken%5D=t0ken1234"),
            ("Accept", "text/html"),
            form,
        ];
        let target = "/login?q=tea&user%5Btoken%5D=t0ken%31234&next=abcdef123456&of=0pensesame1&page=2";
        let (request, secrets) = shown(target, &fields, "user%5Bpassword%5D=open+sesame&user%5Btitle%5D=Dr");
        let all = format!("{request:?}");
        for secret in ["bWU6", "hunter2", "abcdef123456", "k3y", "t0ken", "sesame"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        let line = "/login?q=tea&user%5Btoken%5D=[masked]&next=[withheld]&of=[withheld]&page=2";
        for kept in [line, "text/html", r#"("user[title]", "Dr")"#, r#"("q", "tea")"#] {
            assert!(all.contains(kept), "{kept} in {all}");
        }
        let message = "no user with open sesame, hunter2-hunter2 or t0ken1234";
        assert_eq!(secrets.masked(message), "no user with [masked], [masked] or [masked]");
    }

    #[test]
    fn tokens_of_paths_and_bodies_are_known_too() {
        let (request, secrets) =
            shown("/password/reset/Zk3fA9bc", &[], r#"{"pin":"x","api_key":"abc def ghi"}"#);
        assert_eq!(request.line, "POST /password/reset/[masked]");
        assert_eq!(secrets.masked("no Zk3fA9bc, abc def ghi"), "no [masked], [masked]");
    }
}
