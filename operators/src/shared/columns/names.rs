//! Names of column types, in expressions and in a `schema`.

use arrow_schema::{DataType, TimeUnit};

/// The type of the points in time that functions and readers make.
pub(crate) fn timestamp(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))
}

/// The type with this name, which is a name of DuckDB or of Rust.
pub(crate) fn type_named(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" | "boolean" | "logical" => DataType::Boolean,
        "i8" | "int1" | "tinyint" => DataType::Int8,
        "i16" | "int2" | "smallint" | "short" => DataType::Int16,
        "i32" | "int" | "int4" | "integer" | "signed" => DataType::Int32,
        "i64" | "int8" | "bigint" | "long" => DataType::Int64,
        "u8" | "uint8" | "utinyint" => DataType::UInt8,
        "u16" | "uint16" | "usmallint" => DataType::UInt16,
        "u32" | "uint32" | "uinteger" => DataType::UInt32,
        "u64" | "uint64" | "ubigint" => DataType::UInt64,
        "f32" | "float" | "float4" | "real" => DataType::Float32,
        "f64" | "double" | "float8" => DataType::Float64,
        "text" | "varchar" | "string" | "char" | "bpchar" => DataType::Utf8,
        "date" => DataType::Date32,
        "timestamp" | "datetime" => timestamp(None),
        "timestamptz" | "timestamp with time zone" => timestamp(Some("UTC")),
        "blob" | "bytea" | "binary" | "varbinary" => DataType::Binary,
        _ => return None,
    })
}

/// Names of types for messages.
pub(crate) const TYPE_NAMES: &[&str] = &[
    "boolean",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "f32",
    "f64",
    "text",
    "date",
    "timestamp",
    "timestamptz",
    "blob",
];

/// The name of a type for messages: the name in a `schema`, if the type has such a name.
pub(crate) fn type_name(kind: &DataType) -> String {
    if let Some(name) = TYPE_NAMES.iter().find(|name| type_named(name).as_ref() == Some(kind)) {
        return (*name).to_owned();
    }
    match kind {
        DataType::List(item) => format!("a list of {}", type_name(item.data_type())),
        DataType::Struct(_) => "an object".to_owned(),
        _ => kind.to_string(),
    }
}
