//! Expressions: the untyped hash-consed graph with its source spans, the builder, the text language, and files.
//!
//! Operators are only names in this crate. The registry (`cembra-ops`) defines their meaning, types and implementation. The only table of operators
//! in this crate maps infix tokens to operator names, for both parser and printer.

mod bodies;
mod builder;
mod calls;
mod definitions;
mod graph;
mod ids;
mod infix;
mod model_test;
mod name_index;
mod places;
mod program;
mod reach;
mod text;
mod tile_rule;
mod vocabulary;
mod warnings;
mod wire;

pub use bodies::FunctionBodies;
pub use builder::{Builder, Expr, IntoExpr};
pub use calls::Calls;
pub use definitions::{Defines, Definition, Definitions};
pub use graph::{Graph, Node};
pub use ids::{NameId, NodeId};
pub use infix::{ASSIGN_LABELS, AT_LABELS, BIND_LABELS, BLOCK, tokens, written};
pub use model_test::{Expected, Literal, ModelTest, TestCase, TestValue};
pub use name_index::{NameIndex, NameKind, NamedPlace, Referent};
pub use program::{Extern, Input, Output, PartialProgram, Program};
pub use reach::reached_operands;
pub use text::{
    CursorContext, ExpectedAt, Foreign, ForeignUse, KEYWORDS, OpenCall, POSITIONAL_WORDS, QuoteFault, Resolver,
    Sources, UsedFile, closing_quote, cursor_context, foreign_hint, foreign_names, format, found_delimiter,
    is_plain_name, parse, parse_for, parse_partially, parse_sources, parse_type, parse_value, parse_values, print,
    print_default, print_expression, print_input_type, print_literal, print_type, print_value, spelled_default,
    tensor_hint, write_printed,
};
pub use tile_rule::{AxisCut, TileRule};
pub use vocabulary::{ArgumentForm, Callable, Integers, Parameter, Vocabulary};
pub use warnings::{SimilarName, find_warnings, place_within};
pub use wire::{read_binary, write_binary};
