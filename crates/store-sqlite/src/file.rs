//! What lies at a path, found out by plain reading: a file that is not ours is never given to SQLite, which
//! might change it or put a log beside it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chongming_core::store::{StoreError, StoreErrorKind};

use crate::error::Subject;
use crate::schema::{self, APPLICATION_ID, VERSION};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Missing,
    /// A file without content.
    Empty,
    /// A database of ours that this program can read.
    Ours,
}

/// Tells one file from another that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Of what lies at the path.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(path).ok()?;
        Some(Self { device: found.dev(), inode: found.ino() })
    }

    /// Elsewhere nobody can delete or replace a file that is open.
    #[cfg(not(unix))]
    const fn of(_: &Path) -> Option<Self> {
        None
    }
}

/// What SQLite adds to the path of a database for its log, and for the index of that.
const LOG: &str = "-wal";
const INDEX: &str = "-shm";

/// The files that a connection works with: the database, its log, and the index of that. Each stays the same file
/// as long as a connection is open, and only together are they what others find at the path.
#[derive(Debug)]
pub(crate) struct Files([(PathBuf, Option<FileId>); 3]);

/// A file that is not the one any more that a connection works with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gone<'a> {
    pub(crate) path: &'a Path,
    /// Another lies in its place, and may hold what others wrote.
    pub(crate) is_replaced: bool,
}

impl Files {
    /// Those of a connection that has read from the database at the path.
    pub(crate) fn of(path: &Path) -> Self {
        let paths = [path.to_owned(), beside(path, LOG), beside(path, INDEX)];
        Self(paths.map(|path| {
            let id = FileId::of(&path);
            (path, id)
        }))
    }

    /// The first that is gone.
    pub(crate) fn gone(&self) -> Option<Gone<'_>> {
        self.0.iter().find_map(|(path, was)| {
            let is = FileId::of(path);
            (is != *was).then_some(Gone { path, is_replaced: is.is_some() })
        })
    }
}

/// Is there a log beside the file? Then somebody has it open, or what it holds is not complete without.
pub(crate) fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, LOG)).is_ok_and(|log| log.len() > 0)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Files that this process has open, by canonical path.
///
/// Closing any descriptor of a file drops all of a process's POSIX locks on it, also those of SQLite: so a
/// file is read by hand only while no store of this process has it open.
static OPEN: Mutex<Option<HashMap<PathBuf, usize>>> = Mutex::new(None);

/// A file that this process has open; give it up only after all its connections.
#[derive(Debug)]
pub(crate) struct Registration(PathBuf);

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(files) = registry().as_mut()
            && let Some(count) = files.get_mut(&self.0)
        {
            *count -= 1;
            if *count == 0 {
                files.remove(&self.0);
            }
        }
    }
}

fn registry() -> MutexGuard<'static, Option<HashMap<PathBuf, usize>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The absolute path with links resolved; of a file that does not exist yet, in its folder's.
pub(crate) fn resolve(path: &Path, subject: &Subject) -> Result<PathBuf, StoreError> {
    match path.canonicalize() {
        Ok(path) => return Ok(path),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(unreadable(subject, e)),
    }
    if path.is_symlink() {
        let what =
            "is a symbolic link to a file that does not exist; remove it or give another path";
        return Err(subject.refuse(StoreErrorKind::Foreign, "open", what));
    }
    if ends_like_a_folder(path) {
        let what = "does not exist, and is written like a folder; give the path of a file";
        return Err(subject.refuse(StoreErrorKind::Invalid, "open", what));
    }
    let Some(name) = path.file_name() else {
        let what = "has no file name; give the path of a file";
        return Err(subject.refuse(StoreErrorKind::Invalid, "open", what));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match folder.canonicalize() {
        Ok(folder) => Ok(folder.join(name)),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let what = format_args!(
                "does not exist, and there is no folder {}; make the folder, or check the path",
                folder.display()
            );
            Err(subject.refuse(StoreErrorKind::Denied, "open", what).caused_by(e))
        }
        Err(e) => Err(unreadable(subject, e)),
    }
}

/// Does it end in a separator, or in the folder itself? `Path` overlooks both, and would make a file that is
/// not found under this path again.
fn ends_like_a_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let bytes = bytes.strip_suffix(b".").unwrap_or(bytes);
    bytes.last().is_some_and(|last| std::path::is_separator(char::from(*last)))
}

/// Looks at the file and registers it.
///
/// # Errors
/// It is not ours, of a newer version, or cannot be read.
pub(crate) fn probe(path: &Path, subject: &Subject) -> Result<(Found, Registration), StoreError> {
    let mut registry = registry();
    let files = registry.get_or_insert_default();
    let found = match files.get(path) {
        Some(_) => Found::Ours, // or about to be: whoever opened it looked
        None => look(path, subject)?,
    };
    *files.entry(path.to_owned()).or_insert(0) += 1;
    Ok((found, Registration(path.to_owned())))
}

fn look(path: &Path, subject: &Subject) -> Result<Found, StoreError> {
    let kind = match fs::metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Found::Missing),
        Err(e) => return Err(unreadable(subject, e)),
    };
    if !kind.is_file() {
        let what = if kind.is_dir() { "is a folder" } else { "is not a regular file" };
        let what = format_args!("{what}; give the path of a file");
        return Err(subject.refuse(StoreErrorKind::Foreign, "open", what));
    }
    let mut header = Vec::with_capacity(HEADER);
    let read = File::open(path).and_then(|file| file.take(HEADER as u64).read_to_end(&mut header));
    read.map_err(|e| unreadable(subject, e))?;
    if header.is_empty() {
        return Ok(Found::Empty);
    }
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_be_bytes)
    };
    match (number(APPLICATION_ID_AT), number(USER_VERSION_AT)) {
        (Some(id), Some(version)) if header.starts_with(MAGIC) => match version {
            _ if id != APPLICATION_ID => Err(schema::foreign(subject)),
            newer if newer > VERSION => Err(schema::newer(subject, newer)),
            _ => Ok(Found::Ours),
        },
        _ => {
            let what = "is no SQLite database; nothing was changed, give another path";
            Err(subject.refuse(StoreErrorKind::Foreign, "open", what))
        }
    }
}

/// Of the SQLite file format: bytes of the header, and where its fields lie.
const HEADER: usize = 100;
const MAGIC: &[u8] = b"SQLite format 3\0";
const USER_VERSION_AT: usize = 60;
const APPLICATION_ID_AT: usize = 68;

fn unreadable(subject: &Subject, error: io::Error) -> StoreError {
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => StoreErrorKind::Denied,
        ErrorKind::InvalidInput | ErrorKind::InvalidFilename | ErrorKind::NotADirectory => {
            StoreErrorKind::Invalid
        }
        _ => StoreErrorKind::Unavailable,
    };
    let what = format_args!("cannot be read: {error}; check the path and its rights");
    subject.refuse(kind, "open", what).caused_by(error)
}
