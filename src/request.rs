//! What of a request decides whether it may be sent again: method, key, conditions, body.

use serde::{Deserialize, Serialize};

use crate::instant::duration;
use crate::policy::{ClientResends, KeyForm, Offline, Repeat, RetryPolicy};
use std::time::Duration;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)] // RFC 9110 and RFC 5789 say what they are
#[non_exhaustive]
pub enum Method {
    Get,
    Head,
    Options,
    Trace,
    Put,
    Delete,
    Post,
    Patch,
    /// Any other method. Nothing is known of it, so it is repeated only if the app vouches for it.
    Other,
}

impl Method {
    /// All methods that have a name here.
    pub const NAMED: &'static [Method] = &[
        Method::Get,
        Method::Head,
        Method::Options,
        Method::Trace,
        Method::Put,
        Method::Delete,
        Method::Post,
        Method::Patch,
    ];

    /// The method of this name; methods are case-sensitive (RFC 9110, 9.1).
    pub fn parse(name: &str) -> Method {
        Method::NAMED
            .iter()
            .copied()
            .find(|method| method.name() == name)
            .unwrap_or(Method::Other)
    }

    /// The name on the wire; of [`Method::Other`] it is `other`.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Other => "other",
        }
    }
}

/// The facts of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RequestFacts {
    /// The method.
    pub method: Method,
    /// Whether it carries an idempotency key, the caller's or one that was made.
    pub has_key: bool,
    /// Whether it carries If-Match, If-None-Match or If-Unmodified-Since.
    pub conditional: bool,
    /// Whether it has a body.
    pub has_body: bool,
    /// Whether the body can be sent again byte for byte; true without a body.
    pub body_replayable: bool,
    /// Whether it says `Cache-Control: only-if-cached`.
    pub only_if_cached: bool,
}

impl RequestFacts {
    /// A plain request: no key, no conditions, no body.
    pub fn new(method: Method) -> RequestFacts {
        RequestFacts {
            method,
            has_key: false,
            conditional: false,
            has_body: false,
            body_replayable: true,
            only_if_cached: false,
        }
    }

    /// Reads a request's raw header lines, the only place that does: those of the policy's key header, of If-Match, If-None-Match and
    /// If-Unmodified-Since together, and of Cache-Control.
    ///
    /// A blank key does not count: the server could not recognise the repeat by it, and would act twice.
    pub fn read<'a>(
        method: &str,
        key: impl IntoIterator<Item = &'a str>,
        conditions: impl IntoIterator<Item = &'a str>,
        cache_control: impl IntoIterator<Item = &'a str>,
    ) -> RequestFacts {
        let is_only_if_cached = |directive: &str| {
            let name = directive.split('=').next().unwrap_or(directive);
            name.trim().eq_ignore_ascii_case("only-if-cached")
        };
        RequestFacts {
            has_key: key.into_iter().any(|line| !line.trim().is_empty()),
            conditional: conditions.into_iter().next().is_some(),
            only_if_cached: cache_control
                .into_iter()
                .any(|line| line.split(',').any(is_only_if_cached)),
            ..RequestFacts::new(Method::parse(method))
        }
    }

    /// These are the facts of the request that left; `request` is the one that came in. A key counts only if both have it, because a key that is
    /// added further in may be a different one each time.
    pub(crate) fn sent_for(self, request: &RequestFacts) -> RequestFacts {
        RequestFacts {
            has_key: self.has_key && request.has_key,
            conditional: self.conditional || request.conditional,
            ..self
        }
    }
}

/// Whether a request that may have reached the server may go again. It is not asked for a request that was provably not sent.
///
/// GET, HEAD, OPTIONS, TRACE, PUT and DELETE may. POST and PATCH may with an idempotency key, and so may a PUT or DELETE with a
/// condition: its repeat would answer a false 412. `repeat` in the policy replaces the verdict.
#[inline]
pub fn may_repeat(policy: &RetryPolicy, request: &RequestFacts) -> bool {
    match policy.repeat {
        Repeat::Always => true,
        Repeat::Never => false,
        Repeat::Auto => match request.method {
            Method::Get | Method::Head | Method::Options | Method::Trace => true,
            Method::Put | Method::Delete => !request.conditional || request.has_key,
            Method::Post | Method::Patch => request.has_key,
            Method::Other => false,
        },
    }
}

/// Whether the policy has a key made for a request of this method that has none.
#[inline]
pub(crate) fn makes_key(policy: &RetryPolicy, method: Method) -> bool {
    policy.key.make && matches!(method, Method::Post | Method::Patch)
}

/// What a driver must know before a first attempt. With it the driver needs no rule of its own and asks nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverFacts {
    /// The methods that may be repeated without a key and without conditions.
    pub repeatable: Vec<Method>,
    /// The methods that may be repeated with a key, whatever their conditions.
    pub repeatable_keyed: Vec<Method>,
    /// The methods that may be repeated without a key and with conditions.
    pub repeatable_conditional: Vec<Method>,
    /// The methods for which a missing key is made.
    pub make_key: Vec<Method>,
    /// The idempotency key's header.
    pub key_header: String,
    /// How a made key is written.
    pub key_form: KeyForm,
    /// The header of a server's explicit word.
    pub should_retry_header: Option<String>,
    /// The longest an attempt may take until its response head.
    pub attempt_timeout: Option<Duration>,
    /// The longest one route's connect may take.
    pub connect_timeout: Option<Duration>,
    /// When after the beginning an attempt in flight is ended, if at all.
    pub cut_after: Option<Duration>,
    /// Whether the client may re-send by itself.
    pub client_resends: ClientResends,
    /// How many bytes of a response's body are read within the attempt, if any.
    pub read_body: Option<u32>,
    /// Whether nothing is ever known of the network: what a driver does by the network's snapshot it does by [`Snapshot::UNKNOWN`](crate::Snapshot::UNKNOWN).
    pub ignores_network: bool,
    /// The most counted attempts, the first included: a client with a cap of its own must allow more sends.
    pub max_attempts: u32,
}

impl DriverFacts {
    /// The facts of a policy.
    pub fn of(policy: &RetryPolicy) -> DriverFacts {
        let repeatable = |has_key: bool, conditional: bool| {
            let facts = |method: &Method| RequestFacts {
                has_key,
                conditional,
                ..RequestFacts::new(*method)
            };
            Method::NAMED
                .iter()
                .copied()
                .filter(|method| may_repeat(policy, &facts(method)))
                .collect()
        };
        DriverFacts {
            repeatable: repeatable(false, false),
            repeatable_keyed: repeatable(true, false),
            repeatable_conditional: repeatable(false, true),
            make_key: Method::NAMED
                .iter()
                .copied()
                .filter(|method| makes_key(policy, *method))
                .collect(),
            key_header: policy.key.header.clone(),
            key_form: policy.key.form,
            should_retry_header: policy.should_retry_header.clone(),
            attempt_timeout: policy.attempt_timeout(),
            connect_timeout: policy.connect_timeout(),
            cut_after: policy.cut_at_deadline.then(|| duration(policy.max_elapsed)),
            client_resends: policy.client_resends,
            read_body: policy.read_body,
            ignores_network: policy.offline == Offline::Ignore,
            max_attempts: policy.max_attempts,
        }
    }
}
