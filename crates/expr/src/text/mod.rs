//! The text language. People write models in this language, and programs are printed in it.
//!
//! ```text
//! program    = [ "numbers" "f64" ( line end | ";" ) ] { statement ( line end | ";" ) }
//! statement  = "input" NAME { "," NAME } [ ":" type [ "=" literal ] ] { "," .. }
//!            | "let" NAME [ ":" type ] "=" expression
//!            | "fn" NAME "(" [ parameter { "," parameter } ] ")" [ ":" type ] "=" expression
//!            | "output" NAME [ ":" type ] "=" expression
//!            | NAME labels ( "=" | "+=" | "-=" | "*=" ) expression      (in a text with tensors)
//!            | "extern" "fn" PATH "(" [ type { "," type } ] ")" ":" type
//!            | "use" TEXT
//!            | "test" TEXT [ "within" NUMBER ] ( case | "{" table "}" )
//!            | expression                          (the last statement of a text without `output`)
//! parameter  = NAME [ ":" type ]
//! case       = "{" [ NAME "=" literal { "," .. } ] "}" "=>" ( "{" [ NAME "=" literal { "," .. } ] "}" | "error" TEXT )
//! table      = names "=>" names { line end literals "=>" ( literals | "error" TEXT ) }
//! expression = "if" expression "then" expression [ "else" expression ]
//!            | operators (the table in `infix`) over postfix
//! postfix    = ( literal | NAME | call | "(" [ expression { "," expression } ] ")" ) { "." DIGITS }
//!            | ( NAME labels | "(" expression ")" ) { "." NAME "(" ")" }      (in a text with tensors)
//! labels     = "(" TEXT ")"
//! call       = PATH "(" [ argument { "," argument } ] ")"          PATH = [ "M." ] NAME { "." NAME }
//! argument   = [ NAME "=" ] expression
//! type       = NAME [ "?" ] | "[" NAME [ "?" ] "]" | "(" [ type { "," type } ] ")"
//! ```
//!
//! * A statement ends at a line end, unless the line end is inside brackets, after an operator, or before a binary operator, `then` or `else`.
//! * Inputs, definitions, functions and outputs share one namespace. A name without a definition is a leaf.
//! * `L.x` is the leaf `x`, even if `x` has another meaning here, and `M.math.add` is the operator. `L["any text"]` is a leaf with any name. `input
//!   "any text"` and `output "any text"` declare an input or an output without defining a name for it.
//! * Literals are described in `literal`.

mod array_literal;
mod context;
mod cursor;
mod delimiter;
mod dict_literal;
mod elsewhere;
mod format;
mod gradient;
mod lexer;
mod literal;
mod number;
mod numbers;
mod parser;
mod printed_test;
mod printer;
mod quoted;
mod scope;
mod sources;
mod spelling;
mod token;
mod types;
mod written_literal;

pub(crate) use lexer::is_word;
pub(crate) use parser::literal_bytes;
pub(crate) use spelling::Spelling;
pub(crate) use token::TokenKind;
pub(crate) use types::write_input_type;
pub(crate) use written_literal::nesting as value_nesting;

pub use context::{CursorContext, ExpectedAt, OpenCall, cursor_context};
pub(crate) use delimiter::quote_fault;
pub use delimiter::{QuoteFault, closing_quote, found_delimiter};
pub use elsewhere::{Foreign, ForeignUse, foreign_hint, foreign_names, tensor_hint};
pub use format::format;
pub use lexer::is_plain_name;
pub(crate) use parser::InputType;
pub use parser::POSITIONAL_WORDS;
pub use printed_test::print_literal;
pub use printer::{print, print_expression};
pub use sources::{Resolver, Sources, UsedFile};
pub use token::KEYWORDS;
pub use types::{print_input_type, print_type};
pub use written_literal::{print_value, write_printed};

