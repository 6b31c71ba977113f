//! `#[derive(Input)]` and `#[derive(Output)]`: the table of a struct's fields, with their names, types and offsets. Fields
//! must be aligned, so a packed struct is refused.

use crate::attributes::{AttributeSite, AttributeValues, Word, refuse_packed};
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, GenericParam, Generics, Ident, Type, TypeParamBound, WherePredicate};

/// The trait that is derived for a struct: `Input` or `Output`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Input,
    Output,
}

const STRUCT: AttributeSite = AttributeSite { what: "a struct", known: &[Word::RenameAll], refused: &[] };

const INPUT_FIELD: AttributeSite = AttributeSite {
    what: "a field of an input",
    known: &[Word::Skip, Word::Rename],
    refused: &[(
        Word::Default,
        "a field of an input always has a value: give the model's input a default, as in `input age: f64? = 30`",
    )],
};

const OUTPUT_FIELD: AttributeSite =
    AttributeSite { what: "a field of an output", known: &[Word::Skip, Word::Rename, Word::Default], refused: &[] };

/// A field of the user's struct, its name in models, and its parsed attributes.
struct BoundField<'f> {
    ident: &'f Ident,
    ty: &'f Type,
    name: String,
    said: AttributeValues,
}

pub(crate) fn expand(item: &DeriveInput, side: Side) -> Result<TokenStream, syn::Error> {
    let Data::Struct(data) = &item.data else {
        return Err(syn::Error::new_spanned(&item.ident, "the trait can be derived only for a struct"));
    };
    refuse_packed(&item.attrs)?;
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new_spanned(&item.ident, "the struct must have named fields"));
    };
    let whole = AttributeValues::read(&item.attrs, &STRUCT)?;
    let fields = fields.named.iter().filter_map(|field| known(field, side, &whole).transpose());
    let fields: Vec<BoundField<'_>> = fields.collect::<Result<_, _>>()?;
    refuse_same_names(&fields)?;
    let bound = || fields.iter().filter(|field| field.said.skip.is_none());
    let entries = bound().map(|field| entry(field, item, side));
    let aligned = bound().map(|BoundField { ident, ty, .. }| {
        quote! {
            ::core::mem::offset_of!(Self, #ident) % ::core::mem::align_of::<#ty>() == 0
                && ::core::mem::align_of::<#ty>() <= ::core::mem::align_of::<Self>()
        }
    });
    let typed = bound().map(|BoundField { ident, ty, .. }| quote!(let _: &#ty = &row.#ident;));
    let (contract, row) = match side {
        Side::Input => (quote!(::cembra::Input), quote!(::cembra::derived::InputField)),
        Side::Output => (quote!(::cembra::Output), quote!(::cembra::derived::OutputField)),
    };
    let take = (side == Side::Output && !fields.is_empty()).then(|| take(&fields));
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let part = part(item, side);
    let rows = (side == Side::Input).then(|| rows(item));
    Ok(quote! {
        #part
        // SAFETY: FIELD-TABLE: types and offsets are the compiler's own.
        unsafe impl #impl_generics #contract for #ident #type_generics #where_clause {
            #rows
            fn fields() -> ::std::vec::Vec<#row> {
                const { #(::core::assert!(#aligned, "the fields of a struct that models use must be aligned");)* }
                // If another macro changes the struct, it must keep the types.
                let _ = |row: &Self| { let _ = row; #(#typed)* };
                ::std::vec![#(#entries),*]
            }
            #take
        }
    })
}

/// Generates the declaration of `At`, the type of the rows that an executor for the struct takes.
fn rows(item: &DeriveInput) -> TokenStream {
    if item.generics.lifetimes().next().is_none() || has_bounds_of_lifetimes(&item.generics) {
        return quote!(
            type At<'cembra_row>
                = Self
            where
                Self: 'cembra_row;
        );
    }
    let ident = &item.ident;
    let arguments = item.generics.params.iter().map(|parameter| match parameter {
        GenericParam::Lifetime(_) => quote!('cembra_row),
        GenericParam::Type(parameter) => parameter.ident.to_token_stream(),
        GenericParam::Const(parameter) => parameter.ident.to_token_stream(),
    });
    quote!(type At<'cembra_row> = #ident<#(#arguments),*> where Self: 'cembra_row;)
}

/// Returns true if a trait bound of the struct names one of its lifetimes. If so, `At` keeps the struct's own
/// lifetimes, because other lifetimes may not satisfy the bound.
fn has_bounds_of_lifetimes(generics: &Generics) -> bool {
    let names_lifetime =
        |stream| mentions(stream, |ident| generics.lifetimes().any(|one| one.lifetime.ident == *ident));
    let bound = |bound: &TypeParamBound| {
        !matches!(bound, TypeParamBound::Lifetime(_)) && names_lifetime(bound.to_token_stream())
    };
    let predicates = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    generics.type_params().flat_map(|parameter| &parameter.bounds).any(bound)
        || predicates.into_iter().any(|predicate| match predicate {
            WherePredicate::Type(predicate) => {
                names_lifetime(predicate.bounded_ty.to_token_stream()) || predicate.bounds.iter().any(bound)
            }
            _ => false,
        })
}

/// Generates the impl of `Part`, the trait by which the struct can be the type of a field in another struct.
fn part(item: &DeriveInput, side: Side) -> TokenStream {
    let ident = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let (contract, row) = match side {
        Side::Input => (quote!(::cembra::Input), quote!(::cembra::derived::InputField)),
        Side::Output => (quote!(::cembra::Output), quote!(::cembra::derived::OutputField)),
    };
    // The table and its type are made once, unless they depend on type or const parameters.
    let has_types = item.generics.type_params().next().is_some() || item.generics.const_params().next().is_some();
    let (table, whole) = match has_types {
        true => {
            (quote!(let table = &<Self as #contract>::fields()[..];), quote!(let whole = &#row::struct_type(table);))
        }
        false => (
            quote! {
                static TABLE: ::std::sync::OnceLock<::std::vec::Vec<#row>> = ::std::sync::OnceLock::new();
                let table = &TABLE.get_or_init(<Self as #contract>::fields)[..];
            },
            quote! {
                static WHOLE: ::std::sync::OnceLock<::cembra::QType> = ::std::sync::OnceLock::new();
                let whole = WHOLE.get_or_init(|| #row::struct_type(table));
            },
        ),
    };
    let methods = match side {
        Side::Input => quote! {
            fn part_shape() -> ::cembra::derived::InputShape {
                ::cembra::derived::InputShape::Struct(<Self as #contract>::fields)
            }
            // SAFETY: FIELD-TABLE, and what else the trait says.
            unsafe fn write_part(&self, frame: ::cembra::derived::FramePtr, offset: ::core::primitive::u32) {
                #table
                // SAFETY: FIELD-TABLE: these are the fields of the struct; the rest is promised by the caller.
                unsafe { #row::write_struct(table, ::core::ptr::from_ref(self).cast(), frame, offset) }
            }
            fn part_value(&self) -> ::cembra::Value {
                #table
                #whole
                // SAFETY: FIELD-TABLE: these are the fields of the struct.
                unsafe { #row::struct_value(table, whole, ::core::ptr::from_ref(self).cast()) }
            }
            fn push_part(&self, list: &mut ::cembra::derived::ListBuilder) {
                #table
                // SAFETY: FIELD-TABLE: these are the fields of the struct.
                unsafe { #row::push_struct(table, ::core::ptr::from_ref(self).cast(), list) }
            }
        },
        Side::Output => quote! {
            fn part_list() -> ::core::option::Option<::cembra::derived::OutputList> {
                ::core::option::Option::Some(::cembra::derived::OutputList::of::<Self>())
            }
            const EXPECTED: &'static ::core::primitive::str = "a struct whose fields have values of their types";
            fn of_part(value: &::cembra::Value) -> ::core::option::Option<Self> {
                #table
                #row::struct_of(table, value)
            }
        },
    };
    quote! {
        // SAFETY: FIELD-TABLE: the type is that of the table, by which values are written and read.
        unsafe impl #impl_generics ::cembra::derived::Part<#row> for #ident #type_generics #where_clause {
            fn part_type() -> ::cembra::QType {
                #table
                #whole
                ::core::clone::Clone::clone(whole)
            }
            fn may_panic() -> bool {
                #table
                #row::may_panic(table)
            }
            #methods
        }
    }
}

/// Reads the attributes of a field and determines its name in models. `whole` are the attributes of the struct. `None`
/// for a field without a name.
fn known<'f>(field: &'f Field, side: Side, whole: &AttributeValues) -> Result<Option<BoundField<'f>>, syn::Error> {
    let Some(ident) = &field.ident else { return Ok(None) };
    let said = AttributeValues::read(&field.attrs, if side == Side::Input { &INPUT_FIELD } else { &OUTPUT_FIELD })?;
    let own = ident.to_string().trim_start_matches("r#").to_owned();
    let name = match (&said.rename, whole.rename_all) {
        (Some(name), _) => name.value(),
        (None, Some(case)) => case.of_field(&own),
        (None, None) => own,
    };
    Ok(Some(BoundField { ident, ty: &field.ty, name, said }))
}

fn refuse_same_names(fields: &[BoundField<'_>]) -> Result<(), syn::Error> {
    let mut names = BTreeMap::new();
    for field in fields.iter().filter(|field| field.said.skip.is_none()) {
        if let Some(other) = names.insert(&field.name, field.ident) {
            let message = format!("`{other}` and `{}` have the same name `{}`", field.ident, field.name);
            let span = field.said.rename.as_ref().map_or(field.ident.span(), Spanned::span);
            return Err(syn::Error::new(span, message));
        }
    }
    Ok(())
}

/// Generates the expression for a field's entry in the field table: the field's name, type, offset and default.
fn entry(field: &BoundField<'_>, item: &DeriveInput, side: Side) -> TokenStream {
    let BoundField { ident, ty, name, said } = field;
    let offset = quote!(::core::mem::offset_of!(Self, #ident));
    match (side, &said.default) {
        // Whether a type parameter can be an input depends on its bounds, which the macro does not know.
        (Side::Input, _) if mentions_parameter(ty, item) => {
            quote!(::cembra::derived::InputField::of::<#ty>(#name, #offset))
        }
        (Side::Input, _) => quote!({
            // There are two functions `input_field`: an inherent one for types that inputs can have, which the compiler
            // prefers, and one of the trait for other types.
            use ::cembra::derived::OtherField as _;
            ::cembra::derived::FieldProbe::<#ty>::input_field(#name, #offset)
        }),
        (Side::Output, None) => quote!(::cembra::derived::OutputField::of::<#ty>(#name, #offset)),
        (Side::Output, Some(default)) => {
            quote!(::cembra::derived::OutputField::with_default::<#ty>(#name, #offset, || #default))
        }
    }
}

/// Returns true if the type mentions a type parameter of the struct.
fn mentions_parameter(ty: &Type, item: &DeriveInput) -> bool {
    mentions(ty.to_token_stream(), |ident| item.generics.type_params().any(|parameter| parameter.ident == *ident))
}

/// Returns true if `is_meant` holds for any identifier in the tokens. A lifetime `'a` has the identifier `a`.
fn mentions(stream: TokenStream, is_meant: impl Fn(&Ident) -> bool) -> bool {
    // A type is as deep as it is written, so the groups of its tokens are walked with a stack.
    let mut streams = vec![stream];
    while let Some(stream) = streams.pop() {
        for tree in stream {
            match tree {
                TokenTree::Group(group) => streams.push(group.stream()),
                TokenTree::Ident(ident) if is_meant(&ident) => return true,
                _ => {}
            }
        }
    }
    false
}

/// Generates the function `take`, which moves the struct out of the memory that a call wrote its fields to.
fn take(fields: &[BoundField<'_>]) -> TokenStream {
    let taken = fields.iter().map(|BoundField { ident, ty, said, .. }| match said.skip {
        Some(_) => quote!(#ident: ::core::default::Default::default()),
        None => quote!(#ident: <#ty as ::cembra::OutputValue>::take(&raw const (*place).#ident)),
    });
    quote! {
        // SAFETY: FIELD-TABLE, as the trait says.
        #[inline]
        unsafe fn take(place: *const Self) -> Self {
            // SAFETY: FIELD-TABLE, promised by the caller for each field that is not made of nothing.
            unsafe { Self { #(#taken),* } }
        }
    }
}
