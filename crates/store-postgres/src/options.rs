//! How a server is used.

use std::time::Duration;

/// Options of a [`PostgresStore`](crate::PostgresStore).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The schema that holds the tables. The connection string's parameter `schema` comes first.
    pub schema: String,
    /// Connections at most, listener not counted: opened when needed. Two write as fast as eight do.
    pub connections: u32,
    /// How long a call waits for a connection, before it fails as `Unavailable`. The connection string's
    /// parameter `connect_timeout` comes first.
    pub connect_timeout: Duration,
    /// How long one statement may take, before the server ends it; a little later the client gives up on a
    /// server that has not answered.
    pub statement_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: "chongming_task".to_owned(),
            connections: 4,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}
