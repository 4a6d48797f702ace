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

/// The word that is secret in these, and others that stay.
const SECRET: &str = "opensesame1";

/// Texts with [`SECRET`], which is not shown, and the rest of which stays.
const NESTED: &[&str] = &[
    // Below a telling name: JSON, Ruby's inspect, YAML, Python, JSON in a text, deeper, in lists.
    r#"{"auth":{"password":"opensesame1"}}"#,
    r#"{"auth":{"user":"me","x":"opensesame1"},"page":"shown"}"#,
    r#"{"credentials": {"aws": {"a": {"b": ["opensesame1"]}}}, "page": "shown"}"#,
    r#"{"tokens":["opensesame1","opensesame1"],"page":"shown"}"#,
    r#"{"tokens":[["opensesame1"],[{"x":"opensesame1"}]],"page":"shown"}"#,
    r#"{:auth=>{:password=>"opensesame1", :user=>"me"}, :page=>"shown"}"#,
    r#"{"auth"=>{"x"=>"opensesame1"}, "page"=>"shown"}"#,
    r#"{auth: {password: "opensesame1"}, page: "shown"}"#,
    "{auth: {password: opensesame1}, page: shown}",
    "auth: {password: opensesame1, user: me}\npage: shown",
    "{'auth': {'x': 'opensesame1', 'user': 'me'}, 'page': 'shown'}",
    r#""{\"auth\":{\"x\":\"opensesame1\"},\"page\":\"shown\"}""#,
    r#"#<struct Login auth=#<struct password="opensesame1">, page="shown">"#,
    "{&quot;auth&quot;:{&quot;x&quot;:&quot;opensesame1&quot;},&quot;page&quot;:&quot;shown&quot;}",
    "%7B%22auth%22%3A%7B%22password%22%3A%22opensesame1%22%7D%2C%22page%22%3A%22shown%22%7D",
    "credentials:\n  - opensesame1\n  - opensesame1\npage: shown",
    "private_key: |\n  opensesame1\n  opensesame1\npage: shown",
    "tokens = [\"opensesame1\", 'opensesame1']; page = shown",
    // Signs.
    "password: opensesame1",
    "password=opensesame1 page=shown",
    "password => 'opensesame1', page => 'shown'",
    "password := opensesame1",
    "password -> opensesame1, shown",
    "password \u{2192} opensesame1",
    "password\u{ff1a}opensesame1\u{3002}shown",
    "password\u{ff1d}opensesame1",
    "the password is opensesame1",
    "the password is: opensesame1",
    "the password was \u{201c}opensesame1\u{201d}, shown",
    "the token is now opensesame1",
    "the password is set to opensesame1",
    "password%3Dopensesame1%26page%3Dshown",
    "<password>opensesame1</password><page>shown</page>",
    "<ns:password type=\"x\">opensesame1</ns:password> shown",
    "<password><![CDATA[opensesame1]]></password> shown",
    "<auth><user>me</user><x>opensesame1</x></auth><page>shown</page>",
    "<login password=\"opensesame1\" page='shown'/>",
    "<token value='opensesame1'/> shown",
    "&lt;password&gt;opensesame1&lt;/password&gt; shown",
    "<input type=\"password\" name=\"password\" value=\"opensesame1\"> shown",
    "<add key=\"ApiKey\" value=\"opensesame1\"/> shown",
    "<key>password</key>\n  <string>opensesame1</string> shown",
    "{\"name\":\"DB_PASSWORD\",\"value\":\"opensesame1\"},{\"page\":\"shown\"}",
    "- name: DB_PASSWORD\n  value: opensesame1\n- name: PAGE\n  value: shown",
    "/x?api_key=opensesame1&page=shown",
    "https://me:opensesame1@host/shown",
    "X-Api-Key: opensesame1\nHost: shown",
    "Proxy-Authorization: opensesame1\nHost: shown",
    "tool --password opensesame1 --page shown",
    "tool --api-token=opensesame1 shown",
    "[\"tool\", \"--password\", \"opensesame1\", \"shown\"]",
    "docker login -u me -p opensesame1 shown",
    // Names.
    "dbPassword: opensesame1",
    "db-password: opensesame1",
    "DB_PASSWORD: opensesame1",
    "clientSecret: opensesame1",
    "client-secret: opensesame1",
    "apiKeyV2: opensesame1",
    "x-auth-token: opensesame1",
    "PASSPHRASE: opensesame1",
    "passcode: opensesame1",
];

