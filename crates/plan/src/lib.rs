//! Plans of prepared cembra expressions: frame layout, slots, blocks, listing and verifier
