//! The limits of one parse or build: what keeps a model from a stranger from exhausting the host. Exceeding one is an
//! error that names it. Limits of later stages (frames, code, run time) live with those stages.

use crate::{Code, Diagnostic};

/// How large a model may be. Every field is inclusive: exactly the limit is still allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of source text. Default 16 MiB; never more than 4 GiB, which is what spans can count.
    pub source_bytes: usize,
    /// Levels of brackets, calls and conditions inside each other. Default 256. Sums, `**` and `else if` chains of any
    /// length are one level.
    pub nesting: usize,
    /// Nodes of the graph, function bodies and definitions that nobody uses included. Default 4 million.
    pub nodes: usize,
    /// Bytes of all literals together, each occurrence counted. Default 16 MiB.
    pub literal_bytes: usize,
    /// Bytes of one name, or of one path of an operator. Default 1 KiB.
    pub name_bytes: usize,
    /// Nodes and operands visited while calls of `fn` functions are replaced by their bodies. Default 16 million.
    pub instantiation: usize,
    /// Problems reported before the parser gives up. Default 100.
    pub problems: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            source_bytes: 16 << 20,
            nesting: 256,
            nodes: 4_000_000,
            literal_bytes: 16 << 20,
            name_bytes: 1 << 10,
            instantiation: 16_000_000,
            problems: 100,
        }
    }
}

/// One of the limits, as its message names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    SourceBytes,
    Nesting,
    Nodes,
    LiteralBytes,
    NameBytes,
    Instantiation,
}

impl Limits {
    /// The problem of a model that goes beyond `limit`.
    pub(crate) fn exceeded(&self, limit: Limit) -> Diagnostic {
        let (name, value, unit, hint) = match limit {
            Limit::SourceBytes => ("source_bytes", self.source_bytes, "bytes of text", "split the model"),
            Limit::Nesting => ("nesting", self.nesting, "levels of nesting", "name inner parts with `let`"),
            Limit::Nodes => ("nodes", self.nodes, "nodes", "split the model, or call fewer functions"),
            Limit::LiteralBytes => ("literal_bytes", self.literal_bytes, "bytes of literals", "make long texts inputs"),
            Limit::NameBytes => ("name_bytes", self.name_bytes, "bytes of a name", "choose a shorter name"),
            Limit::Instantiation => {
                ("instantiation", self.instantiation, "steps of function calls", "name repeated calls with `let`")
            }
        };
        Diagnostic::new(Code::Limit, format!("the model exceeds the limit `{name}` of {value} {unit}")).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let limits = Limits::default();
        assert_eq!(
            (limits.source_bytes, limits.nesting, limits.nodes, limits.literal_bytes),
            (16_777_216, 256, 4_000_000, 16_777_216)
        );
    }

    #[test]
    fn an_exceeded_limit_is_named_with_its_value() {
        let problem = Limits { nesting: 3, ..Limits::default() }.exceeded(Limit::Nesting);
        assert_eq!(problem.code(), Code::Limit);
        assert_eq!(problem.message(), "the model exceeds the limit `nesting` of 3 levels of nesting");
    }
}
