//! Everything that is written for people or scripts: text made harmless, tables, JSON, live lines.

pub mod color;
pub mod console;
pub mod dot;
pub mod escape;
pub mod fields;
pub mod graph;
pub mod json;
pub mod live;
pub mod progress;
pub mod table;
pub mod width;
