//! The pages of `docs/` that are made from data, and what can be checked of all pages by reading: that links lead somewhere, and that
//! the book has every page. What pages show of the command and of Rust is run where those are tested.

mod hostile;
mod links;
mod speed;
mod vocabulary;

use std::path::{Path, PathBuf};

/// Set to write what is made instead of comparing it.
const REWRITE: &str = "CEMBRA_REWRITE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares a page with what it is to be, or writes it.
fn hold(name: &str, page: &str) {
    let path = root().join(name);
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "{name} is out of date: run this test with {REWRITE}=1");
}
