//! Masking ends, twice is as good as once, and texts grow by masks alone.

#![no_main]

use highball_secrets::{Secrets, MASK};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut secrets = Secrets::default();
    secrets.add(text.get(..8).unwrap_or_default());
    let masked = secrets.masked(text);
    assert_eq!(secrets.masked(&masked), masked);
    assert!(masked.len() <= text.len() * MASK.len());
    secrets.target(text);
    secrets.variable("DATABASE_URL", text);
});
