//! The one error of a policy: which field, what was given, what is allowed.

use std::fmt;

/// A policy that cannot be: the field, the value that was given and the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    field: String,
    value: String,
    rule: String,
}

impl PolicyError {
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        rule: impl Into<String>,
    ) -> PolicyError {
        PolicyError {
            field: shortened(field.into()),
            value: shortened(value.to_string()),
            rule: rule.into(),
        }
    }

    /// The field's name as it stands in JSON, with a dot for a part: `overload.base`. `policy` for the whole. Shortened.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value that was given, shortened.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is allowed.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

/// An error message is no place for a document of some megabytes.
fn shortened(mut text: String) -> String {
    const MOST: usize = 80;
    if let Some((end, _)) = text.char_indices().nth(MOST) {
        text.truncate(end);
        text.push('…');
    }
    text
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = {}: {}", self.field, self.value, self.rule)
    }
}

impl std::error::Error for PolicyError {}
