//! What bodies write down about themselves: one file for all, appended to by single writes, and one lock for
//! each task, held by whoever runs for it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::history::{Mark, Micros, Moment};

/// The wall clock.
pub(crate) fn now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX)
}

fn file(folder: &Path) -> PathBuf {
    folder.join("marks")
}

fn locks(folder: &Path) -> PathBuf {
    folder.join("locks")
}

/// Makes room for marks.
pub(crate) fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(locks(folder))?;
    File::create(file(folder)).map(drop)
}

/// A body at work; while it lives, and whoever inherits its lock, no other should begin.
#[derive(Debug)]
pub(crate) struct AtWork {
    folder: PathBuf,
    mark: Mark,
    /// Held; passed on to what the body starts.
    pub(crate) lock: File,
}

impl AtWork {
    /// Takes the lock, if it is free, and says that it begins. To be called first of all.
    pub(crate) fn begin(
        folder: &Path,
        task: &str,
        attempt: u32,
        supervisor: u32,
        checked: Option<Micros>,
    ) -> io::Result<Self> {
        let began = now();
        let lock = File::create(locks(folder).join(task))?;
        let what = match lock.try_lock() {
            Ok(()) => Moment::Begin,
            Err(TryLockError::WouldBlock) => Moment::BeginBeside,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        let task = task.to_owned();
        let mark = Mark { what, task, attempt, supervisor, checked, began, at: now() };
        append(folder, &mark)?;
        Ok(Self { folder: folder.to_owned(), mark, lock })
    }

    /// Says that it comes to its end.
    pub(crate) fn end(&self, is_success: bool) -> io::Result<()> {
        let what = if is_success { Moment::Success } else { Moment::End };
        append(&self.folder, &Mark { what, at: now(), ..self.mark.clone() })
    }
}

fn append(folder: &Path, mark: &Mark) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(file(folder))?;
    file.write_all(line(mark).as_bytes())
}

fn line(mark: &Mark) -> String {
    let Mark { what, task, attempt, supervisor, checked, began, at } = mark;
    let what = match what {
        Moment::Begin => "begin",
        Moment::BeginBeside => "begin-beside",
        Moment::Success => "success",
        Moment::End => "end",
    };
    let checked = checked.map_or_else(|| "-".to_owned(), |checked| checked.to_string());
    format!("{what} {task} {attempt} {supervisor} {checked} {began} {at}\n")
}

fn parse(line: &str) -> Option<Mark> {
    let mut words = line.split(' ');
    let what = match words.next()? {
        "begin" => Moment::Begin,
        "begin-beside" => Moment::BeginBeside,
        "success" => Moment::Success,
        "end" => Moment::End,
        _ => return None,
    };
    let task = words.next()?.to_owned();
    let attempt = words.next()?.parse().ok()?;
    let supervisor = words.next()?.parse().ok()?;
    let checked = match words.next()? {
        "-" => None,
        checked => Some(checked.parse().ok()?),
    };
    let (began, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Mark { what, task, attempt, supervisor, checked, began, at })
}

/// All marks so far.
pub(crate) fn read(folder: &Path) -> Result<Vec<Mark>, String> {
    let text = fs::read_to_string(file(folder)).map_err(|error| format!("marks: {error}"))?;
    let parsed = text.lines().map(|line| parse(line).ok_or_else(|| format!("no mark: {line:?}")));
    parsed.collect()
}

/// Tasks whose lock somebody holds.
pub(crate) fn locked(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: io::Error| format!("locks: {error}");
    let mut held = Vec::new();
    for entry in fs::read_dir(locks(folder)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let lock = File::open(entry.path()).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                held.push(entry.file_name().to_string_lossy().into_owned());
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_body_is_beside_the_first_until_that_and_its_children_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        prepare(folder).unwrap();
        let first = AtWork::begin(folder, "t", 1, 7, Some(1)).unwrap();
        let inherited = first.lock.try_clone().unwrap();
        AtWork::begin(folder, "t", 2, 8, None).unwrap().end(false).unwrap();
        first.end(true).unwrap();
        drop(first);
        assert_eq!(locked(folder).unwrap(), ["t"]);
        drop(inherited);
        assert!(locked(folder).unwrap().is_empty());
        AtWork::begin(folder, "t", 3, 8, None).unwrap();
        let marks = read(folder).unwrap();
        assert_eq!(marks[0].checked, Some(1));
        assert!(marks.iter().all(|mark| mark.began <= mark.at), "{marks:?}");
        let seen: Vec<_> = marks.iter().map(|m| (m.what, m.attempt, m.supervisor)).collect();
        assert_eq!(
            seen,
            [
                (Moment::Begin, 1, 7),
                (Moment::BeginBeside, 2, 8),
                (Moment::End, 2, 8),
                (Moment::Success, 1, 7),
                (Moment::Begin, 3, 8),
            ]
        );
    }
}
