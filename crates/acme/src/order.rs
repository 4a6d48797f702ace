//! How a certificate is obtained: an account, an order, the proof that the name is ours, and the certificate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use base64::Engine as _;
use highball_config::AcmeSettings;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType, ExternalAccountKey,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::{debug, warn};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::folder::{self, Folder};
use crate::hook::{self, Action, Entry};
use crate::owner::Owner;
use crate::problem::{self, Problem, Way};
use crate::proof::Proof;
use crate::renewal::{self, Suggestion};

/// How long the authority may take to look whether a name is ours, and to issue the certificate.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(60));
/// The longest that one attempt may take.
const LONGEST: Duration = Duration::from_secs(300);
/// The longest key of an external account that is read.
const MOST_KEY_BYTES: usize = 4096;

/// The authority, as it is known here. The attempts for all names share it.
pub(crate) struct Authority {
    pub(crate) settings: AcmeSettings,
    pub(crate) folder: Folder,
    pub(crate) owner: Arc<dyn Owner>,
    /// Held while an account is made: all names have the same.
    making_account: Mutex<()>,
}

impl Authority {
    pub(crate) fn new(settings: AcmeSettings, folder: Folder, owner: Arc<dyn Owner>) -> Self {
        Authority { settings, folder, owner, making_account: Mutex::default() }
    }

    /// Obtains a certificate for this host: PEM, with the key behind it. It replaces the certificate that the authority calls so.
    pub(crate) async fn obtain(
        &self,
        host: &str,
        replaced: Option<CertificateIdentifier<'static>>,
    ) -> Result<Zeroizing<String>, Problem> {
        let client = self.client()?;
        let mut shown = Shown { authority: self, proofs: Vec::new(), entries: Vec::new() };
        let obtained = timeout(LONGEST, self.order(host, replaced, &client, &mut shown)).await;
        shown.clean_up(host).await;
        let obtained = obtained.unwrap_or_else(|_| {
            Err(Problem::new(
                format!("the authority has not issued it within {} s", LONGEST.as_secs()),
                "Highball tries again; look at the status page of the authority",
            ))
        });
        obtained.map_err(|problem| problem.with(client.refusal()))
    }

