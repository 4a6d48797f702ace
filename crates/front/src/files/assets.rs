//! The digests in the names of assets, and which assets are given out as they are.

use highball_link::{AssetDigest, PlainAsset};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Whether some contents are given out as they are, and others are not.
pub(super) fn depends_on_content(asset: &PlainAsset) -> bool {
    asset.text || !asset.unless.is_empty()
}

/// Whether this content is given out as it is.
pub(super) fn allows(asset: &PlainAsset, content: &[u8]) -> bool {
    let is_plain_text = || {
        std::str::from_utf8(content).is_ok()
            && !content.starts_with("\u{feff}".as_bytes())
            && !content.contains(&b'\r')
    };
    let contains = |mark: &String| memchr::memmem::find(content, mark.as_bytes()).is_some();
    (!asset.text || is_plain_text()) && !asset.unless.iter().any(contains)
}

/// Takes the content of a file, piece by piece.
pub(super) enum Hasher {
    Sha256(Sha256),
    Sha1(Sha1),
}

impl Hasher {
    /// One for this kind of digest.
    pub(super) fn of(digest: &AssetDigest) -> Hasher {
        match digest {
            AssetDigest::Sprockets { .. } => Hasher::Sha256(Sha256::new()),
            AssetDigest::Propshaft { .. } => Hasher::Sha1(Sha1::new()),
        }
    }

    /// The digits for a file whose content it was given.
    pub(super) fn digits(self, digest: &AssetDigest) -> String {
        let (AssetDigest::Sprockets { version } | AssetDigest::Propshaft { version }) = digest;
        match self {
            Hasher::Sha256(content) if version.is_empty() => hexadecimal(&content.finalize()),
            Hasher::Sha256(content) => {
                let versioned = Sha256::new().chain_update(version).chain_update(content.finalize());
                hexadecimal(&versioned.finalize())
            }
            Hasher::Sha1(content) => hexadecimal(&content.chain_update(version).finalize()[..4]),
        }
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(piece),
            Hasher::Sha1(hasher) => hasher.update(piece),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
