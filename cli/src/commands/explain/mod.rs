//! `trommel explain`: how a pipeline would run.

mod diagram;
mod text;

use crate::args::{ExplainArguments, ExplainFormat};
use crate::config::ConfigText;
use crate::failure::Failure;

pub(super) fn run(arguments: &ExplainArguments) -> Result<u8, Failure> {
    let config = ConfigText::read(&arguments.pipeline.file)?;
    let pipeline = config.load(&arguments.pipeline.overrides)?;
    let text = match arguments.format {
        ExplainFormat::Text => text::describe(&pipeline),
        ExplainFormat::Mermaid => diagram::mermaid(&pipeline.topology),
        ExplainFormat::Dot => diagram::dot(&pipeline.topology),
    };
    crate::print(&text)?;
    Ok(0)
}