#[test]
fn values_below_a_telling_name_are_masked_and_others_stay() {
    let wrong: Vec<String> = NESTED
        .iter()
        .map(|text| (text, masked(text)))
        .filter(|(text, shown)| shown.contains(SECRET) || text.contains("shown") && !shown.contains("shown"))
        .map(|(text, shown)| format!("{text:?}\n  is {shown:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tokens: how they begin, of what, and how long the rest is, and how they end. `h`: hexadecimal, `x`: letters and digits.
const TOKENS: &[(&str, char, usize, &str)] = &[
    ("ghp_", 'x', 36, ""),
    ("gho_", 'x', 36, ""),
    ("ghu_", 'x', 36, ""),
    ("ghs_", 'x', 36, ""),
    ("ghr_", 'x', 36, ""),
    ("github_pat_", 'x', 82, ""),
    ("glpat-", 'x', 20, ""),
    ("gldt-", 'x', 20, ""),
    ("glrt-", 'x', 20, ""),
    ("xoxb-", 'x', 40, ""),
    ("xoxp-", 'x', 40, ""),
    ("xoxc-", 'x', 40, ""),
    ("xapp-1-", 'x', 40, ""),
    ("sk_live_", 'x', 24, ""),
    ("rk_live_", 'x', 24, ""),
    ("whsec_", 'x', 32, ""),
    ("AKIA", 'x', 16, ""),
    ("ASIA", 'x', 16, ""),
    ("AIza", 'x', 35, ""),
    ("ya29.", 'x', 60, ""),
    ("GOCSPX-", 'x', 28, ""),
    ("1//0", 'x', 60, ""),
    ("sk-proj-", 'x', 60, ""),
    ("sk-svcacct-", 'x', 60, ""),
    ("sk-", 'x', 48, ""),
    ("sk-ant-api03-", 'x', 90, "AA"),
    ("hf_", 'x', 34, ""),
    ("gsk_", 'x', 52, ""),
    ("npm_", 'x', 36, ""),
    ("pypi-AgEIcHlwaS5vcmc", 'x', 60, ""),
    ("rubygems_", 'h', 48, ""),
    ("dop_v1_", 'h', 64, ""),
    ("doo_v1_", 'h', 64, ""),
    ("shpat_", 'h', 32, ""),
    ("shpss_", 'h', 32, ""),
    ("SG.", 'x', 66, ""),
    ("key-", 'h', 32, ""),
    ("SK", 'h', 32, ""),
    ("AC", 'h', 32, ""),
    ("HRKU-AA", 'x', 58, ""),
    ("dapi", 'h', 32, ""),
    ("dp.pt.", 'x', 43, ""),
    ("hvs.", 'x', 90, ""),
    ("hvb.", 'x', 138, ""),
    ("s.", 'x', 24, ""),
    ("lin_api_", 'x', 40, ""),
    ("ntn_", 'x', 46, ""),
    ("secret_", 'x', 43, ""),
    ("figd_", 'x', 40, ""),
    ("glsa_", 'x', 32, "_0a1b2c3d"),
    ("glc_eyJ", 'x', 60, ""),
    ("NRAK-", 'x', 27, ""),
    ("pscale_tkn_", 'x', 43, ""),
    ("pscale_pw_", 'x', 43, ""),
    ("PMAK-", 'h', 59, ""),
    ("sntrys_", 'x', 60, ""),
    ("123456789:AA", 'x', 33, ""),
    ("AGE-SECRET-KEY-1", 'x', 58, ""),
    ("dckr_pat_", 'x', 27, ""),
    ("fo1_", 'x', 43, ""),
    ("FlyV1 fm2_", 'x', 60, ""),
    ("ops_eyJ", 'x', 200, ""),
    ("sbp_", 'h', 40, ""),
    ("A3-ABC123-", 'x', 26, ""),
    ("tskey-auth-", 'x', 30, ""),
    ("", 'h', 32, "-us12"),
    ("pat-na1-", 'h', 36, ""),
    ("xkeysib-", 'h', 64, "-0a1b2c3d"),
    ("CCIPAT_", 'x', 60, ""),
    ("r8_", 'x', 37, ""),
    ("vck_", 'x', 56, ""),
    ("cfut_", 'x', 40, ""),
    ("AVNS_", 'x', 19, ""),
    ("phx_", 'x', 43, ""),
    ("bkua_", 'h', 40, ""),
    ("lsv2_pt_", 'h', 32, "_0a1b2c3d4e"),
    ("EAAC", 'x', 120, ""),
    ("sha256~", 'x', 43, ""),
];

#[test]
fn tokens_are_known_by_their_shape_within_other_words() {
    let drawn = |kind: char, length: usize| -> String {
        let letters: &[u8] = if kind == 'h' { b"3fa95c07be18d264" } else { b"Zk3fA9bcQ7xLm2Tn8RsV1yWd" };
        (0..length).map(|at| char::from(letters[(at * 7 + at / 5) % letters.len()])).collect()
    };
    let mut wrong = Vec::new();
    let others = ["abcDEF12345678.atlasv1.", "abc8Q~"]
        .map(|begin| format!("{begin}{}", drawn('x', 64).replace('.', "")));
    let others = others.into_iter().map(|token| token.chars().take(23 + 64).collect::<String>());
    let discord = format!("M{}.{}.{}", drawn('x', 23), drawn('x', 6), drawn('x', 30));
    let airtable = format!("pat{}.{}", drawn('x', 14), drawn('h', 64));
    let azure = format!("abc8Q~{}", drawn('x', 34));
    let plaid = "access-production-123e4567-e89b-12d3-a456-426614174000".to_string();
    let table =
        TOKENS.iter().map(|(begin, kind, length, end)| format!("{begin}{}{end}", drawn(*kind, *length)));
    let all = table.chain(others.take(1)).chain([discord, airtable, azure, plaid]);
    for token in all {
        let secret = token.strip_prefix("FlyV1 ").unwrap_or(&token);
        for (before, behind) in [("got ", " from it"), ("(", ")"), ("\"", "\""), ("x=", ", y"), ("", "\n")] {
            let shown = masked(&format!("{before}{token}{behind}"));
            let tail = &secret[secret.len() - 8..];
            if shown.contains(secret)
                || shown.contains(tail)
                || !shown.ends_with(behind.trim_end_matches(", y")) && behind != ", y"
            {
                wrong.push(format!("{before}{token}{behind}\n  is {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

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
    "set this string with `bin/rails credentials:edit`",
    "Run `bin/rails credentials:edit --environment staging`, or rails secrets:setup",
    "RAILS_ENV=production bundle exec rake tokens:expire_all",
    "credentials:show prints them, credentials:diff compares",
    "auth: {provider: ENV[\"X\"], host: params[:host], user: me}",
    "auth = {}; tokens = []; keys = [:id, :name]",
    "{\"auth\":{\"enabled\":true,\"provider\":\"github\",\"scopes\":[\"read\",\"write\"],\"port\":443}}",
    "token = tokens.map { |token| token.value }",
    "auth { |user, pass| user == pass }",
    "@token->next, $token->value",
    "<label for=\"password\">Password</label><input type=\"password\" name=\"password\">",
    "<password></password><token/><secret>nil</secret>",
    "Token.where(key: :id).order(:name)",
    "sk-fading-circle sk-chasing-dot, fw_some_configuration_value_of_it",
    "secret_key_base_of_the_application_in_another_environment.rb",
    "git_access_token_is_missing_from_the_configuration_of_this_application",
    "1//0 and s.to_s, key-value pairs, SKU-0123456789, access-production-servers",
    "password:\n  can't be blank",
    "the secret is in the sauce; the key is to wait",
    "the token is now invalid, and is set to expire",
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

/// Remedies and causes are sentences of our own. What they quote of others is masked, and nothing else.
#[test]
fn in_our_own_words_only_what_they_quote_is_masked() {
    let some = secrets(&[("DB_PASS", "bundle"), ("API_TOKEN", "hunter2-hunter2")]);
    let text =
        "Run bundle install: bin/rails credentials:edit sets secret_key_base: password, hunter2-hunter2";
    assert_eq!(some.own_masked(text, &[]), text);
    let quoted = ["hunter2-hunter2".to_string(), "ghp_0123456789".to_string()];
    assert_eq!(
        some.own_masked("bundle add hunter2-hunter2, or ghp_0123456789", &quoted),
        "bundle add [masked], or [masked]"
    );
}

/// Sentences that look as if they had a secret, and are only shown by what does not look for any in our own words.
const EXAMPLES: &[&str] = &[
    "Provide the key of the credentials: ",
    "Write it as adapter://user:password@",
    "the application has no secret_key_base: ",
];

/// The texts of all tables of causes, in Ruby and in Rust: masking leaves them alone.
#[test]
fn the_remedies_of_all_causes_stay() {
    let sources = [
        include_str!("../../../lib/highball/causes.rb"),
        include_str!("../../../lib/highball/load_errors.rb"),
        include_str!("../../../lib/highball/rails_files.rb"),
        include_str!("../../../lib/highball/checkup.rb"),
        include_str!("../../supervisor/src/core/step/boot.rs"),
        include_str!("../../supervisor/src/core/step/fail.rs"),
        include_str!("../../supervisor/src/shell/boot_failures.rs"),
        include_str!("../../supervisor/src/diagnosis/request_failure.rs"),
    ];
    let mut wrong = Vec::new();
    let mut count = 0;
    for source in sources {
        for line in source.lines().filter(|line| !line.trim_start().starts_with(['#', '/'])) {
            for text in line.split('"').skip(1).step_by(2) {
                count += 1;
                let shown = masked(text);
                assert_eq!(Secrets::default().own_masked(text, &[]), text);
                let is_example = EXAMPLES.iter().any(|begin| text.starts_with(begin));
                if shown != text && !is_example {
                    wrong.push(format!("{text}\n  is {shown}"));
                }
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

/// Texts that an attacker would write to keep a server busy.
#[test]
fn hostile_texts_take_time_in_proportion_to_their_length() {
    for (number, piece) in [
        "{",
        "[",
        "\"",
        "'",
        "\\",
        "auth:{",
        "auth: [",
        "auth:{a ",
        "password:\"",
        "password='",
        "\\\"token",
        "token:",
        "credentials:",
        "<auth>",
        "<auth><",
        "<password ",
        "&quot;password",
        "password&quot;",
        "PIN=",
        "code=a ",
        "code:a'b ",
        "://",
        "a://b:",
        "a:b",
        "-u '",
        "mysql -p",
        "?code=",
        "/reset",
        "sk-",
        "a_",
        "eyJ",
        "x-us",
        "s.",
        "1//0",
        "Q~",
        "token is now ",
        "name=\"token\" ",
        "password: |\n",
        "token:\n- a\n",
        "\u{201c}token",
        "password\u{ff1a}",
        "-----BEGIN ",
        "auth:{\"a\":",
        "auth:{x(",
        "auth:{ENV[",
        "a=>",
        "%22token%22%3A",
    ]
    .into_iter()
    .enumerate()
    {
        let most = if number < 4 { 1 << 20 } else { 1 << 16 };
        let time = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let started = std::time::Instant::now();
            assert!(spans::masked(
                &text,
                Secrets::default().found(&text, &[settings::find, urls::find, shapes::find])
            )
            .is_none_or(|shown| shown.len() <= text.len() * MASK.len()));
            started.elapsed()
        };
        let (short, long) = (time(most / 8), time(most));
        assert!(
            long < short * 40 + std::time::Duration::from_secs(2),
            "{piece:?}: {short:?} for an eighth, {long:?} for all"
        );
    }
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
            "{",
            "}",
            "auth",
            "&quot;",
            "%22",
            "<password>",
            "</password>",
            "\u{ff1a}",
            "\u{201c}",
            "->",
            "value",
            "- ",
            "|",
            "- name: ",
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
