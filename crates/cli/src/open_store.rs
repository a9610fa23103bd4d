//! Opens the store that `--db` names: the only place that knows which stores there are.

use crate::database::Database;
use crate::error::CliError;

/// What is said when this program was built without the store that a database needs.
pub(crate) fn missing(database: &Database) -> CliError {
    let feature = match database {
        Database::Sqlite(_) => "sqlite",
        Database::Postgres(_) => "postgres",
    };
    CliError::user(format!(
        "cannot open {database}: this program was built without the feature `{feature}`"
    ))
    .hint(format!("build it with `--features {feature}`"))
}
