//! Policies across the boundary: compiled once into opaque bytes and the facts a driver needs before a first attempt.

use std::fmt;

use super::problem::BoundaryProblem;
use crate::instant::nanos;
use crate::policy::{ClientResends, KeyForm, PolicyError, RetryPolicy};
use crate::request::{DriverFacts, Method};
use crate::stored::{load, store};

/// A policy for Kotlin: what it hands back with every question, and what it may know itself.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct CompiledPolicy {
    pub bytes: Vec<u8>,
    pub text: String,
    pub schedule: String,
    pub key_header: String,
    pub key_quoted: bool,
    pub should_retry_header: Option<String>,
    pub attempt_timeout: Option<i64>,
    pub connect_timeout: Option<i64>,
    /// When after the beginning an attempt in flight is cut, if at all.
    pub cut_after: Option<i64>,
    pub client_resends_off: bool,
    /// How many bytes of a response's body are read within the attempt, if any.
    pub read_body_bytes: Option<i64>,
    /// Whether nothing is ever known of the network.
    pub ignores_network: bool,
    /// Methods that may be repeated without a key and without conditions.
    pub repeatable: Vec<String>,
    /// With a key.
    pub repeatable_keyed: Vec<String>,
    /// Without a key and with conditions.
    pub repeatable_conditional: Vec<String>,
    /// Methods for which a missing key is made.
    pub make_key: Vec<String>,
    /// The most counted attempts, the first included.
    pub max_attempts: i32,
}

/// What was made of remote configuration.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ForgivenPolicy {
    pub policy: CompiledPolicy,
    pub ignored: Vec<String>,
    /// Field, value and rule of what made the fallback necessary.
    pub field: Option<String>,
    pub value: Option<String>,
    pub rule: Option<String>,
}

/// A policy that cannot be.
#[derive(Debug, PartialEq, Eq, uniffi::Error)]
pub enum PolicyProblem {
    Invalid {
        field: String,
        value: String,
        rule: String,
    },
}

impl From<PolicyError> for PolicyProblem {
    fn from(error: PolicyError) -> PolicyProblem {
        PolicyProblem::Invalid {
            field: error.field().to_owned(),
            value: error.value().to_owned(),
            rule: error.rule().to_owned(),
        }
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyProblem::Invalid { field, value, rule } = self;
        write!(out, "{field} = {value}: {rule}")
    }
}

impl std::error::Error for PolicyProblem {}

/// Compiles the preset `default`, `payment`, `read` or `batch` with the fields of a JSON object set over it.
#[uniffi::export]
pub fn compile_policy(preset: String, fields: String) -> Result<CompiledPolicy, PolicyProblem> {
    let preset = match preset.as_str() {
        "default" => RetryPolicy::default(),
        "payment" => RetryPolicy::payment(),
        "read" => RetryPolicy::read(),
        "batch" => RetryPolicy::batch(),
        other => {
            let rule = "must be one of default, payment, read, batch";
            return Err(PolicyError::new("preset", other, rule).into());
        }
    };
    Ok(compiled(&preset.with_json(&fields)?))
}

/// Reads remote configuration, forgivingly; `fallback` is a compiled policy's bytes.
#[uniffi::export]
pub fn policy_from_json_or(
    json: String,
    fallback: Vec<u8>,
) -> Result<ForgivenPolicy, BoundaryProblem> {
    let read = RetryPolicy::from_json_or(&json, &load(&fallback)?);
    let problem = read.problem.as_ref();
    Ok(ForgivenPolicy {
        policy: compiled(&read.policy),
        ignored: read.ignored,
        field: problem.map(|problem| problem.field().to_owned()),
        value: problem.map(|problem| problem.value().to_owned()),
        rule: problem.map(|problem| problem.rule().to_owned()),
    })
}

fn compiled(policy: &RetryPolicy) -> CompiledPolicy {
    let facts = DriverFacts::of(policy);
    let names = |methods: Vec<Method>| {
        methods
            .into_iter()
            .map(|method| method.name().to_owned())
            .collect()
    };
    CompiledPolicy {
        // A policy is made of numbers and names: writing it into memory cannot fail, and empty bytes would be refused later.
        bytes: store(policy).unwrap_or_default(),
        text: policy.to_string(),
        schedule: policy.schedule().to_string(),
        key_header: facts.key_header,
        key_quoted: facts.key_form == KeyForm::Quoted,
        should_retry_header: facts.should_retry_header,
        attempt_timeout: facts.attempt_timeout.map(nanos),
        connect_timeout: facts.connect_timeout.map(nanos),
        cut_after: facts.cut_after.map(nanos),
        client_resends_off: facts.client_resends == ClientResends::Off,
        read_body_bytes: facts.read_body.map(i64::from),
        ignores_network: facts.ignores_network,
        repeatable: names(facts.repeatable),
        repeatable_keyed: names(facts.repeatable_keyed),
        repeatable_conditional: names(facts.repeatable_conditional),
        make_key: names(facts.make_key),
        // Validated: at most 100.
        max_attempts: i32::try_from(facts.max_attempts).unwrap_or(i32::MAX),
    }
}
