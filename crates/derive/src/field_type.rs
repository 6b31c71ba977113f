//! `#[derive(FieldType)]`: generates the impl by which a user-defined type can be the type of a field. A struct of one
//! field is read and written in place, if it has the same memory layout as its field. An enum without fields is
//! converted to a text or a number and back.

use crate::attributes::{AttributeSite, AttributeValues, Word, refuse_packed};
use proc_macro2::TokenStream;
use quote::quote;
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Fields, Ident, LitStr, Member, Variant};

const NEWTYPE: AttributeSite = AttributeSite { what: "a struct of one field", known: &[], refused: &[] };
const INNER: AttributeSite = AttributeSite { what: "the field of such a struct", known: &[], refused: &[] };
const ENUM: AttributeSite = AttributeSite { what: "an enum", known: &[Word::RenameAll, Word::Repr], refused: &[] };
const TEXT: AttributeSite = AttributeSite { what: "a variant", known: &[Word::Rename], refused: &[] };
const NUMBER: AttributeSite = AttributeSite {
    what: "a variant",
    known: &[],
    refused: &[(Word::Rename, "variants are numbers here: write the number as the discriminant, as in `Gold = 3`")],
};

/// The integer types that `#[cembra(repr = "..")]` on an enum may name.
const NUMBERS: [&str; 3] = ["i32", "i64", "u64"];

/// The pieces of generated code that `expand` assembles to an impl of `FieldType`.
struct ImplParts {
    /// The model type that the user's type stands for.
    model: TokenStream,
    in_place: TokenStream,
    expected: String,
    /// The body of the generated function `view`, which converts the user's type to the model's type.
    view: TokenStream,
    /// The body of the generated function `of`, which converts the model's type to the user's type.
    of: TokenStream,
    /// Assertions about the user's type that are checked when the generated code is compiled.
    checks: TokenStream,
}

pub(crate) fn expand(item: &DeriveInput) -> Result<TokenStream, syn::Error> {
    let made = match &item.data {
        Data::Struct(data) => newtype(item, data)?,
        Data::Enum(data) => codes(item, data)?,
        Data::Union(_) => return Err(syn::Error::new_spanned(&item.ident, "a union cannot be the type of a field")),
    };
    let ImplParts { model, in_place, expected, view, of, checks } = made;
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    Ok(quote! {
        #checks
        // SAFETY: FIELD-TABLE: where `IN_PLACE` is true, the type has the memory layout of the model's type, as the
        // compiler computes it.
        unsafe impl #impl_generics ::cembra::FieldType for #ident #type_generics #where_clause {
            type Model = #model;
            const IN_PLACE: bool = #in_place;
            const EXPECTED: &'static str = #expected;
            const MAY_PANIC: bool = false;

            #[inline]
            fn view(&self) -> <#model as ::cembra::derived::ModelScalar>::View<'_> {
                #view
            }

            #[inline]
            fn of(view: <#model as ::cembra::derived::ModelScalar>::View<'_>) -> ::core::option::Option<Self> {
                #of
            }
        }
    })
}

