//! Forms of the data of a task on a CPU.

/// Form of the data of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnForm {
    Batmap,
    Bitmap,
    Lists,
    Sliced,
    Sparse,
    Triangle,
}
