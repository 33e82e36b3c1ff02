//! The `device` parameter of operators.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use trommel_engine::error::BindError;
use trommel_kernels::cuda;

use crate::shared::parameters::refuse;

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
/// assert_eq!("cuda:0,cuda:2".parse::<Device>()?, Device::list(&[2, 0])?);
/// assert_eq!(Device::Cuda(0).to_string(), "cuda");
/// assert!("gpu".parse::<Device>().unwrap_err().to_string().starts_with("invalid device \"gpu\""));
/// # Ok::<(), trommel_operators::wave::InvalidDevice>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "DeviceNames", into = "DeviceNames")]
pub enum Device {
    /// On the first GPU if there is a GPU and it pays, and on further GPUs where these pay; else on
    /// the CPU. The CPU takes over when the GPUs fail.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU with this number, from 0. A missing or failing GPU is an error.
    Cuda(usize),
    /// On all GPUs that the driver shows. It is an error if there is none, or if the last one
    /// fails.
    CudaAll,
    /// On several GPUs. A missing GPU is an error, as is the failure of the last GPU.
    CudaList(DeviceList),
}

/// The numbers of two or more GPUs, in ascending order, as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceList(u16);

const _: () = assert!(DEVICES_MAX <= u16::BITS as usize);

impl DeviceList {
    fn ordinals(self) -> impl Iterator<Item = usize> {
        (0..DEVICES_MAX).filter(move |ordinal| self.0 >> ordinal & 1 == 1)
    }
}

/// The name of a device, or a list of devices, is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDevice {
    /// No device has this name.
    #[error("invalid device {0:?}: expected \"auto\", \"cpu\", \"cuda\", \"cuda:all\", \"cuda:0\" to \"cuda:{max}\"", max = DEVICES_MAX - 1)]
    Unknown(String),
    /// A list has a name that is not the name of one GPU.
    #[error("invalid device {0:?} in a list: expected \"cuda:0\" to \"cuda:{max}\"", max = DEVICES_MAX - 1)]
    InList(String),
    /// A list names a device twice.
    #[error("invalid list of devices: \"cuda:{0}\" is named twice; name each device once")]
    Twice(usize),
    /// A list has no device.
    #[error("invalid list of devices: it is empty; name a device, such as \"cuda:0\"")]
    Empty,
}

impl Device {
    /// The GPUs with these numbers; one number is the same as [`Device::Cuda`].
    ///
    /// # Errors
    /// If there is no number, or a number is there twice or too large.
    pub fn list(ordinals: &[usize]) -> Result<Self, InvalidDevice> {
        let mut list = DeviceList(0);
        for &ordinal in ordinals {
            if ordinal >= DEVICES_MAX {
                return Err(InvalidDevice::InList(format!("cuda:{ordinal}")));
            }
            if list.0 >> ordinal & 1 == 1 {
                return Err(InvalidDevice::Twice(ordinal));
            }
            list.0 |= 1 << ordinal;
        }
        match ordinals {
            [] => Err(InvalidDevice::Empty),
            [one] => Ok(Self::Cuda(*one)),
            _ => Ok(Self::CudaList(list)),
        }
    }

    /// The devices that these names list.
    fn named<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, InvalidDevice> {
        let ordinal = |name: &str| match name.parse() {
            Ok(Self::Cuda(ordinal)) => Ok(ordinal),
            _ => Err(InvalidDevice::InList(name.to_owned())),
        };
        Self::list(&names.map(ordinal).collect::<Result<Vec<_>, _>>()?)
    }

    /// Whether GPUs are the only allowed place, so that it is an error if there is none, or if the
    /// last one fails.
    pub(crate) fn is_required(self) -> bool {
        match self {
            Self::Auto | Self::Cpu => false,
            Self::Cuda(_) | Self::CudaAll | Self::CudaList(_) => true,
        }
    }

