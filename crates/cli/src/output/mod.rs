//! Everything that is written for people or scripts: text made harmless, tables, JSON, live lines.

pub(crate) mod color;
pub(crate) mod console;
pub(crate) mod dot;
pub(crate) mod escape;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod json;
pub(crate) mod live;
pub(crate) mod progress;
pub(crate) mod table;
pub(crate) mod width;
