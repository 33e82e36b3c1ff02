//! The declaration of parameters as the attribute finds it: a struct, its fields and their
//! attributes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Fields, GenericArgument, Lit, LitInt, LitStr, Meta,
    Path, PathArguments, Result, Token, Type,
};

/// Types of whole numbers.
const INTEGERS: [&str; 4] = ["u8", "u32", "u64", "usize"];

/// A struct of parameters.
pub(crate) struct Declaration {
    /// The struct, without the attributes that belong to this crate.
    pub(crate) input: DeriveInput,
    pub(crate) fields: Vec<Declared>,
    /// Whether the struct has constructors of its own.
    pub(crate) has_own_new: bool,
    /// The parameter that errors of ranges name, if this is not the field.
    pub(crate) errors_at: Option<LitStr>,
}

/// A field of the struct.
pub(crate) struct Declared {
    pub(crate) name: Ident,
    pub(crate) kind: Type,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) presence: Presence,
    pub(crate) setter: Setter,
    pub(crate) range: Option<Range>,
}

/// What happens when a field is left out.
pub(crate) enum Presence {
    /// The field must be given.
    Required,
    /// The field has the default of its type.
    Default,
    /// The field has the value of an expression.
    Value(TokenStream),
    /// The field is no parameter.
    Skipped,
}

/// The setter of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setter {
    /// The setter that the type of the field asks for.
    OfType,
    /// A setter that takes an iterator of names.
    Each,
    /// A setter that takes a character.
    Char,
    /// No setter.
    None,
}

/// The values that a parameter may have, both ends included.
pub(crate) struct Range {
    pub(crate) min: TokenStream,
    /// None if every larger number is allowed.
    pub(crate) max: Option<TokenStream>,
}

impl Declaration {
    /// Reads the `options` of the attribute and the struct `item`.
    ///
    /// # Errors
    /// The first thing that the attribute does not allow, at its place.
    pub(crate) fn parse(options: TokenStream, item: TokenStream) -> Result<Self> {
        let (has_own_new, errors_at) = parse_options(options)?;
        let mut input: DeriveInput = syn::parse2(item)?;
        if !input.generics.params.is_empty() {
            return Err(Error::new_spanned(&input.generics, "parameters have no generic types"));
        }
        let Data::Struct(data) = &mut input.data else {
            return Err(Error::new_spanned(&input.ident, "expected a struct of parameters"));
        };
        let fields = match &mut data.fields {
            Fields::Named(fields) => fields.named.iter_mut().map(Declared::take).collect(),
            _ => Err(Error::new_spanned(&input.ident, "expected a struct whose fields have names")),
        }?;
        Ok(Self { input, fields, has_own_new, errors_at })
    }

    /// The parameters that must be given.
    pub(crate) fn required(&self) -> impl Iterator<Item = &Declared> {
        self.fields.iter().filter(|field| matches!(field.presence, Presence::Required))
    }
}

fn parse_options(options: TokenStream) -> Result<(bool, Option<LitStr>)> {
    let (mut has_own_new, mut errors_at) = (false, None);
    syn::meta::parser(|option| {
        if option.path.is_ident("own_new") {
            has_own_new = true;
        } else if option.path.is_ident("errors_at") {
            errors_at = Some(option.value()?.parse()?);
        } else {
            return Err(option.error("expected `own_new` or `errors_at = \"parameter\"`"));
        }
        Ok(())
    })
    .parse2(options)?;
    Ok((has_own_new, errors_at))
}

impl Declared {
    /// Reads a field, and takes the attributes of this crate from it.
    fn take(field: &mut Field) -> Result<Self> {
        let name = field.ident.clone().expect("a field of a struct with names");
        let is_skipped = field.attrs.iter().any(is_skipped);
        let default = take_attribute(field, "default")?;
        let range = take_attribute(field, "range")?;
        let setter = take_attribute(field, "setter")?;
        if let (true, Some(attribute)) =
            (is_skipped, default.as_ref().or(range.as_ref()).or(setter.as_ref()))
        {
            let message = format!("`{name}` is no parameter, since serde skips the field");
            return Err(Error::new_spanned(attribute, message));
        }
        let docs: Vec<Attribute> = field
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("doc"))
            .cloned()
            .collect();
        if docs.is_empty() && !is_skipped {
            let message = format!("the parameter `{name}` has no documentation");
            return Err(Error::new_spanned(&name, message));
        }
        let presence = match &default {
            _ if is_skipped => Presence::Skipped,
            Some(attribute) => parse_default(attribute, &field.ty)?,
            None if inner(&field.ty, "Option").is_some() => Presence::Default,
            None => Presence::Required,
        };
        if let (Presence::Required, Some(attribute)) = (&presence, &setter) {
            let message = format!("`{name}` is required: the constructor takes it");
            return Err(Error::new_spanned(attribute, message));
        }
        let setter = setter.as_ref().map_or(Ok(Setter::OfType), parse_setter)?;
        let range = range.map(|attribute| attribute.parse_args::<Range>()).transpose()?;
        Ok(Self { name, kind: field.ty.clone(), docs, presence, setter, range })
    }

    /// The type of a value of the parameter.
    pub(crate) fn value_kind(&self) -> &Type {
        inner(&self.kind, "Option").unwrap_or(&self.kind)
    }

    /// The name of the parameter in JSON.
    pub(crate) fn text(&self) -> String {
        self.name.unraw().to_string()
    }
}

