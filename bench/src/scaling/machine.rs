//! The cores of this process, and the speed at which threads read files from the page cache.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use trommel::placement::{available_cores, parallelism};

/// Bytes of a read.
const CHUNK: usize = 1 << 20;

/// Numbers of cores that runs have, ascending.
#[derive(Debug)]
pub(super) struct Cores {
    counts: Vec<usize>,
}

/// The first cores of this process.
pub(super) struct FirstCores {
    set: CpuSet,
    pub(super) count: usize,
}

impl Cores {
    /// The numbers of cores that are asked for; without any, powers of two up to the cores that
    /// this process may use, and all of these.
    ///
    /// # Errors
    /// If more cores are asked for than there are.
    pub(super) fn of(asked: &[usize]) -> Result<Self, String> {
        let most = parallelism().max(1);
        let mut counts = asked.to_vec();
        if counts.is_empty() {
            counts.extend((0..).map(|power| 1 << power).take_while(|&count| count < most));
            counts.push(most);
        }
        counts.sort_unstable();
        counts.dedup();
        match counts.last() {
            Some(&largest) if largest > most => {
                Err(format!("--cores {largest}: this process may use {most}"))
            }
            _ => Ok(Self { counts }),
        }
    }

    pub(super) fn counts(&self) -> &[usize] {
        &self.counts
    }

    pub(super) fn largest(&self) -> usize {
        self.counts.last().copied().unwrap_or(1)
    }

    /// The first `count` cores.
    pub(super) fn first(&self, count: usize) -> FirstCores {
        let mut set = CpuSet::new();
        available_cores().iter().take(count).for_each(|&core| set.set(core));
        FirstCores { set, count }
    }
}

impl FirstCores {
    /// Does some work on these cores alone, with the threads and processes that the work starts.
    ///
    /// # Panics
    /// If the operating system does not allow the affinity.
    pub(super) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = sched_getaffinity(None).expect("a thread has an affinity");
        sched_setaffinity(None, &self.set).expect("the cores are those of this process");
        let result = work();
        sched_setaffinity(None, &before).expect("it had these cores before");
        result
    }
}

/// Processes that wanted a core in the last minute. Other work takes more from a run on all cores
/// than from a run on one, whose core the other work can leave.
pub(super) fn load() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// Reads files by `threads` threads, each of which takes the next megabyte, and adds up their
/// words, so that each byte reaches a core. Returns the number of bytes.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn read(paths: &[PathBuf], threads: usize) -> io::Result<u64> {
    let files = paths.iter().map(File::open).collect::<io::Result<Vec<File>>>()?;
    let mut pieces = Vec::new();
    for file in &files {
        let begins = (0..file.metadata()?.len()).step_by(CHUNK);
        pieces.extend(begins.map(|begin| (file, begin)));
    }
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<u64> {
        let (mut buffer, mut bytes, mut sum) = (vec![0; CHUNK], 0, 0_u64);
        // Each thread only has to get pieces that no other thread has got.
        while let Some((file, begin)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let count = read_piece(file, &mut buffer, *begin)?;
            let (words, _) = buffer[..count].as_chunks();
            sum = words.iter().fold(sum, |sum, &word| sum.wrapping_add(u64::from_ne_bytes(word)));
            bytes += count as u64;
        }
        black_box(sum);
        Ok(bytes)
    };
    thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        started.into_iter().map(|thread| thread.join().expect("reading does not panic")).sum()
    })
}

/// Fills the buffer from a place of the file, or up to the end of the file.
fn read_piece(file: &File, buffer: &mut [u8], begin: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], begin + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cores_are_those_that_exist() {
        let all = Cores::of(&[]).unwrap();
        assert_eq!((all.counts()[0], all.largest()), (1, parallelism()));
        assert!(all.counts().is_sorted());
        assert_eq!(Cores::of(&[1, 1]).unwrap().counts(), [1]);
        assert!(Cores::of(&[parallelism() + 1]).unwrap_err().contains("may use"));
    }

    #[test]
    fn work_has_the_first_cores_and_the_thread_has_its_own_again() {
        let before = sched_getaffinity(None).unwrap();
        let one = Cores::of(&[1]).unwrap().first(1);
        let inside = one.run(|| {
            thread::scope(|scope| scope.spawn(|| sched_getaffinity(None).unwrap()).join().unwrap())
        });
        assert_eq!(inside.count(), 1);
        assert!(inside.is_set(available_cores()[0]));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn every_byte_of_all_files_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let sizes = [0, 1, CHUNK, 2 * CHUNK + 5];
        let paths: Vec<PathBuf> = sizes.iter().map(|n| folder.path().join(n.to_string())).collect();
        for (path, &bytes) in paths.iter().zip(&sizes) {
            std::fs::write(path, vec![1; bytes]).unwrap();
        }
        let bytes: usize = sizes.iter().sum();
        assert_eq!(read(&paths, 3).unwrap(), bytes as u64);
    }
}