use crate::{Literal, PartialProgram, Program, TileRule, Vocabulary};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics, Error, Limits, ScalarValue, Value};
use cursor::{Cursor, Stop};

/// Parses a model.
///
/// # Errors
/// All problems of the text that can be found at once, in the order of the text.
pub fn parse(source: &str, vocabulary: &dyn Vocabulary, limits: &Limits) -> Result<Program, Error> {
    Ok(parser::Parser::new(source, vocabulary, limits).run()?)
}

/// Parses a model whose inputs the caller declares. The text must not have `input` lines for these inputs. Spans count from the start of the text.
///
/// ```
/// use cembra_expr::{Callable, Vocabulary, parse_for};
/// use cembra_runtime::{QType, Scalar};
/// use cembra_value::Limits;
///
/// struct None;
/// impl Vocabulary for None {
///     fn resolve(&self, _: &str) -> Option<Callable<'_>> { Option::None }
///     fn suggest(&self, _: &str) -> Vec<String> { Vec::new() }
/// }
/// let inputs = [("a", QType::Tensor(Scalar::Float64, 2))];
/// let error = parse_for("t(\"j,i\") = b(\"i,j\")", &inputs, &None, &Limits::default()).unwrap_err();
/// assert_eq!(error.span().map(|span| span.start), Some(11));
/// ```
///
/// # Errors
/// All problems of the text that can be found at once, in the order of the text.
pub fn parse_for(
    source: &str,
    inputs: &[(&str, QType)],
    vocabulary: &dyn Vocabulary,
    limits: &Limits,
) -> Result<Program, Error> {
    Ok(parser::Parser::new(source, vocabulary, limits).with_inputs(inputs).run()?)
}

/// Parses a model of several files.
///
/// # Errors
/// All problems of the texts that can be found at once, including files that cannot be read.
pub fn parse_sources(sources: &Sources, vocabulary: &dyn Vocabulary, limits: &Limits) -> Result<Program, Error> {
    Ok(parser::Parser::of_sources(sources, vocabulary, limits).run()?)
}

/// Parses as much as possible of a model with several files, also if texts have errors. This is for editors, in which a text is often incomplete.
///
/// ```
/// use cembra_expr::{Callable, NameKind, Sources, Vocabulary, parse_partially};
/// use cembra_value::{Limits, Span};
///
/// struct None;
/// impl Vocabulary for None {
///     fn resolve(&self, _: &str) -> Option<Callable<'_>> { Option::None }
///     fn suggest(&self, _: &str) -> Vec<String> { Vec::new() }
/// }
/// let read = parse_partially(&Sources::alone("m.cem", "input x: f64\nlet y = x *\noutput z = x"), &None, &Limits::default());
/// assert_eq!(read.problems[0].message(), "expected a value, found the end of the statement");
/// assert_eq!(read.program.outputs.len(), 1);
/// let names: Vec<_> = read.names.names().iter().map(|one| (one.kind, one.name.start)).collect();
/// assert_eq!(names, [(NameKind::Input, 6), (NameKind::Let, 17), (NameKind::Output, 32)]);
/// let x = Span::new(6, 7);
/// assert_eq!(read.names.uses_of(x).map(|at| at.start).collect::<Vec<_>>(), [21, 36]);
/// ```
#[must_use]
pub fn parse_partially(sources: &Sources, vocabulary: &dyn Vocabulary, limits: &Limits) -> PartialProgram {
    parser::Parser::of_sources(sources, vocabulary, limits).run_partially()
}

/// Parses a literal: `1.5`, `-3`, `"abc"`, `missing[f32]`, `7i64`, `f64{1}`, `(1, true)`.
///
/// # Errors
/// If the text is not a literal.
pub fn parse_value(text: &str) -> Result<Value, Error> {
    Ok(read_whole(text, &Limits::default(), |cursor| cursor.read_value())?)
}

