//! The one error of a policy: which field, what was given, what is allowed.

use std::fmt;

/// A policy is not valid: the field, the value that was given, and the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    field: String,
    value: String,
    rule: String,
    place: Option<(usize, usize)>,
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
            place: None,
        }
    }

    /// The text is no JSON. The error shows the line that is wrong, from a little before the place.
    pub(super) fn no_json(text: &str, error: &serde_json::Error) -> PolicyError {
        const BEFORE: usize = 40;
        let (number, column) = (error.line(), error.column());
        let line = text.lines().nth(number.saturating_sub(1)).unwrap_or("");
        let starts = line.char_indices().map(|(start, _)| start);
        let first = starts.take_while(|start| start + BEFORE < column).last();
        let cut = if first > Some(0) { "…" } else { "" };
        let shown = format!("{cut}{:?}", &line[first.unwrap_or(0)..]);
        let rule = format!("must be a JSON object ({error})");
        PolicyError {
            place: Some((number, column)),
            ..PolicyError::new("policy", shown, rule)
        }
    }

    /// The field's name as it stands in JSON, with a dot for a part: `overload.base`. `policy` for the whole. Shortened.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value that was given, shortened; a length with its unit: `9000 ms`.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is allowed.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Where the text stops being JSON: the line, from 1, and the byte in it, from 1 (0 for an empty line). `None` for any other error.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.place
    }
}

/// An error message must not contain a document of several megabytes.
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
