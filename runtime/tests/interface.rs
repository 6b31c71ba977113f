//! The agreement between machine code and the runtime changes on purpose only: files of machine code, in caches and in
//! programs of others, depend on it.

use cembra_runtime::interface;

#[test]
fn the_interface_is_that_of_its_revision() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interface.txt");
    if std::env::var_os("CEMBRA_REWRITE").is_some() {
        std::fs::write(path, interface()).expect("written");
    }
    let known = std::fs::read_to_string(path).expect("the known interface");
    assert!(
        known == interface(),
        "the interface changed: raise `INTERFACE_REVISION`, then write the file with CEMBRA_REWRITE=1.\n{}",
        interface()
    );
}