/// Parses literals in square brackets, the elements of an array: `[1.5, missing, -3]`, `[]`.
///
/// # Errors
/// If the text is not a list of literals.
pub fn parse_values(text: &str) -> Result<Vec<Value>, Error> {
    Ok(read_whole(text, &Limits::default(), |cursor| cursor.read_values())?)
}

/// Parses a literal, or literals in square brackets.
pub(crate) fn parse_literal(text: &str) -> Result<Literal, Diagnostics> {
    read_whole(text, &Limits::default(), |cursor| cursor.read_literal())
}

/// Parses a type: `f32`, `i64?`, `(f32, text?)`, `OPTIONAL_INT64`. For an input, `[f32]` also guarantees that no element of the array is missing.
/// This guarantee is dropped: `[f32]` gives the same type as `[f32?]`.
///
/// # Errors
/// If the text is not a type.
pub fn parse_type(text: &str) -> Result<QType, Error> {
    Ok(read_whole(text, &Limits::default(), |cursor| cursor.read_type().map(Some))?)
}

/// Parses a literal that is part of a larger file, so the limit `source_bytes` does not apply to it.
pub(crate) fn parse_value_within(text: &str, limits: &Limits) -> Result<Value, Diagnostics> {
    read_whole(text, &unmeasured(limits), |cursor| cursor.read_value())
}

/// Parses a type that is part of a larger file, so the limit `source_bytes` does not apply to it.
pub(crate) fn parse_type_within(text: &str, limits: &Limits) -> Result<QType, Diagnostics> {
    read_whole(text, &unmeasured(limits), |cursor| cursor.read_type().map(Some))
}

/// Parses the type and promise (guarantee about values) of an input in a larger file, so the limit `source_bytes` does not apply to `text`.
pub(crate) fn parse_input_type_within(text: &str, limits: &Limits) -> Result<InputType, Diagnostics> {
    read_whole(text, &unmeasured(limits), |cursor| cursor.read_type_of_input().map(Some))
}

/// Parses a `tile` statement in a larger file, so the limit `source_bytes` does not apply to `text`.
pub(crate) fn parse_tile_rule_within(text: &str, limits: &Limits) -> Result<TileRule, Diagnostics> {
    read_whole(text, &unmeasured(limits), |cursor| cursor.read_tile_statement().map(Some))
}

/// Returns the default of an input as the text language writes it. This is the scalar `default`, or `[]` or `{}` if the default is the empty list
/// or dictionary of the type `empty`. Returns `None` if `default` and `empty` are `None`.
#[must_use]
pub fn spelled_default(default: Option<&ScalarValue>, empty: Option<&QType>) -> Option<String> {
    match default {
        Some(default) => Some(print_default(default)),
        None => empty.map(|qtype| if qtype.as_map().is_some() { "{}" } else { "[]" }.to_owned()),
    }
}

/// Returns `value`, the default of an input, as the text language writes it.
#[must_use]
pub fn print_default(value: &ScalarValue) -> String {
    let mut out = String::new();
    written_literal::write_default(&mut out, value);
    out
}

/// Returns limits for a part of a text that is in memory already: without a limit on source bytes.
fn unmeasured(limits: &Limits) -> Limits {
    limits.source_bytes(usize::MAX)
}

/// Parses a text that `read` must consume entirely.
fn read_whole<T>(
    text: &str,
    limits: &Limits,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<Option<T>, Stop>,
) -> Result<T, Diagnostics> {
    let mut cursor = Cursor::new(text, limits);
    let mut found = read(&mut cursor);
    if found.is_ok() && cursor.token.kind != TokenKind::End {
        found = Err(cursor.unexpected("the end of the text"));
    }
    Diagnostics::check(cursor.problems)?;
    match found {
        Ok(Some(found)) => Ok(found),
        // A reader that stops or returns nothing has recorded the reason.
        _ => Err(Diagnostic::new(Code::Syntax, "the text cannot be read").into()),
    }
}
