//! The derives of `cembra`: tables of the fields of structs, and types of one's own for such fields. Offsets are taken from the
//! compiler, so a struct keeps whatever layout it has and nothing is copied. What the macros are given is read in `attributes`,
//! names are put into other cases in `case`; what comes out is written in `structs` and `field_type`.

mod attributes;
mod case;
mod field_type;
mod structs;

use proc_macro::TokenStream;
use structs::Side;
use syn::{DeriveInput, parse_macro_input};

/// The table of a struct that a model reads. A field is bound by its name.
///
/// | on the struct | |
/// |---|---|
/// | `#[cembra(rename_all = "camelCase")]` | names of fields in another case, of those that serde has |
///
/// | on a field | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | another name, such as text writes in quotes too; `name` means the same |
/// | `#[cembra(skip)]` | no input, whatever type the field has |
///
/// A field whose type no input can have is refused when a model asks for it; so types of other crates may stand beside. There
/// is no `default`: a field is always there, and what a model reads where its input is missing is said in the model.
#[proc_macro_derive(Input, attributes(cembra))]
pub fn derive_input(item: TokenStream) -> TokenStream {
    written(structs::expand(&parse_macro_input!(item as DeriveInput), Side::Input))
}

/// The table of a struct that a model writes. Each field is an output of the model, by name.
///
/// | on the struct | |
/// |---|---|
/// | `#[cembra(rename_all = "camelCase")]` | names of fields in another case, of those that serde has |
///
/// | on a field | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | another name, such as text writes in quotes too; `name` means the same |
/// | `#[cembra(skip)]` | no output: `Default::default()` in a new struct; in one that is written over, what it was |
/// | `#[cembra(default)]` | `Default::default()` where the model has no such output or it is missing; `Option` and `Optional` take what is missing themselves |
/// | `#[cembra(default = expression)]` | likewise, of this value |
#[proc_macro_derive(Output, attributes(cembra))]
pub fn derive_output(item: TokenStream) -> TokenStream {
    written(structs::expand(&parse_macro_input!(item as DeriveInput), Side::Output))
}

/// A type of one's own for fields of inputs and outputs: a struct of one field of a type that models have, which stands for
/// that field; or an enum without fields, which is a text or a number to models.
///
/// | on the enum | |
/// |---|---|
/// | `#[cembra(rename_all = "snake_case")]` | the texts of variants are their names in another case, of those that serde has |
/// | `#[cembra(repr = "i32")]` | variants are the numbers of their discriminants, of the type `i32`, `i64` or `u64` |
///
/// | on a variant | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | another text |
///
/// An output that is none of these texts or numbers is an error of the evaluation with the code `values`.
#[proc_macro_derive(FieldType, attributes(cembra))]
pub fn derive_field_type(item: TokenStream) -> TokenStream {
    written(field_type::expand(&parse_macro_input!(item as DeriveInput)))
}

fn written(made: Result<proc_macro2::TokenStream, syn::Error>) -> TokenStream {
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}
