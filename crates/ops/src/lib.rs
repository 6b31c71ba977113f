//! The operator registry of cembra: typing, evaluation and lowering of every operator, and the tape
