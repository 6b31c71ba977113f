//! What stands in `#[cembra(..)]`: which words are known where, and what each says. Anything else is an error at its place
//! with the words that are known there.

use crate::case::Case;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, LitStr, Token};

/// A word of an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Skip,
    Rename,
    RenameAll,
    Default,
    Repr,
}

impl Word {
    /// How it is written, the usual spelling first.
    const fn spellings(self) -> &'static [&'static str] {
        match self {
            Word::Skip => &["skip"],
            Word::Rename => &["rename", "name"],
            Word::RenameAll => &["rename_all"],
            Word::Default => &["default"],
            Word::Repr => &["repr"],
        }
    }

    /// How it is used.
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

/// What the attributes of one item say.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) skip: Option<Span>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) rename_all: Option<Case>,
    /// An expression of the field's type.
    pub(crate) default: Option<TokenStream>,
    pub(crate) repr: Option<LitStr>,
}

/// Where attributes stand, as errors call it, with the words that are known there and what is said of one that is known
/// elsewhere.
pub(crate) struct AttributeSite {
    pub(crate) what: &'static str,
    pub(crate) known: &'static [Word],
    pub(crate) refused: &'static [(Word, &'static str)],
}

impl Said {
    /// Reads the attributes of an item.
    pub(crate) fn read(attributes: &[Attribute], place: &AttributeSite) -> Result<Said, syn::Error> {
        let mut said = Said::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cembra")) {
            attribute.parse_nested_meta(|meta| said.take(&meta, place))?;
        }
        if let (Some(_), Some(other)) = (said.skip, said.beside_skip()) {
            return Err(syn::Error::new(other, "a field that is skipped takes no other attribute"));
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
        if is_new { Ok(()) } else { Err(meta.error(format!("{} is said twice", word.usage()))) }
    }
}

/// The message about a word that nobody knows there.
fn unknown(place: &AttributeSite) -> String {
    let what = place.what;
    match place.known {
        [] => format!("{what} takes no attribute"),
        known => {
            let known: Vec<&str> = known.iter().map(|word| word.usage()).collect();
            format!("{what} takes no such attribute; known are {}", known.join(", "))
        }
    }
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr, syn::Error> {
    meta.value()?.parse()
}

/// All up to the next comma: a comma in an expression stands in brackets.
fn expression(input: ParseStream<'_>) -> Result<TokenStream, syn::Error> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    if tokens.is_empty() { Err(input.error("expected an expression")) } else { Ok(tokens) }
}

/// Refuses structs whose fields may lie anywhere: models read and write fields where they are. What another macro packs
/// after this one is found by its layout, with a less readable message.
pub(crate) fn refuse_packed(attributes: &[Attribute]) -> Result<(), syn::Error> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                return Err(meta.error("fields of a packed struct are not aligned: models cannot read or write them"));
            }
            // What is in brackets behind `align` and its like is of no interest.
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