/// Generates the impl of `FieldType` for a struct of one field.
fn newtype(item: &DeriveInput, data: &DataStruct) -> Result<ImplParts, syn::Error> {
    refuse_packed(&item.attrs)?;
    AttributeValues::read(&item.attrs, &NEWTYPE)?;
    let mut fields = data.fields.iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        let message = "the type of a field must be a struct of one field, or an enum without fields";
        return Err(syn::Error::new_spanned(&item.ident, message));
    };
    AttributeValues::read(&field.attrs, &INNER)?;
    let member = field.ident.clone().map_or(Member::from(0), Member::from);
    let ty = &field.ty;
    Ok(ImplParts {
        model: quote!(#ty),
        in_place: quote! {
            ::core::mem::offset_of!(Self, #member) == 0
                && ::core::mem::size_of::<Self>() == ::core::mem::size_of::<#ty>()
                && ::core::mem::align_of::<Self>() == ::core::mem::align_of::<#ty>()
        },
        expected: String::new(),
        view: quote! {
            let inner: &#ty = &self.#member;
            ::cembra::derived::ModelScalar::view(inner)
        },
        of: quote!(::core::option::Option::Some(Self { #member: <#ty as ::cembra::derived::ModelScalar>::of_view(view) })),
        checks: TokenStream::new(),
    })
}

/// Generates the impl of `FieldType` for an enum without fields: variants are numbers if the enum has the word `repr`,
/// otherwise texts.
fn codes(item: &DeriveInput, data: &DataEnum) -> Result<ImplParts, syn::Error> {
    let said = AttributeValues::read(&item.attrs, &ENUM)?;
    if data.variants.is_empty() {
        return Err(syn::Error::new_spanned(&item.ident, "an enum must have at least one variant"));
    }
    if !item.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(&item.generics, "an enum must not have parameters"));
    }
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(syn::Error::new_spanned(
            &variant.fields,
            "a variant must not have fields, because it is a text or a number in models",
        ));
    }
    match &said.repr {
        Some(_) if said.rename_all.is_some() => Err(syn::Error::new_spanned(
            &item.ident,
            "write either `repr` or `rename_all`: variants are numbers with `repr`, and texts with `rename_all`",
        )),
        Some(repr) => numbers(&item.ident, data, repr),
        None => texts(data, &said),
    }
}

fn texts(data: &DataEnum, said: &AttributeValues) -> Result<ImplParts, syn::Error> {
    let mut variants: Vec<&Ident> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    let mut taken = BTreeMap::new();
    for variant in &data.variants {
        let rename = AttributeValues::read(&variant.attrs, &TEXT)?.rename;
        let own = variant.ident.to_string().trim_start_matches("r#").to_owned();
        let text = match (&rename, said.rename_all) {
            (Some(text), _) => text.value(),
            (None, Some(case)) => case.of_variant(&own),
            (None, None) => own,
        };
        if let Some(other) = taken.insert(text.clone(), &variant.ident) {
            let span = rename.as_ref().map_or(variant.ident.span(), Spanned::span);
            let message = format!("`{other}` and `{}` have the same text `{text}`", variant.ident);
            return Err(syn::Error::new(span, message));
        }
        variants.push(&variant.ident);
        texts.push(text);
    }
    Ok(ImplParts {
        model: quote!(::std::string::String),
        in_place: quote!(false),
        expected: list(texts.iter().map(|text| format!("{text:?}"))),
        view: quote!(match self { #(Self::#variants => #texts),* }),
        of: quote!(match view {
            #(#texts => ::core::option::Option::Some(Self::#variants),)*
            _ => ::core::option::Option::None,
        }),
        checks: TokenStream::new(),
    })
}

fn numbers(name: &Ident, data: &DataEnum, repr: &LitStr) -> Result<ImplParts, syn::Error> {
    let written = repr.value();
    if !NUMBERS.contains(&written.as_str()) {
        let message = format!("`repr` must be `i32`, `i64` or `u64`, not `{written}`");
        return Err(syn::Error::new(repr.span(), message));
    }
    let number = Ident::new(&written, repr.span());
    data.variants.iter().try_for_each(|variant| AttributeValues::read(&variant.attrs, &NUMBER).map(drop))?;
    let variants: Vec<&Ident> = data.variants.iter().map(|Variant { ident, .. }| ident).collect();
    Ok(ImplParts {
        model: quote!(::core::primitive::#number),
        in_place: quote!(false),
        expected: format!("the number of one of {}", list(variants.iter().map(|variant| format!("`{variant}`")))),
        view: quote!(match self { #(Self::#variants => Self::#variants as ::core::primitive::#number),* }),
        of: quote! {
            #(if view == Self::#variants as ::core::primitive::#number {
                return ::core::option::Option::Some(Self::#variants);
            })*
            ::core::option::Option::None
        },
        checks: quote! {
            const _: () = { #(::core::assert!(
                #name::#variants as ::core::primitive::i128
                    == #name::#variants as ::core::primitive::#number as ::core::primitive::i128,
                "a discriminant must be a number of the type of `repr`"
            );)* };
        },
    })
}

/// Joins `things` to an enumeration for a message, as in `a, b or c`.
fn list(things: impl Iterator<Item = String>) -> String {
    let mut things: Vec<String> = things.collect();
    let last = things.pop().unwrap_or_default();
    if things.is_empty() { last } else { format!("{} or {last}", things.join(", ")) }
}
