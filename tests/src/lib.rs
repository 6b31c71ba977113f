//! Conformance with the golden data: what Arolla returned for operators and expressions, read from `tests/golden` and
//! compared with what cembra's backends return. The formats are described in `tests/golden/README.md`.
//!
//! Reading and comparing know nothing of how cembra evaluates; that is behind [`engine::Engine`].

pub mod backend;
pub mod closeness;
pub mod conformance;
pub mod decode;
pub mod engine;
pub mod expression;
pub mod files;
pub mod hostile;
pub mod operator;
pub mod problem;
pub mod record;
pub mod report;
pub mod tensor;
pub mod universe;
pub mod vocabulary;