    /// When the authority suggests to renew this certificate. `None`: it suggests nothing.
    pub(crate) async fn suggestion(&self, host: &str, pem: &[u8]) -> Result<Option<Suggestion>, Problem> {
        let client = self.client()?;
        let Some(identifier) = renewal::identifier(pem) else { return Ok(None) };
        let Some(account) = self.kept_account(host, &client).await? else { return Ok(None) };
        match account.renewal_info(&identifier).await {
            Ok((info, ask_in)) => Ok(Some(Suggestion::new(&info, ask_in))),
            Err(instant_acme::Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(self.failed(host, &error)),
        }
    }

    fn failed(&self, host: &str, error: &instant_acme::Error) -> Problem {
        Problem::of_request(host, &self.settings.directory, error)
    }

    /// What makes requests: to an authority that this machine trusts, or that these certificates vouch for.
    fn client(&self) -> Result<Client, Problem> {
        let file = self.settings.authorities.as_deref();
        Client::new(file).map_err(|error| {
            let source = file.map_or_else(
                || "this machine's certificate authorities".into(),
                |file| file.display().to_string(),
            );
            Problem::new(
                format!("{source} cannot be used: {error}"),
                "Install the package ca-certificates, or name a file with PEM certificates in `acme_authorities`",
            )
        })
    }

    async fn order(
        &self,
        host: &str,
        replaced: Option<CertificateIdentifier<'static>>,
        client: &Client,
        shown: &mut Shown<'_>,
    ) -> Result<Zeroizing<String>, Problem> {
        let failed = |error: instant_acme::Error| self.failed(host, &error);
        let account = self.account(host, client).await?;
        self.owner.passes("acme.account_kept").await;
        let mut order = new_order(&account, host, replaced).await.map_err(failed)?;
        self.owner.passes("acme.ordered").await;
        self.prove(host, &mut order, shown).await?;
        let status = order.poll_ready(&PATIENCE).await.map_err(|error| match error {
            instant_acme::Error::Api(answer) => Problem::of_proof(host, &answer, self.way()),
            error => failed(error),
        })?;
        if status != OrderStatus::Ready && status != OrderStatus::Valid {
            return Err(why_invalid(host, &mut order, self.way()).await);
        }
        self.owner.passes("acme.proven").await;
        let key = Zeroizing::new(order.finalize().await.map_err(failed)?);
        let chain = order.poll_certificate(&PATIENCE).await.map_err(failed)?;
        self.owner.passes("acme.issued").await;
        Ok(Zeroizing::new(format!("{}\n{}", chain.trim_end(), key.as_str())))
    }

    /// The account with the authority: the kept one, or a new one, which is kept before it is used.
    async fn account(&self, host: &str, client: &Client) -> Result<Account, Problem> {
        if let Some(account) = self.kept_account(host, client).await? {
            return Ok(account);
        }
        let _alone = self.making_account.lock().await;
        match self.kept_account(host, client).await? {
            Some(account) => Ok(account), // which was made for another name in the meantime
            None => self.new_account(host, client).await,
        }
    }

    fn unkept(&self, error: &io::Error) -> Problem {
        Problem::new(
            format!("cannot store the account in {}: {error}", self.folder.path().display()),
            "Let Highball's user write there, or name another folder with `state_dir`",
        )
    }

    async fn kept_account(&self, host: &str, client: &Client) -> Result<Option<Account>, Problem> {
        let kept = self.folder.account().map_err(|error| self.unkept(&error))?;
        match kept.map(|kept| serde_json::from_slice(&kept)) {
            Some(Ok(credentials)) => {
                let account =
                    Account::builder_with_http(Box::new(client.clone())).from_credentials(credentials);
                account.await.map(Some).map_err(|error| self.failed(host, &error))
            }
            Some(Err(_)) => {
                let folder = self.folder.path().display();
                warn!(
                    name: "acme_account_unreadable", %folder, "cannot read the stored account: creating a new one"
                );
                Ok(None)
            }
            None => Ok(None),
        }
    }

    async fn new_account(&self, host: &str, client: &Client) -> Result<Account, Problem> {
        let external = self.external_account()?;
        let contacts: Vec<String> =
            self.settings.contacts.iter().map(|address| format!("mailto:{address}")).collect();
        let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
        let new =
            NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
        let made = Account::builder_with_http(Box::new(client.clone()))
            .create(&new, self.settings.directory.clone(), external.as_ref())
            .await;
        let (account, credentials) = made.map_err(|error| self.failed(host, &error))?;
        let credentials = serde_json::to_vec(&credentials).map(Zeroizing::new);
        let credentials = credentials.map_err(|error| self.unkept(&error.into()))?;
        let kept = self.folder.keep_account(&credentials, &*self.owner).await;
        kept.map(|()| account).map_err(|error| self.unkept(&error))
    }

    /// The account that the authority knows already, which the one here is bound to (RFC 8555 section 7.3.4).
    fn external_account(&self) -> Result<Option<ExternalAccountKey>, Problem> {
        let Some(external) = &self.settings.external_account else { return Ok(None) };
        let file = external.key_file.display();
        let unusable = |why: &str| {
            Problem::new(
                format!("the key of the external account in {file} cannot be used: {why}"),
                "Write the HMAC key that the authority shows, in Base64, into that file (`acme_eab_key_file`)",
            )
        };
        let read = folder::read(&external.key_file).map_err(|error| unusable(&error.to_string()))?;
        let text = read.ok_or_else(|| unusable("it does not exist"))?;
        let key = key_of(&text).ok_or_else(|| unusable("it is not Base64"))?;
        Ok(Some(ExternalAccountKey::new(external.id.clone(), &key)))
    }

    /// In the DNS, if there is a program for it; else over HTTP, or where there is no address for that, in a TLS handshake.
    fn way(&self) -> Way {
        match (&self.settings.dns_hook, self.settings.has_http) {
            (Some(_), _) => Way::Dns,
            (None, true) => Way::Http,
            (None, false) => Way::Tls,
        }
    }

    /// Shows the authority that the names are ours.
    async fn prove(&self, host: &str, order: &mut Order, shown: &mut Shown<'_>) -> Result<(), Problem> {
        let failed = |error: instant_acme::Error| self.failed(host, &error);
        let (kind, name) = match self.way() {
            Way::Dns => (ChallengeType::Dns01, "DNS-01"),
            Way::Http => (ChallengeType::Http01, "HTTP-01"),
            Way::Tls => (ChallengeType::TlsAlpn01, "TLS-ALPN-01"),
        };
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(failed)?;
            if authorization.status == AuthorizationStatus::Valid {
                continue; // it was proven before
            }
            let mut challenge = authorization.challenge(kind.clone()).ok_or_else(|| {
                Problem::new(
                    format!("the authority does not offer {name}"),
                    "Use another authority (`acme_directory`), or addresses for HTTP and HTTPS (`bind`)",
                )
            })?;
            shown.show(host, &challenge).await?;
            self.owner.passes("acme.shown").await;
            challenge.set_ready().await.map_err(failed)?;
        }
        Ok(())
    }
}

