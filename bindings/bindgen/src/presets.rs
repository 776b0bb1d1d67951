//! Prints `CompiledPresets.kt`: every preset as Rust compiled it, so that an app which only uses presets makes no native
//! call before its first failure; and the class of every kind of failure, so that no table of Rust's is repeated by hand.

use comeback::FailureKind;
use comeback::ffi::{CompiledPolicy, compile_policy};
use std::fmt::{Debug, Display, Write};
use std::process::ExitCode;

const PRESETS: [(&str, &str); 4] = [
    ("DEFAULT", "default"),
    ("PAYMENT", "payment"),
    ("READ", "read"),
    ("BATCH", "batch"),
];

fn main() -> ExitCode {
    let mut text = String::from(
        "// Written by `cargo xtask bindings`; do not edit.\n\npackage dev.comeback.ffi\n\n\
         /** The presets as Rust compiled them. */\npublic object CompiledPresets {\n",
    );
    for (constant, preset) in PRESETS {
        match compile_policy(preset.to_owned(), "{}".to_owned()) {
            Ok(policy) => text.push_str(&declaration(constant, policy)),
            Err(problem) => {
                eprintln!("error: preset `{preset}` does not compile: {problem}");
                return ExitCode::FAILURE;
            }
        }
    }
    text.push_str("}\n\n");
    text.push_str(&classes());
    print!("{text}");
    ExitCode::SUCCESS
}

fn classes() -> String {
    let mut text = String::from(
        "/** The class of a failure by its kind alone. */\n\
         public val FailureKind.compiledClass: OutcomeClass\n    get() = when (this) {\n",
    );
    for &kind in FailureKind::ALL {
        let (kind, class) = (constant(kind), constant(kind.class()));
        let _ = writeln!(text, "        FailureKind.{kind} -> OutcomeClass.{class}");
    }
    text.push_str("    }\n");
    text
}

/// Kotlin's name of a variant: `NeverSent` is `NEVER_SENT`.
fn constant(variant: impl Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

fn declaration(constant: &str, policy: CompiledPolicy) -> String {
    // Taken apart by name: a new field must be thought of here.
    let CompiledPolicy {
        bytes,
        text,
        schedule,
        key_header,
        key_quoted,
        should_retry_header,
        attempt_timeout,
        connect_timeout,
        cut_after,
        client_resends_off,
        read_body_bytes,
        ignores_network,
        repeatable,
        repeatable_keyed,
        repeatable_conditional,
        make_key,
        max_attempts,
    } = policy;
    let fields = [
        ("bytes", byte_array(&bytes)),
        ("text", string(&text)),
        ("schedule", string(&schedule)),
        ("keyHeader", string(&key_header)),
        ("keyQuoted", key_quoted.to_string()),
        (
            "shouldRetryHeader",
            or_null(should_retry_header.as_deref().map(string)),
        ),
        ("attemptTimeout", or_null(attempt_timeout.map(long))),
        ("connectTimeout", or_null(connect_timeout.map(long))),
        ("cutAfter", or_null(cut_after.map(long))),
        ("clientResendsOff", client_resends_off.to_string()),
        ("readBodyBytes", or_null(read_body_bytes.map(long))),
        ("ignoresNetwork", ignores_network.to_string()),
        ("repeatable", strings(&repeatable)),
        ("repeatableKeyed", strings(&repeatable_keyed)),
        ("repeatableConditional", strings(&repeatable_conditional)),
        ("makeKey", strings(&make_key)),
        ("maxAttempts", max_attempts.to_string()),
    ];
    let mut text = format!("    public val {constant}: CompiledPolicy = CompiledPolicy(\n");
    for (name, value) in fields {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "        {name} = {value},");
    }
    text.push_str("    )\n");
    text
}

fn byte_array(bytes: &[u8]) -> String {
    format!(
        "byteArrayOf({})",
        list(bytes.iter().map(|byte| byte.cast_signed()))
    )
}

fn strings(values: &[String]) -> String {
    format!(
        "listOf<String>({})",
        list(values.iter().map(|value| string(value)))
    )
}

fn list(values: impl Iterator<Item = impl Display>) -> String {
    values
        .map(|value| value.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn long(value: i64) -> String {
    format!("{value}L")
}

fn or_null(value: Option<String>) -> String {
    value.unwrap_or_else(|| "null".to_owned())
}

/// A Kotlin string literal: Kotlin, too, sees an expression behind a dollar sign.
fn string(value: &str) -> String {
    let mut literal = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' | '$' => literal.extend(['\\', letter]),
            '\n' => literal.push_str("\\n"),
            _ => literal.push(letter),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_comes_out_of_kotlin_as_it_went_in() {
        assert_eq!(
            string("a \"b\" \\ $c\nd · ⌊"),
            "\"a \\\"b\\\" \\\\ \\$c\\nd · ⌊\""
        );
    }

    #[test]
    fn every_kind_of_failure_has_its_class() {
        let text = classes();
        assert!(text.contains("FailureKind.CONNECT_REFUSED -> OutcomeClass.NEVER_SENT\n"));
        assert!(text.contains("FailureKind.OTHER_IO -> OutcomeClass.IN_DOUBT\n"));
        assert_eq!(text.matches("->").count(), FailureKind::ALL.len());
    }

    #[test]
    fn bytes_above_127_are_negative_in_kotlin() {
        assert_eq!(
            byte_array(&[0, 127, 128, 255]),
            "byteArrayOf(0, 127, -128, -1)"
        );
    }
}
