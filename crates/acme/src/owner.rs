//! Who serves clients and the authority with what is obtained.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use crate::proof::Proof;

/// The server: it shows proofs to the authority, and uses the certificates.
pub trait Owner: Send + Sync {
    /// Publishes the proof.
    fn show(&self, proof: &Proof);
    /// Withdraws it.
    fn take_back(&self, proof: &Proof);
    /// Whether clients can get the certificate in this file, with its key; if not, why.
    ///
    /// # Errors
    /// The reason.
    fn can_use(&self, file: &Path) -> Result<(), String>;
    /// There is another certificate in the folder.
    fn has_changed(&self);
    /// A step is passed at which a test may end this process.
    fn passes(&self, step: &'static str) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}
