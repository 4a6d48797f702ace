//! How a certificate is obtained: an account, an order, the proof that the name is ours, and the certificate.

use std::time::Duration;

use highball_config::AcmeSettings;
use instant_acme::{
    Account, AccountBuilder, AuthorizationStatus, ChallengeType, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, RetryPolicy,
};
use tracing::warn;
use zeroize::Zeroizing;

use crate::folder::Folder;
use crate::keeper::Owner;
use crate::problem::Problem;
use crate::proof::Proof;

/// How long the authority may take to look whether a name is ours, and to issue the certificate.
const PATIENCE: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(60));

/// What is shown to the authority, and is taken back when this is dropped.
struct Shown<'a> {
    owner: &'a dyn Owner,
    proofs: Vec<Proof>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.proofs.iter().for_each(|proof| self.owner.take_back(proof));
    }
}

/// Obtains a certificate for this host: PEM, with the key behind it.
pub(crate) async fn obtain(
    host: &str,
    settings: &AcmeSettings,
    folder: &Folder,
    owner: &dyn Owner,
) -> Result<Zeroizing<String>, Problem> {
    let failed = |error: &instant_acme::Error| Problem::of_request(host, &settings.directory, error);
    let account = account(host, settings, folder).await?;
    owner.passes("acme.account_kept").await;
    let identifiers = [Identifier::Dns(host.to_owned())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await.map_err(|error| failed(&error))?;
    owner.passes("acme.ordered").await;
    let mut shown = Shown { owner, proofs: Vec::new() };
    prove(host, settings, &mut order, &mut shown).await?;
    let status = order.poll_ready(&PATIENCE).await.map_err(|error| failed(&error))?;
    if status != OrderStatus::Ready && status != OrderStatus::Valid {
        return Err(why_invalid(host, &mut order).await);
    }
    drop(shown);
    owner.passes("acme.proven").await;
    let key = Zeroizing::new(order.finalize().await.map_err(|error| failed(&error))?);
    let chain = order.poll_certificate(&PATIENCE).await.map_err(|error| failed(&error))?;
    owner.passes("acme.issued").await;
    Ok(Zeroizing::new(format!("{}\n{}", chain.trim_end(), key.as_str())))
}

/// The account with the authority: the one that is kept, or a new one, which is kept before it is used.
async fn account(host: &str, settings: &AcmeSettings, folder: &Folder) -> Result<Account, Problem> {
    let failed = |error: instant_acme::Error| Problem::of_request(host, &settings.directory, &error);
    let unkept = |error: std::io::Error| {
        Problem::new(
            format!("the account cannot be kept in {}: {error}", folder.path().display()),
            "Let Highball's user write there, or name another folder with `state_dir`",
        )
    };
    let kept = folder.account().map_err(unkept)?;
    match kept.map(|kept| serde_json::from_slice(&kept)) {
        Some(Ok(credentials)) => {
            return builder(settings)?.from_credentials(credentials).await.map_err(failed)
        }
        Some(Err(_)) => {
            warn!("the account that is kept in {} cannot be read; another is made", folder.path().display())
        }
        None => {}
    }
    let contacts: Vec<String> = settings.contacts.iter().map(|address| format!("mailto:{address}")).collect();
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
    let directory = settings.directory.clone();
    let (account, credentials) = builder(settings)?.create(&new, directory, None).await.map_err(failed)?;
    let credentials = serde_json::to_vec(&credentials).map(Zeroizing::new);
    let credentials = credentials.map_err(|error| unkept(error.into()))?;
    folder.keep_account(&credentials).map_err(unkept)?;
    Ok(account)
}

/// How requests are made: to an authority that this machine trusts, or that these certificates vouch for.
fn builder(settings: &AcmeSettings) -> Result<AccountBuilder, Problem> {
    let (made, source) = match &settings.authorities {
        Some(file) => (Account::builder_with_root(file), file.display().to_string()),
        None => (Account::builder(), "this machine's certificate authorities".into()),
    };
    made.map_err(|error| {
        Problem::new(
            format!("{source} cannot be used: {error}"),
            "Install the package ca-certificates, or name a file with PEM certificates in `acme_authorities`",
        )
    })
}

/// Shows the authority that the names are ours: over HTTP, or where there is no address for it, in a TLS handshake.
async fn prove(
    host: &str,
    settings: &AcmeSettings,
    order: &mut Order,
    shown: &mut Shown<'_>,
) -> Result<(), Problem> {
    let failed = |error: instant_acme::Error| Problem::of_request(host, &settings.directory, &error);
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(failed)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue; // it was proven before
        }
        let (kind, name) = match settings.has_http {
            true => (ChallengeType::Http01, "HTTP-01"),
            false => (ChallengeType::TlsAlpn01, "TLS-ALPN-01"),
        };
        let mut challenge = authorization.challenge(kind).ok_or_else(|| {
            let what = format!("the authority does not offer {name}");
            Problem::new(
                what,
                "Use another authority (`acme_directory`), or addresses for HTTP and HTTPS (`bind`)",
            )
        })?;
        let answer = challenge.key_authorization();
        let proof = match settings.has_http {
            true => Proof::Text { token: challenge.token.clone(), text: answer.as_str().to_owned() },
            false => Proof::certificate(host, answer.digest().as_ref()).map_err(|error| {
                Problem::new(
                    format!("no certificate can be made for the authority: {error}"),
                    "This is a defect",
                )
            })?,
        };
        shown.owner.show(&proof);
        shown.proofs.push(proof);
        shown.owner.passes("acme.shown").await;
        challenge.set_ready().await.map_err(failed)?;
    }
    Ok(())
}

/// What the authority has found wrong with an order.
async fn why_invalid(host: &str, order: &mut Order) -> Problem {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let Ok(mut authorization) = authorization else { continue };
        let _ = authorization.refresh().await; // what is known without it may do
        if let Some(error) = authorization.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            return Problem::of_answer(host, error);
        }
    }
    match &order.state().error {
        Some(error) => Problem::of_answer(host, error),
        None => Problem::new("the authority refuses the order, and does not say why", "Highball asks again"),
    }
}