/// An order, in place of a certificate if the authority knows that one. Some give more of these.
async fn new_order(
    account: &Account,
    host: &str,
    replaced: Option<CertificateIdentifier<'static>>,
) -> Result<Order, instant_acme::Error> {
    let identifiers = [Identifier::Dns(host.to_owned())];
    if let Some(replaced) = replaced {
        match account.new_order(&NewOrder::new(&identifiers).replaces(replaced)).await {
            Err(instant_acme::Error::Api(answer)) if problem::is_limit(&answer) => return Err(answer.into()),
            Err(error) => debug!(host, %error, "the order does not say which certificate it replaces"),
            order => return order,
        }
    }
    account.new_order(&NewOrder::new(&identifiers)).await
}

/// The key in this text: Base64 with either alphabet, as authorities show it.
fn key_of(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    if text.is_empty() || text.len() > MOST_KEY_BYTES {
        return None;
    }
    let key = URL_SAFE_NO_PAD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text));
    key.ok().map(Zeroizing::new)
}

/// What is shown to the authority, and is taken back in the end.
struct Shown<'a> {
    authority: &'a Authority,
    proofs: Vec<Proof>,
    entries: Vec<Entry>,
}

impl Shown<'_> {
    async fn show(&mut self, host: &str, challenge: &ChallengeHandle<'_>) -> Result<(), Problem> {
        let answer = challenge.key_authorization();
        let Authority { settings, owner, .. } = self.authority;
        if let Some(program) = &settings.dns_hook {
            let name = format!("_acme-challenge.{}", host.strip_prefix("*.").unwrap_or(host));
            let entry = Entry { name, value: answer.dns_value() };
            self.entries.push(entry.clone()); // a failed attempt may have made a part
            return hook::run(program, Action::Present, &entry).await;
        }
        let proof = match settings.has_http {
            true => Proof::Text { token: challenge.token.clone(), text: answer.as_str().to_owned() },
            false => Proof::certificate(host, answer.digest().as_ref()).map_err(|error| {
                let what = format!("no certificate can be made for the authority: {error}");
                Problem::new(what, "This is a defect")
            })?,
        };
        owner.show(&proof);
        self.proofs.push(proof);
        Ok(())
    }

    /// Removes the entries in the DNS. What remains there does no harm.
    async fn clean_up(mut self, host: &str) {
        let Some(program) = &self.authority.settings.dns_hook else { return };
        for entry in std::mem::take(&mut self.entries) {
            if let Err(problem) = hook::run(program, Action::Cleanup, &entry).await {
                warn!(
                    name: "dns_entry_not_removed", host, %problem, remedy = problem.remedy, "cannot remove an entry in the DNS"
                );
            }
        }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.proofs.iter().for_each(|proof| self.authority.owner.take_back(proof));
    }
}

/// What the authority has found wrong with an order.
async fn why_invalid(host: &str, order: &mut Order, way: Way) -> Problem {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else { continue };
        let _ = authorization.refresh().await; // what is known without it may do
        if let Some(error) = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            return Problem::of_proof(host, error, way);
        }
    }
    match &order.state().error {
        Some(error) => Problem::of_proof(host, error, way),
        None => Problem::new("the authority refuses the order, and does not say why", "Highball tries again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_either_alphabet() {
        let key = Some(&[0xfb, 0xff, 0x01][..]);
        for text in ["-_8B", "+/8B", " -_8B\n"] {
            assert_eq!(key_of(text.as_bytes()).as_ref().map(|key| key.as_slice()), key, "{text}");
        }
        assert_eq!(key_of(b"AQ==").as_ref().map(|key| key.as_slice()), Some(&[1][..]));
        for text in ["", "\n", "a key!", "=", &"A".repeat(MOST_KEY_BYTES + 1)] {
            assert!(key_of(text.as_bytes()).is_none(), "{text}");
        }
    }
}
