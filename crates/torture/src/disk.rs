//! A small disk, to be filled up at bad moments.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use chongming_test_postgres::{finish, is_root};

const SIZE: &str = "128m";

/// A file system in memory; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one here, which takes root.
    pub(crate) fn mount(folder: &Path) -> Result<Self, String> {
        if !is_root() {
            return Err("only root can mount a small disk".to_owned());
        }
        fs::create_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let size = format!("size={SIZE}");
        finish(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "torture"]).arg(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Leaves no byte free.
    pub(crate) fn fill(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot fill the disk: {error}");
        let mut file = File::create(self.filler()).map_err(failed)?;
        // Large pieces first, then what is left.
        for size in [1 << 20, 1 << 12, 1] {
            let piece = vec![b'x'; size];
            loop {
                match file.write_all(&piece) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn empty(&self) -> Result<(), String> {
        fs::remove_file(self.filler()).map_err(|error| format!("cannot empty the disk: {error}"))
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process that ends just now may have a file open.
        if let Err(message) = finish(Command::new("umount").arg("--lazy").arg(&self.folder)) {
            eprintln!("{message}");
        }
    }
}