    /// The numbers of the devices that an operator can open, in the order in which the operator
    /// takes the devices; the machine may have fewer. [`Device::Cpu`] takes none of them. If
    /// `cuda:all` finds no device, the first device stands for all: the attempt to open that device
    /// tells the reason.
    pub(crate) fn ordinals(self) -> Vec<usize> {
        match self {
            Self::Cpu => vec![0],
            Self::Auto => (0..DEVICES_MAX).collect(),
            Self::Cuda(ordinal) => vec![ordinal],
            Self::CudaAll => (0..cuda::Device::count().unwrap_or(1).min(DEVICES_MAX)).collect(),
            Self::CudaList(list) => list.ordinals().collect(),
        }
    }

    /// Refuses a list with a device that the driver does not show. Where no device is to be had,
    /// the run tells the reason.
    pub(crate) fn check(self) -> Result<(), BindError> {
        let Self::CudaList(list) = self else { return Ok(()) };
        let Ok(count) = cuda::Device::count() else { return Ok(()) };
        match list.ordinals().find(|ordinal| *ordinal >= count) {
            None => Ok(()),
            Some(ordinal) => {
                let reason = cuda::NoDevice::NoSuchDevice { ordinal, count };
                Err(refuse("device", format!("\"cuda:{ordinal}\""), reason.to_string()))
            }
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(0) => f.write_str("cuda"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::CudaAll => f.write_str("cuda:all"),
            Self::CudaList(list) => {
                let names = list.ordinals().map(|ordinal| format!("cuda:{ordinal}"));
                f.write_str(&names.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl FromStr for Device {
    type Err = InvalidDevice;

    /// A name, or several names of GPUs with commas between them.
    fn from_str(name: &str) -> Result<Self, InvalidDevice> {
        let number = |digits: &str| {
            (0..DEVICES_MAX).find(|number| number.to_string() == digits).map(Self::Cuda)
        };
        let device = match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            "cuda:all" => Some(Self::CudaAll),
            _ if name.contains(',') => return Self::named(name.split(',')),
            _ => name.strip_prefix("cuda:").and_then(number),
        };
        device.ok_or_else(|| InvalidDevice::Unknown(name.to_owned()))
    }
}

/// The JSON of the parameter: a name, or a list of names.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum DeviceNames {
    One(String),
    List(Vec<String>),
}

impl TryFrom<DeviceNames> for Device {
    type Error = InvalidDevice;

    fn try_from(names: DeviceNames) -> Result<Self, InvalidDevice> {
        match names {
            DeviceNames::One(name) => name.parse(),
            DeviceNames::List(names) => Self::named(names.iter().map(String::as_str)),
        }
    }
}

impl From<Device> for DeviceNames {
    fn from(device: Device) -> Self {
        match device {
            Device::CudaList(list) => {
                Self::List(list.ordinals().map(|ordinal| format!("cuda:{ordinal}")).collect())
            }
            one => Self::One(one.to_string()),
        }
    }
}

impl JsonSchema for Device {
    fn schema_name() -> Cow<'static, str> {
        "Device".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let numbered = || (0..DEVICES_MAX).map(|number| format!("cuda:{number}"));
        let named = ["auto", "cpu", "cuda", "cuda:all"].map(str::to_owned);
        let names: Vec<String> = named.into_iter().chain(numbered()).collect();
        let one: Vec<String> = ["cuda".to_owned()].into_iter().chain(numbered()).collect();
        json_schema!({
            "description": "Place where kernels run: GPUs where there are some and they pay (`auto`), \
                            the CPU (`cpu`), a GPU (`cuda`, `cuda:1`), all GPUs (`cuda:all`), or a \
                            list of GPUs; it is an error if a GPU that is named is missing, or if \
                            the last one fails.",
            "oneOf": [
                { "type": "string", "enum": names },
                {
                    "type": "array",
                    "items": { "type": "string", "enum": one },
                    "minItems": 1,
                    "uniqueItems": true,
                },
            ],
        })
    }
}
