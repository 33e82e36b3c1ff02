use std::fs::Permissions;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tempfile::{TempDir, tempdir};

use super::*;

fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = Destination::file(path)?.replace()?;
    file.write(bytes)?;
    file.commit()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_file_gets_its_name_when_it_is_committed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let destination = Destination::file(&path).unwrap();
    destination.probe().unwrap();
    assert_eq!(names(&folder), ["file"], "a check leaves nothing");
    let mut first = destination.replace().unwrap();
    let mut second = destination.replace().unwrap();
    first.write(b"first").unwrap();
    second.write(b"second").unwrap();
    assert_eq!(names(&folder), ["file"], "a process that is killed leaves nothing");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    second.commit().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    drop(first);
    assert_eq!(names(&folder), ["file"]);
}

#[test]
fn modes_are_those_of_the_old_file_or_of_any_new_one() {
    let folder = tempdir().unwrap();
    let (plain, new, old) =
        (folder.path().join("plain"), folder.path().join("new"), folder.path().join("old"));
    fs::write(&plain, "").unwrap();
    put(&new, b"1").unwrap();
    assert_eq!(mode(&new), mode(&plain));
    fs::write(&old, "").unwrap();
    for kept in [0o640, 0o755, 0o666] {
        fs::set_permissions(&old, Permissions::from_mode(kept)).unwrap();
        Destination::file(&old).unwrap().replace().unwrap().commit().unwrap();
        assert_eq!(mode(&old), kept);
    }
}

#[test]
fn links_stay_links_also_to_files_that_do_not_exist() {
    let folder = tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    let (link, chain) = (folder.path().join("link"), folder.path().join("chain"));
    symlink("real/file", &link).unwrap();
    symlink(&link, &chain).unwrap();
    for content in ["new", "replaced"] {
        put(&chain, content.as_bytes()).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(&chain).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("real/file")).unwrap(), content);
    }
    symlink("loop", folder.path().join("loop")).unwrap();
    let looped = Destination::file(&folder.path().join("loop")).unwrap_err().to_string();
    assert!(looped.contains("levels of symbolic links"), "{looped}");
}

#[test]
fn pipes_and_devices_are_written_where_they_are() {
    let folder = tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let alone = Destination::file(&fifo).unwrap().replace().unwrap_err().to_string();
    assert!(alone.ends_with("no process reads this pipe"), "{alone}");
    // The pipe is opened for reading and writing, so that the opening does not wait.
    let mut reader = File::options().read(true).write(true).open(&fifo).unwrap();
    put(&fifo, b"through").unwrap();
    let mut read = [0; 7];
    reader.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"through");
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
    put(Path::new("/dev/null"), b"x").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert_eq!(names(&folder), ["fifo"]);
}

#[test]
fn folders_and_sockets_are_refused() {
    let folder = tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let refused = |path: &Path| Destination::file(path).unwrap_err();
    assert!(matches!(refused(folder.path()), FileError::Folder { .. }));
    assert!(matches!(refused(&socket), FileError::Socket { .. }));
    assert!(matches!(refused(&folder.path().join("no/file")), FileError::NoFolder { .. }));
    assert!(matches!(refused(&socket.join("file")), FileError::Io { .. }));
    assert!(matches!(refused(&folder.path().join("..")), FileError::Folder { .. }));
    assert!(matches!(refused(Path::new("")), FileError::NoName));
}

#[test]
fn a_file_has_one_claim_however_it_is_named() {
    let folder = tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = |name: &str| Destination::file(&at(name)).unwrap().claim("path").unwrap().key;
    fs::create_dir(at("sub")).unwrap();
    symlink("new", at("link")).unwrap();
    symlink(".", at("here")).unwrap();
    for _ in 0..2 {
        assert_eq!(key("new"), key("sub/../new"));
        assert_eq!(key("new"), key("link"));
        assert_eq!(key("new"), key("here/new"));
        assert_ne!(key("new"), key("other"));
        assert_ne!(key("new"), key("sub/new"));
        // The same paths are checked again, now with a file that exists.
        fs::write(at("new"), "").unwrap();
    }
    fs::hard_link(at("new"), at("twin")).unwrap();
    assert_eq!(key("new"), key("twin"));
    let null = Destination::file(Path::new("/dev/null")).unwrap();
    assert_eq!(null.claim("path"), None);
    let stdout = || Destination::stdout().claim("path");
    assert!(stdout().is_some() && stdout() == stdout());
}

#[test]
fn a_full_pipe_that_is_non_blocking_is_waited_for() {
    let (mut reader, writer) = io::pipe().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(writer));
    let flags = rustix::fs::fcntl_getfl(&file).unwrap();
    rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK).unwrap();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let read = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .spawn_scoped(scope, || {
                write_all(&file, &bytes).unwrap();
                drop(file);
            })
            .unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        read
    });
    assert!(read == (0..1_000_000_u32).map(|i| i.to_le_bytes()[0]).collect::<Vec<_>>());
}

/// Another program writes to the descriptor before and after.
#[test]
fn a_descriptor_that_a_path_names_is_written_where_it_stands() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"before\n").unwrap();
    let number = file.as_raw_fd();
    let own = std::process::id();
    let link = folder.path().join("link");
    symlink(format!("/dev/fd/{number}"), &link).unwrap();
    let names = [
        format!("/dev/fd/{number}"),
        format!("/proc/{own}/fd/{number}"),
        link.display().to_string(),
    ];
    for name in &names {
        put(Path::new(name), b"ours\n").unwrap();
    }
    file.write_all(b"after\n").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\nours\nours\nours\nafter\n");
    let claim = |path: &str| Destination::file(Path::new(path)).unwrap().claim("path").unwrap().key;
    assert_eq!(claim(&names[0]), claim(path.to_str().unwrap()));
    let reading = File::open(&path).unwrap();
    let refused = Destination::file(Path::new(&format!("/dev/fd/{}", reading.as_raw_fd())));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with("the descriptor is open for reading only"), "{refused}");
    assert!(Destination::file(Path::new("/dev/fd/9999")).is_err());
}

/// The superuser may create files in every folder, so a rename replaces the file if the superuser
/// runs the test. Only for other users is the file itself written.
#[test]
fn a_file_in_a_folder_that_takes_no_files_is_written_when_all_is_there() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "a long old text").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let may_create = File::create(folder.path().join("probe")).is_ok();
    let mut file = Destination::file(&path).unwrap().replace().unwrap();
    file.write(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a long old text");
    file.commit().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().ino() == inode, !may_create);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_pipe_without_a_reader_is_no_error_for_a_stream() {
    let folder = tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let destination = Destination::file(&fifo).unwrap();
    assert!(destination.try_replace().unwrap().is_none());
    let _reader = File::options().read(true).write(true).open(&fifo).unwrap();
    let mut file = destination.try_replace().unwrap().expect("somebody reads");
    let mut taken = 0;
    // The pipe takes some bytes, and then no byte, without waiting.
    while let more @ 1.. = file.try_write(&[7; 4096]).unwrap() {
        taken += more;
    }
    assert!(taken >= 4096);
    assert!(file.descriptor().is_some());
}
