//! `#[derive(Input)]` and `#[derive(Output)]`: a struct's table of field names, types and offsets. The offsets are taken
//! from the compiler, so the struct keeps whatever layout it has and nothing is copied.
//!
//! Fields must be aligned: a packed struct is refused.
//!
//! A field is bound by its name; `#[cembra(name = "x")]` on the field gives another.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, LitStr, parse_macro_input};

/// The table of a struct that a model reads.
#[proc_macro_derive(Input, attributes(cembra))]
pub fn derive_input(item: TokenStream) -> TokenStream {
    derive(parse_macro_input!(item as DeriveInput), Side::Input)
}

/// The table of a struct that a model writes.
#[proc_macro_derive(Output, attributes(cembra))]
pub fn derive_output(item: TokenStream) -> TokenStream {
    derive(parse_macro_input!(item as DeriveInput), Side::Output)
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

fn derive(item: DeriveInput, side: Side) -> TokenStream {
    expand(&item, side).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Refuses structs whose fields may lie anywhere: models read and write fields where they are. What another macro packs
/// after this one is found by its layout, with a less readable message.
fn refuse_packed(item: &DeriveInput) -> Result<(), syn::Error> {
    for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                return Err(meta.error("fields of a packed struct are not aligned: models cannot read or write them"));
            }
            // What is in brackets behind `align` and its like is of no interest.
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn expand(item: &DeriveInput, side: Side) -> Result<proc_macro2::TokenStream, syn::Error> {
    let Data::Struct(data) = &item.data else {
        return Err(syn::Error::new_spanned(&item.ident, "only structs can be derived"));
    };
    refuse_packed(item)?;
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(&item.ident, "the struct must have named fields"));
    };
    let (contract, entry) = match side {
        Side::Input => (quote!(::cembra::Input), quote!(::cembra::InputField)),
        Side::Output => (quote!(::cembra::Output), quote!(::cembra::OutputField)),
    };
    let (mut entries, mut taken, mut aligned, mut typed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let mut name = ident.to_string().trim_start_matches("r#").to_owned();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("cembra")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("name") {
                    return Err(meta.error("only `name = \"..\"` is known"));
                }
                name = meta.value()?.parse::<LitStr>()?.value();
                Ok(())
            })?;
        }
        let ty = &field.ty;
        taken.push(quote!(#ident: <#ty as ::cembra::OutputValue>::take(&raw const (*place).#ident)));
        typed.push(quote!(let _: &#ty = &row.#ident;));
        aligned.push(quote! {
            ::core::mem::offset_of!(Self, #ident) % ::core::mem::align_of::<#ty>() == 0
                && ::core::mem::align_of::<#ty>() <= ::core::mem::align_of::<Self>()
        });
        entries.push(quote!(#entry::of::<#ty>(#name, ::core::mem::offset_of!(Self, #ident))));
    }
    let take = (matches!(side, Side::Output) && !taken.is_empty()).then(|| {
        quote! {
            // SAFETY: FIELD-TABLE, as the trait says.
            #[inline]
            unsafe fn take(place: *const Self) -> Self {
                // SAFETY: FIELD-TABLE, promised by the caller for each field.
                unsafe { Self { #(#taken),* } }
            }
        }
    });
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    Ok(quote! {
        // SAFETY: FIELD-TABLE: types and offsets are the compiler's own.
        unsafe impl #impl_generics #contract for #ident #type_generics #where_clause {
            fn fields() -> ::std::vec::Vec<#entry> {
                const { #(::core::assert!(#aligned, "a field of a struct that models use is not aligned");)* }
                // What another macro makes of the struct must keep the types.
                let _ = |row: &Self| { let _ = row; #(#typed)* };
                ::std::vec![#(#entries),*]
            }
            #take
        }
    })
}
