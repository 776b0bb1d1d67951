//! Comeback: decides whether, when and why a failed request goes again.
