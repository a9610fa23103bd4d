//! Node rows: one for each incarnation of a controller, with its lease (spec 12).

use std::num::NonZeroU32;

use crate::bucket::BucketSet;
use crate::id::IncarnationId;
use crate::text::Text;
use crate::time::Timestamp;

/// What an incarnation declares about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Who runs it, such as `host:pid` or a configured name.
    pub owner: Text,
    /// This life of it.
    pub incarnation: IncarnationId,
    /// Machine.
    pub host: Text,
    /// Process.
    pub pid: u32,
    /// Bucket count that it works with.
    pub num_buckets: NonZeroU32,
    /// Buckets that it declares as its own; `None` = unrestricted.
    pub owned_buckets: Option<BucketSet>,
    /// Where its logs and artifacts lie, on its host.
    pub artifacts: Option<Text>,
    /// When it started, by its clock.
    pub started_at: Timestamp,
}

/// A declaration as it stands in the store; it stays after death as the last known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// The declaration.
    pub node: Node,
    /// How long its lease lasts, by the store's clock.
    pub lease_until: Timestamp,
    /// Has the lease not expired, by the clock that was asked for?
    pub alive: bool,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// How long the lease lasts now.
    pub lease_until: Timestamp,
    /// It had expired before this renewal: tasks may have been taken meanwhile.
    pub had_lapsed: bool,
}
