//! Tests that the agreement between machine code and the runtime changes only on purpose. Files of machine code depend
//! on it, in caches and in other programs.

use cembra_runtime::{FaultKind, interface};

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

/// C programs get the numbers of faults from the header.
#[test]
fn the_header_has_every_kind_of_fault() {
    let header = include_str!("../../include/cembra.h");
    let number =
        |line: &str| line.trim().strip_prefix("CEMBRA_FAULT_")?.split_once(" = ").map(|(_, rest)| rest.to_owned());
    let numbers: Vec<String> = header.lines().filter_map(number).collect();
    let known = FaultKind::ALL.map(|kind| (kind as u32).to_string());
    assert_eq!(numbers.iter().map(|number| number.trim_end_matches(',')).collect::<Vec<_>>(), known);
}
