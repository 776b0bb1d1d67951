//! The boundary to Kotlin: exports only, thin.
