//! The `device` parameter of operators.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Number of devices that have a name: `cuda:0` to `cuda:15`.
pub const DEVICES_MAX: usize = 16;

/// Place where the kernels of an operator run: the parameter `device`.
///
/// # Examples
/// ```
/// use trommel_operators::wave::Device;
///
/// assert_eq!("auto".parse::<Device>()?, Device::Auto);
/// assert_eq!("cuda:1".parse::<Device>()?, Device::Cuda(1));
/// assert_eq!(Device::Cuda(0).to_string(), "cuda");
/// assert!("gpu".parse::<Device>().unwrap_err().to_string().starts_with("invalid device \"gpu\""));
/// # Ok::<(), trommel_operators::wave::UnknownDevice>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// On the first GPU if there is a GPU and it pays, else on the CPU. The CPU takes over when the
    /// GPU fails.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU with this number, from 0. A missing or failing GPU is an error.
    Cuda(usize),
}

/// The name of a device is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid device {0:?}: expected \"auto\", \"cpu\", \"cuda\", \"cuda:0\" to \"cuda:{max}\"", max = DEVICES_MAX - 1)]
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
            "description": "Place where kernels run: the first GPU if there is one and it pays (`auto`), \
                            the CPU (`cpu`), or a GPU (`cuda`, `cuda:1`); it is an error if that GPU \
                            is missing or fails.",
            "type": "string",
            "enum": names,
        })
    }
}
