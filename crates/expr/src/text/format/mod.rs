//! The formatter: returns a text in its canonical layout. It changes only the white space between tokens, and removes a `;` that a line end can
//! replace, so the result is the same model.
//!
//! The module `tokens` reads the text as a lossless sequence of tokens and gaps. `structure` finds statements and brackets, and `table` aligns the
//! columns of tests. `layout` decides where lines begin and where blanks are, and `lines` writes the lines. All steps take time linear in the length
//! of the text, and none recurses.

mod layout;
mod lines;
mod structure;
mod table;
mod tokens;

use super::parser::Parser;
use crate::{Callable, Vocabulary};
use cembra_value::{Error, Limits};
use layout::Layout;
use structure::Structure;
use tokens::Tokens;

/// A vocabulary without suggestions, because unknown names are not reported here.
struct NoSuggestions<'v>(&'v dyn Vocabulary);

impl Vocabulary for NoSuggestions<'_> {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        self.0.resolve(name)
    }

    fn suggest(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the text of a model in its canonical layout: the same model, with the same comments. Lines end with LF.
///
/// The text may contain undefined names, use files that do not exist, and have type errors.
///
/// # Errors
/// If a statement has a syntax error after which the rest of the statement cannot be read, or if the text exceeds a limit.
pub fn format(source: &str, vocabulary: &dyn Vocabulary, limits: &Limits) -> Result<String, Error> {
    Parser::new(source, &NoSuggestions(vocabulary), limits).check_syntax()?;
    let tokens = Tokens::of(source);
    let mut structure = Structure::of(&tokens);
    table::align(&tokens, &mut structure);
    Ok(Layout::new(&tokens, &structure).run())
}
