//! Where the logs and artifacts of tasks lie, and whether that is on this host (spec 14).

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chongming_core::store::{NodeRow, Now, TaskStore};
use chongming_core::{TaskSnapshot, attempt_files, host_name, task_dir};

use crate::args::global::Settings;
use crate::database::Database;
use crate::error::CliError;
use crate::open_store::{self, store_error};

/// What the holders of tasks declared.
pub(super) struct Places {
    nodes: Vec<NodeRow>,
    database: Database,
}

/// Where the files of one task lie.
pub(super) enum Place {
    /// Below this folder.
    Here(PathBuf),
    /// Below a folder of another host.
    Elsewhere {
        /// The host.
        host: String,
        /// The folder there.
        root: PathBuf,
    },
    /// The node that ran the task keeps none.
    Nowhere {
        /// The node's owner.
        owner: String,
    },
}

impl Places {
    /// Reads what the nodes of a store declared.
    pub(super) fn read(store: &Arc<dyn TaskStore>, settings: &Settings) -> Result<Self, CliError> {
        let nodes = store.nodes(Now::Store).map_err(store_error)?;
        Ok(Self { nodes, database: settings.database.clone() })
    }

    /// The place of a task's files. Without a row of its holder it is the database's own folder.
    pub(super) fn of(&self, task: &TaskSnapshot) -> Result<Place, CliError> {
        let holder =
            self.nodes.iter().find(|row| Some(&row.node.incarnation) == task.supervisor.as_ref());
        let Some(holder) = holder else {
            return open_store::default_artifacts(&self.database).map(Place::Here);
        };
        let Some(root) = &holder.node.artifacts else {
            return Ok(Place::Nowhere { owner: holder.node.owner.to_string() });
        };
        let root = PathBuf::from(&**root);
        if holder.node.host == host_name() {
            return Ok(Place::Here(root));
        }
        Ok(Place::Elsewhere { host: holder.node.host.to_string(), root })
    }
}

/// Deletes the logs and artifacts of all attempts of a task, and its folder if nothing else is in it: the
/// folder of artifacts may be anybody's.
pub(super) fn delete(root: &Path, task: &TaskSnapshot) -> Result<(), CliError> {
    let absent_is_well = |path: &Path, result: io::Result<()>| match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(CliError::new(format!(
            "cannot delete {}, which belongs to `{}`: {error}",
            path.display(),
            task.id
        ))),
        Ok(()) | Err(_) => Ok(()),
    };
    let folder = task_dir(root, &task.id);
    match fs::symlink_metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        // A body has put something else in its place: a link is removed, not followed.
        Ok(_) => return absent_is_well(&folder, fs::remove_file(&folder)),
        Err(error) => return absent_is_well(&folder, Err(error)),
    }
    for attempt in 1..=task.attempt {
        let files = attempt_files(root, &task.id, attempt);
        absent_is_well(&files.log, fs::remove_file(&files.log))?;
        absent_is_well(&files.artifact_dir, fs::remove_dir_all(&files.artifact_dir))?;
    }
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        result => absent_is_well(&folder, result),
    }
}
