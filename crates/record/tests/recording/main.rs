//! Tests of how plans are recorded: as straight lines for one row, and as lane programs for many rows at once.

mod lanes;
mod lines;
