//! The derive macros of `cembra`. `Input` and `Output` generate the table of a struct's fields, by which an executor
//! reads inputs and writes outputs; `FieldType` lets a user-defined type be the type of such a field. Offsets come from
//! the compiler, so a struct keeps its layout and fields need not be copied. `attributes` parses the macros'
//! attributes, `case` changes the case of names, `structs` and `field_type` generate the code.

mod attributes;
mod case;
mod field_type;
mod structs;

use proc_macro::TokenStream;
use structs::Side;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Input` for a struct: a table of the fields that a model can read. A field is read as the model's input of the same name.
///
/// | on the struct | |
/// |---|---|
/// | `#[cembra(rename_all = "camelCase")]` | the case of field names, one of serde's cases |
///
/// | on a field | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | the name in models, which may have spaces, as in `"country code"`; `name` is a synonym of `rename` |
/// | `#[cembra(skip)]` | the field is not an input, so it may have any type |
///
/// A field with a type that inputs cannot have is an error only if a model reads the field, so fields of foreign types
/// are allowed. There is no `default`, because a field always has a value. A default for a missing optional input is
/// written in the model, as in `input age: f64? = 30`.
#[proc_macro_derive(Input, attributes(cembra))]
pub fn derive_input(item: TokenStream) -> TokenStream {
    written(structs::expand(&parse_macro_input!(item as DeriveInput), Side::Input))
}

/// Implements `Output` for a struct: a table of the fields that a model can write. A field receives the model's output of the same name.
///
/// | on the struct | |
/// |---|---|
/// | `#[cembra(rename_all = "camelCase")]` | the case of field names, one of serde's cases |
///
/// | on a field | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | the name in models, which may have spaces, as in `"country code"`; `name` is a synonym of `rename` |
/// | `#[cembra(skip)]` | the field is not an output: it is `Default::default()` in a new struct, and unchanged in a struct that is overwritten |
/// | `#[cembra(default)]` | `Default::default()` if the model lacks the output, or the output is missing and the field cannot store a missing value |
/// | `#[cembra(default = expression)]` | the field is the value of `expression` in the same cases |
#[proc_macro_derive(Output, attributes(cembra))]
pub fn derive_output(item: TokenStream) -> TokenStream {
    written(structs::expand(&parse_macro_input!(item as DeriveInput), Side::Output))
}

/// Implements `FieldType` for a user-defined type of fields in inputs and outputs: a struct of one field, which models treat like that field; or
/// an enum without fields, whose values are texts or numbers in models.
///
/// | on the enum | |
/// |---|---|
/// | `#[cembra(rename_all = "snake_case")]` | variants are texts: their names in this case, one of serde's cases |
/// | `#[cembra(repr = "i32")]` | variants are numbers: their discriminants, of the type `i32`, `i64` or `u64` |
///
/// | on a variant | |
/// |---|---|
/// | `#[cembra(rename = "..")]` | the text of the variant |
///
/// If the model's value for a field of the enum is not one of these texts or numbers, the evaluation fails with the
/// code `values`.
#[proc_macro_derive(FieldType, attributes(cembra))]
pub fn derive_field_type(item: TokenStream) -> TokenStream {
    written(field_type::expand(&parse_macro_input!(item as DeriveInput)))
}

fn written(made: Result<proc_macro2::TokenStream, syn::Error>) -> TokenStream {
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}
