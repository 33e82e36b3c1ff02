//! Values of the parameters.

use schemars::JsonSchema;
use serde::Deserialize;

/// Kind of the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueryOutput {
    /// The documents of each query.
    #[default]
    Documents,
    /// The number of documents of each query.
    Count,
}

/// The documents that a query is answered over: the parameter `over`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerOver {
    /// All documents: queries wait until the documents have ended. Answers do not depend on timing.
    #[default]
    All,
    /// The documents that had arrived before the batch with the query was taken: for documents that
    /// do not end.
    Arrived,
}

/// Source of the index: the parameter `index`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IndexSource {
    /// The documents of the input.
    #[default]
    Build,
    /// The file `index_path` if it exists, and then no documents are taken from the input; else the
    /// documents of the input.
    Reuse,
}
