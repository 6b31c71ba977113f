//! Parses the attribute `#[cembra(..)]` of the derive macros, such as `#[cembra(rename = "x")]`. The allowed words
//! depend on the item: a struct, a field, an enum or a variant. Any other word is a compile error, which lists the
//! allowed ones.

use crate::case::Case;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, LitStr, Token};

/// A word that the attribute `#[cembra(..)]` may have, such as `skip`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Skip,
    Rename,
    RenameAll,
    Default,
    Repr,
}

impl Word {
    /// The spellings under which users may write the word, the usual one first.
    const fn spellings(self) -> &'static [&'static str] {
        match self {
            Word::Skip => &["skip"],
            Word::Rename => &["rename", "name"],
            Word::RenameAll => &["rename_all"],
            Word::Default => &["default"],
            Word::Repr => &["repr"],
        }
    }

    /// The way to write the word and its value, for error messages.
    const fn usage(self) -> &'static str {
        match self {
            Word::Skip => "`skip`",
            Word::Rename => "`rename = \"..\"`",
            Word::RenameAll => "`rename_all = \"camelCase\"`",
            Word::Default => "`default`",
            Word::Repr => "`repr = \"i32\"`",
        }
    }
}

/// The `#[cembra(..)]` attributes of an item, after parsing: the words and their values.
#[derive(Default)]
pub(crate) struct AttributeValues {
    pub(crate) skip: Option<Span>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) rename_all: Option<Case>,
    /// The default of an output field: an expression of the field's type; `None` without the word `default`.
    pub(crate) default: Option<TokenStream>,
    pub(crate) repr: Option<LitStr>,
}

/// A kind of item that may have the attribute `#[cembra(..)]`: its name in errors, the words that are allowed on it, and
/// error messages for words that are allowed only on other kinds.
pub(crate) struct AttributeSite {
    pub(crate) what: &'static str,
    pub(crate) known: &'static [Word],
    pub(crate) refused: &'static [(Word, &'static str)],
}

impl AttributeValues {
    /// Parses the `#[cembra(..)]` attributes among `attributes`, for an item of the kind `place`.
    pub(crate) fn read(attributes: &[Attribute], place: &AttributeSite) -> Result<AttributeValues, syn::Error> {
        let mut said = AttributeValues::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cembra")) {
            attribute.parse_nested_meta(|meta| said.take(&meta, place))?;
        }
        if let (Some(_), Some(other)) = (said.skip, said.beside_skip()) {
            return Err(syn::Error::new(other, "a field with `skip` must not have another attribute"));
        }
        Ok(said)
    }

    fn beside_skip(&self) -> Option<Span> {
        self.rename.as_ref().map(Spanned::span).or_else(|| self.default.as_ref().map(Spanned::span))
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>, place: &AttributeSite) -> Result<(), syn::Error> {
        let is = |word: &Word| word.spellings().iter().any(|spelling| meta.path.is_ident(spelling));
        if let Some((_, why)) = place.refused.iter().find(|(word, _)| is(word)) {
            return Err(meta.error(why));
        }
        let Some(word) = place.known.iter().copied().find(is) else { return Err(meta.error(unknown(place))) };
        let is_new = match word {
            Word::Skip => self.skip.replace(meta.path.span()).is_none(),
            Word::Rename => self.rename.replace(text(meta)?).is_none(),
            Word::RenameAll => self.rename_all.replace(Case::parse(&text(meta)?)?).is_none(),
            Word::Repr => self.repr.replace(text(meta)?).is_none(),
            Word::Default if meta.input.peek(Token![=]) => self.default.replace(expression(meta.value()?)?).is_none(),
            Word::Default => self.default.replace(quote!(::core::default::Default::default())).is_none(),
        };
        if is_new { Ok(()) } else { Err(meta.error(format!("{} is given twice", word.usage()))) }
    }
}

/// The error message for a word that is not allowed on an item of the kind `place`. It lists the allowed words.
fn unknown(place: &AttributeSite) -> String {
    let what = place.what;
    match place.known {
        [] => format!("{what} must not have an attribute"),
        known => {
            let known: Vec<&str> = known.iter().map(|word| word.usage()).collect();
            format!("{what} must not have this attribute; the allowed attributes are {}", known.join(", "))
        }
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr, syn::Error> {
    meta.value()?.parse()
}

/// Parses an expression: all tokens up to the next comma. Commas that belong to the expression are in brackets.
fn expression(input: ParseStream<'_>) -> Result<TokenStream, syn::Error> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    if tokens.is_empty() { Err(input.error("expected an expression")) } else { Ok(tokens) }
}

/// Returns an error for a struct with `#[repr(packed)]`: models read and write fields in place, so fields must be
/// aligned. If another macro adds `packed` later, an assertion in the generated code fails to compile, with a less
/// readable message.
pub(crate) fn refuse_packed(attributes: &[Attribute]) -> Result<(), syn::Error> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                return Err(
                    meta.error("the struct must not be packed, because models read and write aligned fields only")
                );
            }
            // Skips the brackets after words such as `align`.
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}
