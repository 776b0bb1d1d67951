//! Any text as a policy: strict and forgiving parsing agree, an accepted policy can be printed, written and read again.

#![no_main]

use comeback::RetryPolicy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let fallback = RetryPolicy::payment();
    let forgiving = RetryPolicy::from_json_or(text, &fallback);
    match RetryPolicy::from_json(text) {
        Ok(policy) => {
            assert_eq!(policy, forgiving.policy);
            assert!(forgiving.problem.is_none() && forgiving.ignored.is_empty());
            let written = serde_json::to_string(&policy).expect("a policy can be written");
            assert_eq!(RetryPolicy::from_json(&written).as_ref(), Ok(&policy));
            assert_eq!(policy.waits(1).count(), policy.max_attempts() as usize - 1);
            assert!(!policy.schedule().to_string().is_empty() && !policy.to_string().is_empty());
        }
        Err(error) => {
            // An unknown field is named as it was, and may have the empty name.
            assert!(!error.field().is_empty() || text.contains("\"\""));
            assert!(!error.rule().is_empty());
            assert!(forgiving.problem.is_some() || !forgiving.ignored.is_empty());
        }
    }
    if forgiving.problem.is_some() {
        assert_eq!(forgiving.policy, fallback);
    }
});
