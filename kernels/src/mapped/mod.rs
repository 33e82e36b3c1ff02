//! Files that are mapped into memory, so that a large one is opened at once and read as it is used.
//!
//! A map is read only. It has the bytes of the file, which the program must not change while
//! they are mapped: write the new content to another file and rename that. A file that another
//! program changes in place gives other bytes, and one that it shortens ends this process with a
//! signal when the missing part is read, as with every map.
#![expect(unsafe_code, reason = "a memory map is unsafe to make")]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// The bytes of a file, mapped into memory. The map begins at a page, so an offset in the file has
/// the same alignment in memory, up to 4,096 bytes.
///
/// # Examples
///
/// ```
/// use std::io::Write;
/// use trommel_kernels::mapped::MappedFile;
///
/// let mut file = tempfile::tempfile()?;
/// file.write_all(b"0123")?;
/// assert_eq!(MappedFile::new(&file)?.bytes(), b"0123");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a whole file. It may be closed afterwards.
    ///
    /// # Errors
    ///
    /// If the file cannot be mapped.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is private and read only. Files that this program maps are replaced by
        // rename and never written in place; the module says what follows if others do that.
        unsafe { Mmap::map(file) }.map(Self)
    }

    /// The bytes of the file.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
