use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::fs::{FileType, mknodat};
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
    assert_eq!(names(&folder).len(), 3, "two that write the same file have names of their own");
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
        let file = Destination::file(&old).unwrap().replace().unwrap();
        let part = names(&folder).into_iter().find(|name| name.ends_with(".part")).unwrap();
        assert_eq!(mode(&folder.path().join(part)) & 0o077, 0, "nobody else may read it yet");
        file.commit().unwrap();
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
    let alone = Destination::file(&fifo).unwrap().replace_now().unwrap_err().to_string();
    assert!(alone.ends_with("no process reads this pipe"), "{alone}");
    // Open for both, so that opening it waits for nobody.
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
    assert!(matches!(refused(Path::new("")), FileError::NoFolder { .. }));
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
        // Now as a file that exists.
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
