use super::*;
use proptest::prelude::*;

fn masked(text: &str) -> String {
    Secrets::default().masked(text)
}

fn secrets(variables: &[(&str, &str)]) -> Secrets {
    let environment = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Secrets::of_environment(&environment)
}

/// A text, and what is shown of it.
const SECRETS: &[(&str, &str)] = &[
    // Tokens by their shape.
    ("charge failed: sk_live_4eC39HqLyjWDarjtT1", "charge failed: [masked]"),
    ("Invalid API Key provided: sk_test_4eC39HqL", "Invalid API Key provided: [masked]"),
    ("signed by whsec_abcdEFGH1234", "signed by [masked]"),
    ("git@ghp_0123456789abcdefghij", "git@[masked]"),
    ("pat github_pat_11ABCDEFG0abcdefghij_klm", "pat [masked]"),
    ("glpat-abcdEFGH1234ijkl.01", "[masked]"),
    ("slack: xoxb-123456789012-abcdefGHIJ", "slack: [masked]"),
    ("xoxp-1234-abcd, xoxa-2-abcdef, xoxr-abcdef, xoxs-abcdef", "[masked], [masked], [masked], [masked]"),
    ("The key AKIAIOSFODNN7EXAMPLE is not active", "The key [masked] is not active"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0 expired", "jwt [masked] expired"),
    ("bot 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1 blocked", "bot [masked] blocked"),
    ("account AC0123456789abcdef0123456789abcdef", "account [masked]"),
    ("BAhJIhlzb21ldGhpbmc=--da39a3ee5e6b4b0d3255bfef95601890afd80709", "[masked]"),
    // Settings of connection strings and signed URLs.
    (
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=a/b+c==;EndpointSuffix=y",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=[masked];EndpointSuffix=y",
    ),
    (
        "https://x.blob.core.windows.net/c/b?sv=2024&se=2026&sig=a%2Fb%3D&sp=r",
        "https://x.blob.core.windows.net/c/b?sv=2024&se=2026&sig=[masked]&sp=r",
    ),
    (
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=0a1b2c&X-Amz-Expires=60",
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=[masked]&X-Amz-Expires=60",
    ),
    (
        "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=IQoJ",
        "https://b.s3.amazonaws.com/k?X-Amz-Security-Token=[masked]",
    ),
    // Credentials of HTTP.
    ("got Bearer abc123XYZ, expired", "got Bearer [masked], expired"),
    ("Bearer abcdefghijklmnopqrstuvwxyz", "Bearer [masked]"),
    ("Authorization: Basic x", "Authorization: [masked]"),
    ("Authorization: Basic bWU6aHVudGVy", "Authorization: [masked]"),
    ("Authorization: Digest username=\"me\", response=\"abc\"", "Authorization: [masked]"),
    (
        "\"HTTP_AUTHORIZATION\"=>\"Basic bWU6aHVudGVy\", \"b\"=>1",
        "\"HTTP_AUTHORIZATION\"=>\"[masked]\", \"b\"=>1",
    ),
    ("sent basic bWU6aHVudGVy= to it", "sent basic [masked] to it"),
    ("Cookie: theme=dark; sid=abcdef; other=x y", "Cookie: [masked]"),
    ("curl -H 'Cookie: a=b; c=d' http://x", "curl -H 'Cookie: [masked]' http://x"),
    ("Set-Cookie: sid=abc; path=/", "Set-Cookie: [masked]"),
    ("X-CSRF-Token: abc", "X-CSRF-Token: [masked]"),
    // PEM.
    (
        "key -----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n  def=\n-----END RSA PRIVATE KEY----- x",
        "key -----BEGIN RSA PRIVATE KEY-----\n[masked]\n  [masked]\n-----END RSA PRIVATE KEY----- x",
    ),
    ("pem=\"-----BEGIN PRIVATE KEY-----\\nMIIEabc\\n-----END PRIVATE KEY-----\\n\"", "pem=\"[masked]\""),
    (
        "x: \"-----BEGIN PRIVATE KEY-----\\nMIIEabc\\n-----END PRIVATE KEY-----\\n\"",
        "x: \"-----BEGIN PRIVATE KEY-----[masked]-----END PRIVATE KEY-----\\n\"",
    ),
    ("  password: @dmin", "  password: [masked]"),
    ("  password: ENVy", "  password: [masked]"),
    ("  password: abc(d", "  password: [masked]"),
    ("  password: &amp0x", "  password: [masked]"),
    ("no code=c0deV", "no code=[masked]"),
    ("-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEI", "-----BEGIN EC PRIVATE KEY-----\n[masked]"),
    ("  MIIEowIBAAKCAQEAx0Yj8l2kq9mN3pQ7rS5tU1vW2xY4z6A8bC\n  0dEf==\nend", "  [masked]\n  [masked]\nend"),
    // Webhooks.
    (
        "POST https://hooks.slack.com/services/T000/B000/abc failed",
        "POST https://hooks.slack.com/services/[masked] failed",
    ),
    ("https://discord.com/api/webhooks/123/a_b-c: 404", "https://discord.com/api/webhooks/[masked] 404"),
    ("https://api.telegram.org/bot1:abc/sendMessage", "https://api.telegram.org/bot[masked]"),
    // Users and passwords.
    ("postgres://me:hunter2@db/blog", "postgres://me:[masked]@db/blog"),
    ("https://t0ken@example.org/x", "https://[masked]@example.org/x"),
    ("https://t0ken:@example.org/x", "https://[masked]@example.org/x"),
    ("a://u:p@h and b://u:p@ss@h", "a://u:[masked]@h and b://u:[masked]@h"),
    ("cannot reach pg://me:p/w@rd\"x'y@db/blog: refused", "cannot reach pg://me:[masked]@db/blog: refused"),
    ("(\"pg://me:pw@db/blog\", 1)", "(\"pg://me:[masked]@db/blog\", 1)"),
    ("ldap://cn=admin,dc=org:hunter2@ldap:389/", "ldap://cn=admin,dc=org:[masked]@ldap:389/"),
    ("login me:hunter2@db.example.org", "login me:[masked]@db.example.org"),
    ("curl -u me:hunter2 http://x", "curl -u me:[masked] http://x"),
    ("curl --user 'me:hunter 2' x", "curl --user 'me:[masked]' x"),
    ("ldapsearch -D cn=admin -w hunter2 -b dc=x", "ldapsearch -D cn=admin -w [masked] -b dc=x"),
    ("bindpw hunter", "bindpw [masked]"),
    ("ldap_bind: cn=admin,dc=org hunter2", "ldap_bind: [masked]"),
    ("mysql -u root -phunter2 db", "mysql -u root -p[masked] db"),
    ("tool --password hunter --port 1", "tool --password [masked] --port 1"),
    // Sentences.
    ("wrong password 'x' for me", "wrong password '[masked]' for me"),
    ("wrong password \"it's \\\"x\\\" y\" for me", "wrong password \"[masked]\" for me"),
    ("the password is opensesame", "the password is [masked]"),
    ("the password is open sesame", "the password is [masked]"),
    ("no user with password hunter2!x", "no user with password [masked]"),
    ("apikey opensesame rejected", "apikey [masked] rejected"),
    ("api key x rejected", "api key [masked] rejected"),
    ("token abc123def not found", "token [masked] not found"),
    // Settings.
    ("  password: hunter2", "  password: [masked]"),
    ("  password: correct horse battery", "  password: [masked]"),
    ("  password: p/w@rd\"x'y", "  password: [masked]"),
    ("  password: 'it''s x' # here", "  password: '[masked]' # here"),
    ("x = { \"api_key\" => \"abc\", b: 1 }", "x = { \"api_key\" => \"[masked]\", b: 1 }"),
    ("{\"password\":\"a \\\"b\\\" c\",\"b\":1}", "{\"password\":\"[masked]\",\"b\":1}"),
    ("\"{\\\"password\\\":\\\"a b\\\",\\\"b\\\":1}\"", "\"{\\\"password\\\":\\\"[masked]\\\",\\\"b\\\":1}\""),
    ("password=abc def host=db user=me", "password=[masked] host=db user=me"),
    ("/login?token=abc&x=1", "/login?token=[masked]&x=1"),
    ("/cb?code=abc&state=d&x=1 failed", "/cb?code=[masked]&state=[masked]&x=1 failed"),
    (
        "Parameters: {\"code\"=>\"abc\", \"pin\" => \"1234\", \"page\"=>\"2\"}",
        "Parameters: {\"code\"=>\"[masked]\", \"pin\" => \"[masked]\", \"page\"=>\"2\"}",
    ),
    (
        "DETAIL:  Key (reset_password_token)=(abc) already exists.",
        "DETAIL:  Key (reset_password_token)=([masked]) already exists.",
    ),
    ("ENV[\"STRIPE_KEY\"] = 'sk_live'", "ENV[\"STRIPE_KEY\"] = '[masked]'"),
    ("export TWILIO_SID=ACx1", "export TWILIO_SID=[masked]"),
    ("GITHUB_PAT=abc123 PIN=1234 LICENSE=A-1", "GITHUB_PAT=[masked] PIN=[masked] LICENSE=[masked]"),
    ("password=[masked]hunter2", "password=[masked]"),
    ("accessToken: abc", "accessToken: [masked]"),
    ("GET /password/reset/x7GkZqpLmN2vRs9tBa now", "GET /password/reset/[masked] now"),
];

/// Texts that stay as they are.
const HARMLESS_TEXTS: &[&str] = &[
    "app/models/password.rb:12:in `token'",
    "/usr/lib/ruby/gems/3.1.0/gems/devise-token_auth-1.2.0/lib/token.rb:3:in `call'",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709 is deployed",
    "ActionController::InvalidAuthenticityToken: Can't verify CSRF token authenticity.",
    "Auth::PasswordTooShort: at least 8 characters",
    "PasswordMismatchError: they differ",
    "JWT::ExpiredSignature: Signature has expired",
    "Couldn't find Post with 'id'=123e4567-e89b-12d3-a456-426614174000",
    "PINGED 3 hosts, SHIPPING to 4",
    "the gem 'bcrypt' (3.1.20), 'jwt' and 'omniauth-oauth2' are missing",
    "KeyError: key not found: :milk",
    "ArgumentError: Unknown key: :foo. Valid keys are: :bar",
    "duplicate key value violates unique constraint \"index_users_on_email\"",
    "PG::UndefinedColumn: ERROR:  column \"password\" does not exist",
    "Access denied for user 'root'@'localhost' (using password: YES)",
    "password authentication failed for user \"me\"",
    "Validation failed: Password can't be blank, Password is too short (minimum is 8 characters)",
    "the token is invalid",
    "the password is not set",
    "syntax error, unexpected token 'end' at line 3",
    "JSON::ParserError: unexpected token at 'abc'",
    "undefined method `password' for #<User id: 1>",
    "#<PasswordForm:0x00007f8a>",
    "has_many :posts, foreign_key: \"user_id\", primary_key: :uuid",
    "password: ENV.fetch(\"DB\")",
    "password: <%= ENV[\"DB\"] %>",
    "password = params[:password]",
    "token = user.generate_token(1)",
    "key = name.to_s",
    "a.token == b",
    "pin \"application\", preload: true",
    "Missing `secret_key_base` for it",
    "http://localhost:3000/@me",
    "http://[::1]:3000/@me",
    "mailto:me@example.org, email:me@example.org",
    "Basic authentication is required; Bearer realm=\"x\"; Basic usage",
    "exit code: 1, SQLSTATE: 42P01, state: ready",
    "2026-11-22 07:40:00 +0000 /srv/app/releases/20261122074000/config.ru:12",
    "GET /posts/my-first-post-2024/comments/42",
    "skip_before_action :verify_authenticity_token",
    "render json: { status: 'ok', code: 200 }",
    "node:internal/modules/cjs/loader:1078",
    "cache_key: posts/1-20261122",
    "max_tokens: 500",
    "git@github.com:me/blog.git",
    "sqlite3:db/test.sqlite3, LANG=C.UTF-8 PORT=3000 EXIT_CODE=1",
    "-----BEGIN of the message-----",
];

#[test]
fn secrets_are_masked() {
    let wrong: Vec<String> = SECRETS
        .iter()
        .filter(|(text, shown)| masked(text) != *shown)
        .map(|(text, shown)| format!("{text:?}\n  is    {:?}\n  should be {shown:?}", masked(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_texts_stay_readable() {
    let wrong: Vec<String> = HARMLESS_TEXTS
        .iter()
        .filter(|text| masked(text) != **text)
        .map(|text| format!("{text:?}\n  is {:?}", masked(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn values_are_masked_wherever_they_turn_up() {
    let some = secrets(&[
        ("API_TOKEN", "hunter2-hunter2"),
        ("DATABASE_URL", "pg://me:p%40ss%2Fword@db/x"),
        ("WHATEVER", "x7GkZqpLmN2vRs9tBa"),
        ("DB_PASS", "it's \"quoted\""),
        ("PAGER_SECRET", "postgres"),
    ]);
    assert_eq!(some.masked("bad: hunter2-hunter2!"), "bad: [masked]!");
    assert_eq!(some.masked("no such user with p@ss/word"), "no such user with [masked]");
    assert_eq!(some.masked("no x7GkZqpLmN2vRs9tBa"), "no [masked]");
    assert_eq!(
        some.masked("RuntimeError: it's \"quoted\", it\\'s \\\"quoted\\\""),
        "RuntimeError: [masked], [masked]"
    );
    assert_eq!(some.masked("cannot start postgres"), "cannot start postgres");
}

#[test]
fn files_of_the_application_tell_secrets_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config")).unwrap();
    for (name, text) in [
        ("config/master.key", "0123456789abcdef\n"),
        ("config/database.yml", "x:\n  password: 'opensesame'\n  url: pg://u:lettherebe@h/x\n"),
        (".env", "GITHUB_PAT=abc123def\nexport SIGNING=\"a b c d\"\nPORT=3000\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let some = Secrets::of(&BTreeMap::new(), folder.path(), None);
    assert_eq!(
        some.masked("0123456789abcdef / opensesame / lettherebe / abc123def / a b c d / 3000"),
        "[masked] / [masked] / [masked] / [masked] / [masked] / 3000"
    );
}

#[test]
fn our_own_words_about_secrets_stay() {
    let some = secrets(&[("API_TOKEN", "hunter2-hunter2")]);
    let text = "Set secret_key_base: put it into config/credentials.yml.enc";
    assert_eq!(some.known_masked(text), text);
    assert_eq!(
        some.known_masked("bundle config hunter2-hunter2 ghp_0123456789"),
        "bundle config [masked] [masked]"
    );
}

/// Texts with pieces of secrets and signs in any order.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(SECRETS).prop_map(|(text, _)| text.to_string()),
        prop::sample::select(vec![
            "password",
            "token: ",
            "key=",
            "Cookie",
            "Bearer ",
            "basic",
            "://",
            "@",
            ":",
            "=",
            "=>",
            "'",
            "\"",
            "\\",
            "\\\"",
            "[masked]",
            "[mask",
            "ed]",
            "\n",
            " ",
            "?",
            "&",
            "code=",
            "-----BEGIN A-----",
            "-----END",
            "eyJ",
            "sk_live_",
            "é",
            "\u{fffd}",
            " is ",
            "-u ",
            "mysql -p",
            "user:",
            "reset/",
            "%5D",
            "%",
            "[",
            "(",
            ")",
            "]",
            ",",
            ";",
            "<",
            "\0",
            "a1B2c3",
        ])
        .prop_map(String::from),
        ".{0,12}",
        "[a-zA-Z0-9+/=_-]{0,50}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn masking_twice_is_masking_once(text in texts()) {
        let mut some = secrets(&[("DB_PASS", "a1B2c3"), ("X_TOKEN", "masked]")]);
        some.add(": token");
        for mask in [Secrets::masked, Secrets::known_masked] {
            let once = mask(&some, &text);
            prop_assert_eq!(&mask(&some, &once), &once);
            prop_assert!(once.len() <= text.len() * MASK.len());
            prop_assert_eq!(once.matches('\n').count(), text.matches('\n').count());
        }
    }

    #[test]
    fn what_is_learned_is_masked(before in "[a-z ]{0,9}", value in "[!-~]{6,20}", after in "[a-z ]{0,9}") {
        let some = secrets(&[("DB_PASS", &value)]);
        prop_assume!(!before.contains(&value) && !after.contains(&value) && !value.contains(MASK));
        prop_assume!(!COMMON.contains(&value.to_ascii_lowercase().as_str()) && !MASK.contains(&value));
        let shown = some.masked(&format!("{before} {value} {after}"));
        prop_assert!(!shown.contains(&value));
    }

    #[test]
    fn targets_and_variables_are_shown_without_panic(text in texts(), name in ".{0,20}") {
        let some = secrets(&[("DB_PASS", "a1B2c3")]);
        let target = some.target(&text);
        prop_assert!(target.len() <= (text.len() + 1) * WITHHELD.len() * 2);
        some.variable("DATABASE_URL", &text);
        some.field(&name, &text);
        some.parameter(&name, &text);
        some.name(&text);
    }
}
