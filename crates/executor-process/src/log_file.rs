//! The log of one attempt: both streams in arrival order, bounded.
//!
//! Up to its limit the file simply grows. Then the first half stays as it is, followed by one line that
//! tells how much was cut out, and by the latest output: whenever the file is full again, the older part of
//! that is dropped by moving the newer one down. So the file is a readable log at every moment, also when
//! the supervisor is killed, and needs no memory but a small buffer.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::command::MIN_MAX_LOG_BYTES;

/// Bytes that the cut's line takes, newlines included.
const MARK_BYTES: u64 = 60;
/// A log being written. After the first error nothing more is written.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    limit: u64,
    length: u64,
    cut: u64,
    broken: bool,
}

impl LogFile {
    /// Creates it, empty, with its folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let open = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true);
            // A link that somebody left in its place must not lead us to another file.
            options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)
        };
        let file = match (open(), path.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(parent)?;
                open()?
            }
            (opened, _) => opened?,
        };
        Ok(Self { file, limit: limit.max(MIN_MAX_LOG_BYTES), length: 0, cut: 0, broken: false })
    }

    /// Adds output.
    ///
    /// # Errors
    /// The first error, once; from then on output is dropped without a word.
    pub(crate) fn write(&mut self, output: &[u8]) -> io::Result<()> {
        if self.broken {
            return Ok(());
        }
        let written = self.try_write(output);
        self.broken = written.is_err();
        written
    }

    fn try_write(&mut self, mut output: &[u8]) -> io::Result<()> {
        while !output.is_empty() {
            if self.length == self.limit {
                self.make_room()?;
            }
            let room = usize::try_from(self.limit - self.length).unwrap_or(usize::MAX);
            let (now, later) = output.split_at(output.len().min(room));
            self.file.write_all_at(now, self.length)?;
            self.length += now.len() as u64;
            output = later;
        }
        Ok(())
    }

    /// Drops the older half of what follows the head.
    fn make_room(&mut self) -> io::Result<()> {
        let head = self.limit / 2;
        let tail_start = head + MARK_BYTES;
        let kept = (self.limit - tail_start) / 2;
        let from = self.limit - kept;
        let dropped_start = if self.cut == 0 { head } else { tail_start };
        self.cut += from - dropped_start;
        let mut buffer = [0; 16 * 1024];
        let mut moved = 0;
        while moved < kept {
            let size = buffer.len().min(usize::try_from(kept - moved).unwrap_or(usize::MAX));
            let Some(part) = buffer.get_mut(..size) else { break };
            self.file.read_exact_at(part, from + moved)?;
            self.file.write_all_at(part, tail_start + moved)?;
            moved += part.len() as u64;
        }
        self.file.write_all_at(mark(self.cut).as_bytes(), head)?;
        self.length = tail_start + kept;
        self.file.set_len(self.length)
    }
}

/// The cut's line, always of the same length.
fn mark(cut: u64) -> String {
    format!("\n[... {:.<width$}]\n", format!("{cut} bytes cut "), width = MARK_BYTES as usize - 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_has_its_length() {
        for cut in [1, 123_456, u64::MAX] {
            assert_eq!(mark(cut).len() as u64, MARK_BYTES, "{:?}", mark(cut));
        }
    }

    #[test]
    fn a_short_log_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/1.log");
        let mut log = LogFile::create(&path, 1024).unwrap();
        log.write(&[b'x'; 1000]).unwrap();
        log.write(&[b'y'; 24]).unwrap();
        assert_eq!(fs::read(path).unwrap(), [[b'x'; 1000].as_slice(), &[b'y'; 24]].concat());
    }

    #[test]
    fn a_long_log_keeps_its_ends_and_counts_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        for piece in [1, 7, 300, 5000] {
            let path = dir.path().join("long.log");
            let mut log = LogFile::create(&path, 2000).unwrap();
            let output: Vec<u8> =
                (0..3000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
            for part in output.chunks(piece) {
                log.write(part).unwrap();
                assert!(fs::metadata(&path).unwrap().len() <= 2000);
            }
            let kept = fs::read(&path).unwrap();
            assert_eq!(kept[..1000], output[..1000]);
            let marked = std::str::from_utf8(&kept[1000..1060]).unwrap();
            let cut: usize = marked
                .trim_start_matches("\n[... ")
                .split(' ')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap();
            let tail = &kept[1060..];
            assert!(tail.len() >= 470, "{}", tail.len());
            assert_eq!(1000 + cut + tail.len(), output.len());
            assert!(output.ends_with(tail));
        }
    }

    #[test]
    fn a_limit_without_room_for_both_ends_is_raised() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("small.log");
        let mut log = LogFile::create(&path, 0).unwrap();
        log.write(&[b'x'; MIN_MAX_LOG_BYTES as usize]).unwrap();
        assert_eq!(fs::metadata(path).unwrap().len(), MIN_MAX_LOG_BYTES);
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("1.log"), dir.path().join("other"));
        fs::write(&other, "keep").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(LogFile::create(&path, 1024).is_err());
        assert_eq!(fs::read(other).unwrap(), b"keep");
    }

    #[test]
    fn an_error_is_told_once() {
        let mut log = LogFile::create(Path::new("/dev/full"), 1024).unwrap();
        assert!(log.write(b"x").is_err());
        assert!(log.write(b"x").is_ok());
    }
}