/// Takes the attribute of this name from a field.
///
/// # Errors
/// If there are two.
fn take_attribute(field: &mut Field, name: &str) -> Result<Option<Attribute>> {
    let (mut found, others): (Vec<_>, Vec<_>) =
        field.attrs.drain(..).partition(|attribute| attribute.path().is_ident(name));
    field.attrs = others;
    match (found.pop(), found.pop()) {
        (Some(second), Some(_)) => {
            Err(Error::new_spanned(second, format!("a second attribute `{name}`")))
        }
        (found, _) => Ok(found),
    }
}

/// Whether an attribute is `#[serde(skip)]`.
fn is_skipped(attribute: &Attribute) -> bool {
    attribute.path().is_ident("serde")
        && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("skip"))
}

fn parse_default(attribute: &Attribute, kind: &Type) -> Result<Presence> {
    match &attribute.meta {
        Meta::Path(_) if inner(kind, "Option").is_some() => {
            let message = "an `Option` is `None` when it is left out; remove `#[default]`";
            Err(Error::new_spanned(attribute, message))
        }
        Meta::Path(_) => Ok(Presence::Default),
        Meta::List(list) if !list.tokens.is_empty() => Ok(Presence::Value(list.tokens.clone())),
        _ => Err(Error::new_spanned(attribute, "expected `#[default]` or `#[default(value)]`")),
    }
}

fn parse_setter(attribute: &Attribute) -> Result<Setter> {
    let kind: Ident = attribute.parse_args()?;
    match kind.to_string().as_str() {
        "each" => Ok(Setter::Each),
        "char" => Ok(Setter::Char),
        "none" => Ok(Setter::None),
        _ => Err(Error::new_spanned(&kind, "expected `each`, `char` or `none`")),
    }
}

impl Range {
    /// The same range with whole numbers of the type `kind`: without one, they are `i32` in a
    /// schema, and a larger one is an error.
    pub(crate) fn typed(&self, kind: &Type) -> Self {
        let typed = |bound: &TokenStream| match syn::parse2::<LitInt>(bound.clone()) {
            Ok(number) if is_one_of(kind, &INTEGERS) && number.suffix().is_empty() => {
                let text = format!("{number}{}", kind.to_token_stream());
                // The number is ours, though it stands at the place of the number without a type.
                let span = number.span().resolved_at(Span::mixed_site());
                LitInt::new(&text, span).into_token_stream()
            }
            _ => bound.clone(),
        };
        Self { min: typed(&self.min), max: self.max.as_ref().map(typed) }
    }
}

impl Parse for Range {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let min = parse_bound(input)?;
        if input.peek(Token![..=]) {
            input.parse::<Token![..=]>()?;
            let max = Some(parse_bound(input)?);
            return Ok(Self { min, max });
        }
        input.parse::<Token![..]>()?;
        if input.is_empty() {
            return Ok(Self { min, max: None });
        }
        Err(input.error("write `min..=max`, which says that `max` is allowed, or `min..`"))
    }
}

/// A number or the path of a constant.
fn parse_bound(input: ParseStream<'_>) -> Result<TokenStream> {
    if input.peek(Lit) {
        return Ok(input.parse::<Lit>()?.into_token_stream());
    }
    Ok(input.parse::<Path>()?.into_token_stream())
}

/// The argument of a type such as `Option<T>`, if it is that type.
pub(crate) fn inner<'a>(kind: &'a Type, outer: &str) -> Option<&'a Type> {
    let Type::Path(path) = kind else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == outer)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

/// Whether a type is one of these, by its last name.
pub(crate) fn is_one_of(kind: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = kind else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| {
        last.arguments.is_empty() && names.iter().any(|name| last.ident == name)
    })
}
