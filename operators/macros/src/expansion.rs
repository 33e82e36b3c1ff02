//! The code that the attribute makes of a declaration.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::{Attribute, Data, Fields, Lit, Type};

use crate::declaration::{Declaration, Declared, Presence, Range, Setter, inner, is_one_of};

/// Types that a text stands for.
const TEXTS: [&str; 3] = ["String", "PathBuf", "Names"];

/// The struct with its derived traits, and its methods.
pub(crate) fn expand(declaration: &Declaration) -> TokenStream {
    let item = item(declaration);
    let name = &declaration.input.ident;
    let values = declaration.fields.iter().filter_map(default_value);
    let constructor = constructor(declaration);
    let default = default_trait(declaration);
    let setters = declaration.fields.iter().filter_map(setter);
    let check = check_ranges(declaration);
    quote! {
        #item

        impl #name {
            #(#values)*
            #constructor
            #(#setters)*
            #check
        }

        #default
    }
}

/// The struct, with the attributes of serde and schemars.
fn item(declaration: &Declaration) -> TokenStream {
    let mut input = declaration.input.clone();
    let name = input.ident.to_string();
    if let Data::Struct(data) = &mut input.data
        && let Fields::Named(fields) = &mut data.fields
    {
        for (field, declared) in fields.named.iter_mut().zip(&declaration.fields) {
            field.attrs.extend(serde_default(&name, declared));
            field.attrs.extend(schema_range(declared));
        }
    }
    quote! {
        #[derive(Debug, Clone, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        #input
    }
}

