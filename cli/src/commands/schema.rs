//! `trommel schema`: the JSON Schema of pipelines, for editors.

use crate::failure::Failure;

pub(super) fn run() -> Result<u8, Failure> {
    crate::print(&format!("{:#}\n", trommel::schema(&trommel::registry())))?;
    Ok(0)
}
