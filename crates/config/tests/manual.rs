//! `docs/configuration.md` is what the table of options makes.

use std::path::Path;

#[test]
fn the_manual_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("HIGHBALL_BLESS").is_some() {
        std::fs::write(&path, highball_config::manual()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == highball_config::manual(), "docs/configuration.md is out of date: run `just docs`");
}
