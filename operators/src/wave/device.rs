//! The `device` parameter of operators.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How many devices can be named: `cuda:0` to `cuda:15`.
pub const DEVICES_MAX: usize = 16;

/// Where the kernels of an operator run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// On the first GPU if there is one, else on the CPU; on the CPU too when the GPU fails.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU of this number, from 0; it is an error if there is none or it fails.
    Cuda(usize),
}

/// No device is named like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no device; allowed: \"auto\", \"cpu\", \"cuda\", \"cuda:0\" to \"cuda:{max}\"", max = DEVICES_MAX - 1)]
pub struct UnknownDevice(String);

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let number = |digits: &str| {
            (0..DEVICES_MAX).find(|number| number.to_string() == digits).map(Self::Cuda)
        };
        let device = match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            _ => name.strip_prefix("cuda:").and_then(number),
        };
        device.ok_or_else(|| UnknownDevice(name.to_owned()))
    }
}

impl TryFrom<String> for Device {
    type Error = UnknownDevice;

    fn try_from(name: String) -> Result<Self, UnknownDevice> {
        name.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl JsonSchema for Device {
    fn schema_name() -> Cow<'static, str> {
        "Device".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let named = ["auto", "cpu", "cuda"].map(str::to_owned);
        let numbered = (0..DEVICES_MAX).map(|number| format!("cuda:{number}"));
        let names: Vec<String> = named.into_iter().chain(numbered).collect();
        json_schema!({
            "description": "Where kernels run: on the first GPU if there is one (`auto`), on the CPU \
                            (`cpu`), or on a GPU (`cuda`, `cuda:1`), without which it is an error.",
            "type": "string",
            "enum": names,
        })
    }
}
