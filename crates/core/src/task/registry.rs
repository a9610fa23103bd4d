//! The definitions of one controller: only names can be submitted, never code (spec 8).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::task::definition::TaskDefinition;
use crate::text::{InvalidText, Text, check_name, check_text};

/// Definitions by name.
#[derive(Clone, Debug, Default)]
pub struct Registry(BTreeMap<Text, Arc<TaskDefinition>>);

/// A definition that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// Its name or one of its tags is no valid text.
    Text(InvalidText),
    /// The name is taken.
    Duplicate(Text),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::Duplicate(name) => {
                write!(
                    f,
                    "a task named {name:?} is registered already; give one of them another name"
                )
            }
        }
    }
}

impl std::error::Error for RegistryError {}

impl From<InvalidText> for RegistryError {
    fn from(error: InvalidText) -> Self {
        Self::Text(error)
    }
}

impl Registry {
    /// Adds a definition.
    ///
    /// # Errors
    /// The name is invalid or taken, or a tag is invalid.
    pub fn register(&mut self, definition: TaskDefinition) -> Result<(), RegistryError> {
        check_name("task name", &definition.name)?;
        definition.defaults.tags.iter().try_for_each(|tag| check_text("tag", tag))?;
        if self.0.contains_key(&definition.name) {
            return Err(RegistryError::Duplicate(definition.name));
        }
        self.0.insert(Arc::clone(&definition.name), Arc::new(definition));
        Ok(())
    }

    /// The definition of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<TaskDefinition>> {
        self.0.get(name)
    }

    /// All definitions, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TaskDefinition>> {
        self.0.values()
    }
}
