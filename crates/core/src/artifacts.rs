//! Where an attempt's log and artifacts lie (spec 14).
//!
//! `ROOT/<task>/<attempt>.log` and `ROOT/<task>/<attempt>/`. The folder's name is the task id where that
//! is a harmless file name, and an escaped form of it otherwise.

use std::path::{Path, PathBuf};

use crate::blake2b::digest_u64;
use crate::id::TaskId;

/// The places of one attempt. Nothing is created before it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFiles {
    /// Its log.
    pub log: PathBuf,
    /// Its artifact folder.
    pub artifact_dir: PathBuf,
}

/// The folder of a task below `root`.
#[must_use]
pub fn task_dir(root: &Path, id: &TaskId) -> PathBuf {
    root.join(file_name(id.as_str()))
}

/// The places of one attempt of a task below `root`.
#[must_use]
pub fn attempt_files(root: &Path, id: &TaskId, attempt: u32) -> AttemptFiles {
    let dir = task_dir(root, id);
    AttemptFiles {
        log: dir.join(format!("{attempt}.log")),
        artifact_dir: dir.join(attempt.to_string()),
    }
}

/// Longest file name that every file system takes.
const MAX_FILE_NAME: usize = 200;

/// An injective, harmless file name: letters, digits, `-`, `_`, `.` (not in front) stay, every other byte
/// becomes `%XX`; a long one is cut and ends in its hash.
fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for (i, byte) in id.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if i > 0 => name.push('.'),
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    if name.len() > MAX_FILE_NAME {
        name.truncate(MAX_FILE_NAME - 18);
        name.push_str(&format!("~{:016x}", digest_u64(id.as_bytes())));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_root() {
        for (id, name) in [
            ("demo-1", "demo-1"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("run:node", "run%3Anode"),
            (".", "%2E"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(file_name(id), name);
        }
        let (a, b) = ("/".repeat(255), format!("{}x", "/".repeat(254)));
        assert!(file_name(&a).len() <= MAX_FILE_NAME && file_name(&a) != file_name(&b));
    }
}
