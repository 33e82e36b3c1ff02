//! Files of little-endian numbers.

use std::fs;
use std::io;
use std::path::Path;

/// The numbers of a file of `u32`.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read_u32(path: &Path) -> io::Result<Vec<u32>> {
    Ok(fs::read(path)?.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect())
}

/// The numbers of a file of `f32`.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read_f32(path: &Path) -> io::Result<Vec<f32>> {
    Ok(fs::read(path)?.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// Writes numbers to a file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_u32(path: &Path, numbers: impl Iterator<Item = u32>) -> io::Result<()> {
    fs::write(path, numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}
