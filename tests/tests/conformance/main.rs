//! Golden data, workloads and examples against both backends, and the command `conform`.

mod command;
mod conformance;
mod data;
mod examples;
mod golden;
mod mutants;
mod one_answer;
mod printed;
mod workloads;
