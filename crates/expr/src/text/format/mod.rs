//! The formatter: a text in its canonical layout. It changes what lies between tokens, and no token but a `;` that the
//! end of a line stands for; so what it makes is the same model.
//!
//! `tokens` is the text as a lossless sequence, `structure` what the layout asks about it, `table` the columns of
//! tests, `layout` decides on lines and blanks, and `lines` writes them. All take time that is linear in the text, and
//! none recurses.

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

/// A vocabulary that offers nothing in the place of unknown names, which are not told of here.
struct Quiet<'v>(&'v dyn Vocabulary);

impl Vocabulary for Quiet<'_> {
    fn resolve(&self, name: &str) -> Option<Callable<'_>> {
        self.0.resolve(name)
    }

    fn suggest(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The text of a model in its canonical layout: the same model, with the same comments. A line ends with LF.
///
/// The names of the text need not mean anything, the files that it uses need not be there, and its types are not looked
/// at.
///
/// # Errors
/// What is wrong with the syntax, where a statement cannot be read to its end; or the limit that is exceeded.
pub fn format(source: &str, vocabulary: &dyn Vocabulary, limits: &Limits) -> Result<String, Error> {
    Parser::new(source, &Quiet(vocabulary), limits).check_syntax()?;
    let tokens = Tokens::of(source);
    let mut structure = Structure::of(&tokens);
    table::align(&tokens, &mut structure);
    Ok(Layout::new(&tokens, &structure).run())
}
