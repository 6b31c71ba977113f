//! The native backend of cembra: tapes played into Cranelift