/// The attribute of serde for a field that may be left out.
fn serde_default(owner: &str, field: &Declared) -> Option<Attribute> {
    match field.presence {
        Presence::Required | Presence::Skipped => None,
        Presence::Default => Some(syn::parse_quote!(#[serde(default)])),
        Presence::Value(_) => {
            let path = format!("{owner}::{}", default_name(field));
            Some(syn::parse_quote!(#[serde(default = #path)]))
        }
    }
}

/// The attribute of schemars for a range.
fn schema_range(field: &Declared) -> Option<Attribute> {
    let Range { min, max } = field.range.as_ref()?.typed(field.value_kind());
    let max = max.iter();
    Some(syn::parse_quote!(#[schemars(range(min = #min #(, max = #max)*))]))
}

fn default_name(field: &Declared) -> Ident {
    format_ident!("default_{}", field.text())
}

/// The function with the value of a field that is left out.
fn default_value(field: &Declared) -> Option<TokenStream> {
    let Presence::Value(value) = &field.presence else { return None };
    let (name, kind) = (default_name(field), &field.kind);
    let value = match is_one_of(kind, &TEXTS) {
        true => quote!(::core::convert::Into::into(#value)),
        false => value.clone(),
    };
    Some(quote! {
        fn #name() -> #kind {
            #value
        }
    })
}

/// The function that makes the struct of its required parameters.
fn constructor(declaration: &Declaration) -> TokenStream {
    let required: Vec<_> = declaration
        .required()
        .map(|field| (&field.name, argument(field, Setter::OfType, &field.kind)))
        .collect();
    let arguments = required.iter().map(|(name, argument)| {
        let kind = &argument.kind;
        quote!(#name: #kind)
    });
    let given = required.iter().map(|(name, argument)| {
        let value = &argument.value;
        quote!(#name: #value)
    });
    let left_out = declaration.fields.iter().filter_map(|field| {
        let name = &field.name;
        match field.presence {
            Presence::Required => None,
            Presence::Default | Presence::Skipped => {
                Some(quote!(#name: ::core::default::Default::default()))
            }
            Presence::Value(_) => {
                let value = default_name(field);
                Some(quote!(#name: Self::#value()))
            }
        }
    });
    let head = match declaration.has_own_new {
        true => quote! {
            /// The required parameters, and the defaults of the others.
            fn defaults
        },
        false => {
            let docs = constructor_docs(declaration);
            quote! {
                #(#[doc = #docs])*
                #[must_use]
                pub fn new
            }
        }
    };
    quote! {
        #head(#(#arguments),*) -> Self {
            Self { #(#given,)* #(#left_out,)* }
        }
    }
}

/// The documentation of `new`.
fn constructor_docs(declaration: &Declaration) -> Vec<String> {
    let name = &declaration.input.ident;
    if declaration.required().next().is_none() {
        return vec![format!(" A `{name}` with all parameters at their defaults.")];
    }
    let mut lines = vec![
        format!(" A `{name}` of its required parameters, with the others at their defaults."),
        String::new(),
        " # Parameters".to_owned(),
    ];
    for field in declaration.required() {
        let docs = field.docs.iter().filter_map(doc_text);
        let text: Vec<_> = docs.map(|line| line.trim().to_owned()).collect();
        lines.push(format!(" - `{}`: {}", field.text(), text.join(" ")));
    }
    lines
}

/// The text of a line of documentation.
fn doc_text(attribute: &Attribute) -> Option<String> {
    let value = &attribute.meta.require_name_value().ok()?.value;
    match syn::parse2(quote!(#value)).ok()? {
        Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

/// `Default`, if no parameter is required.
fn default_trait(declaration: &Declaration) -> Option<TokenStream> {
    if declaration.has_own_new || declaration.required().next().is_some() {
        return None;
    }
    let name = &declaration.input.ident;
    Some(quote! {
        impl ::core::default::Default for #name {
            fn default() -> Self {
                Self::new()
            }
        }
    })
}

/// An argument of a function, and the value of the field.
struct Argument {
    kind: TokenStream,
    value: TokenStream,
}

/// The argument for a field, of which `kind` is the type or the type inside its `Option`.
fn argument(field: &Declared, setter: Setter, kind: &Type) -> Argument {
    let name = &field.name;
    if let Some(some) = inner(kind, "Option") {
        let Argument { kind, value } = argument(field, setter, some);
        return Argument { kind, value: quote!(::core::option::Option::Some(#value)) };
    }
    let element = inner(kind, "Vec");
    let (kind, value) = match (setter, element) {
        (Setter::Char, _) => (quote!(char), quote!(#name.into())),
        (Setter::Each, _) => (
            quote!(impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<String>>),
            quote!(#name.into_iter().collect()),
        ),
        (_, Some(element)) if is_one_of(element, &TEXTS) => (
            quote!(impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<#element>>),
            quote!(#name.into_iter().map(::core::convert::Into::into).collect()),
        ),
        (_, Some(element)) => (
            quote!(impl ::core::iter::IntoIterator<Item = #element>),
            quote!(#name.into_iter().collect()),
        ),
        (_, None) if is_one_of(kind, &TEXTS) => {
            (quote!(impl ::core::convert::Into<#kind>), quote!(#name.into()))
        }
        (_, None) => (quote!(#kind), quote!(#name)),
    };
    Argument { kind, value }
}

/// The setter of a parameter.
fn setter(field: &Declared) -> Option<TokenStream> {
    let is_settable = matches!(field.presence, Presence::Default | Presence::Value(_));
    if !is_settable || field.setter == Setter::None {
        return None;
    }
    let (name, docs) = (&field.name, &field.docs);
    let limits = limits(field);
    let (arguments, value) = if is_one_of(&field.kind, &["bool"]) {
        (quote!(mut self), quote!(true))
    } else {
        let Argument { kind, value } = argument(field, field.setter, &field.kind);
        (quote!(mut self, #name: #kind), value)
    };
    Some(quote! {
        #(#docs)*
        #(#[doc = #limits])*
        #[must_use]
        pub fn #name(#arguments) -> Self {
            self.#name = #value;
            self
        }
    })
}

/// The lines of a setter's documentation that say the default, if that is a literal, and the range.
fn limits(field: &Declared) -> Vec<String> {
    let default = match &field.presence {
        Presence::Value(value) if syn::parse2::<Lit>(value.clone()).is_ok() => {
            Some(format!("Default: `{value}`."))
        }
        _ => None,
    };
    let range = field.range.as_ref().map(|Range { min, max }| match max {
        Some(max) => format!("Range: `{min}` to `{max}`."),
        None => format!("Minimum: `{min}`."),
    });
    let limits: Vec<_> = default.into_iter().chain(range).collect();
    match limits.is_empty() {
        true => Vec::new(),
        false => vec![String::new(), format!(" {}", limits.join(" "))],
    }
}

/// The method that checks the ranges of all parameters.
fn check_ranges(declaration: &Declaration) -> Option<TokenStream> {
    let checks: Vec<_> =
        declaration.fields.iter().filter_map(|field| check_range(field, declaration)).collect();
    (!checks.is_empty()).then(|| {
        quote! {
            /// Checks that the parameters are in their ranges.
            ///
            /// # Errors
            /// All mistakes, as one error.
            pub(crate) fn check_ranges(&self) -> ::core::result::Result<(), crate::shared::parameters::BindError> {
                let mut mistakes = crate::shared::parameters::Mistakes::default();
                #(#checks)*
                mistakes.none()
            }
        }
    })
}

fn check_range(field: &Declared, of: &Declaration) -> Option<TokenStream> {
    let kind = field.value_kind();
    let Range { min, max } = field.range.as_ref()?.typed(kind);
    let max = max.unwrap_or_else(|| quote!(<#kind>::MAX));
    let (name, text) = (&field.name, field.text());
    let parameter = of.errors_at.as_ref().map_or(quote!(#text), |parameter| quote!(#parameter));
    let value = match inner(&field.kind, "Option") {
        Some(_) => quote!(&self.#name),
        None => quote!(::core::option::Option::Some(&self.#name)),
    };
    Some(quote! {
        if let ::core::option::Option::Some(value) = #value {
            mistakes.check(crate::shared::parameters::check_range(#parameter, value, &(#min..=#max)));
        }
    })
}
