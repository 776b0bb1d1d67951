//! What kind of failure an error of reqwest is.
//!
//! By type, along the whole chain of sources; text is read only where there is no type ([`is_proxys_refusal`]). `reqwest::Error` hides its own types (time-outs, look-ups) behind
//! questions, which count as types here. What its errors do not tell by type, and what is done instead:
//!
//! | not told | instead |
//! | --- | --- |
//! | that a redirect had been followed before the failure | `proves_unsent`: then nothing is "never sent" |
//! | that the request's own body failed, over HTTP/2 | [`AttemptObserver::has_body_failed`] |
//! | a reset while connecting: in the TLS handshake or in a proxy's tunnel | `tls_broken_off`; never sent in both cases |
//! | that a new HTTP/2 connection was closed before its first stream | in doubt, as any closed connection, unless the request still waited for it |
//! | whether a time-out came while writing or while reading | `read_timeout`; in doubt in both cases |
//! | which status a proxy refused a tunnel with | its error's text tells 407 from the others; all of them are `protocol`, which is permanent |
//! | a connect that fails inside a layer of the app's own | `before_headers`: no connection, nothing sent |
//!
//! Each row has a test in `tests/http/classification.rs` or below.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

use super::observer::{AttemptObserver, ConnectTimedOut};
use crate::outcome::FailureKind;

/// The kind of an error that came instead of a response head.
pub(super) fn kind_of(error: &reqwest::Error, observer: &AttemptObserver) -> FailureKind {
    if observer.has_body_failed() {
        return FailureKind::RequestBody;
    }
    kind_by_type(error)
}

/// Whether this error proves that nothing of the attempt was sent: the attempt's own request wrote no head or was refused, and the error is not that of
/// another request, behind the body or after a redirect.
pub(super) fn proves_unsent(error: &reqwest::Error, observer: &AttemptObserver) -> bool {
    let is_own = !observer.has_answered() && !observer.has_body_failed();
    is_own && (is_unsent(error) || error.is_builder() && observer.shows_all_hops())
}

/// Whether the request that failed with this error wrote no head, or was refused by its stream. The observer knows whether it is the attempt's own request.
fn is_unsent(error: &reqwest::Error) -> bool {
    let unsent = [FailureKind::BeforeHeaders, FailureKind::RefusedStream];
    // An error of the app's redirect policy may have anything behind it.
    let is_exchange = || exchange_kind(error).is_some_and(|kind| unsent.contains(&kind));
    !error.is_redirect() && (error.is_connect() || is_exchange())
}

/// The kind of an error that an app's own code came back with, if it is one of reqwest's or an I/O error. Of an error by its status (`error_for_status`) only
/// those that speak of the moment are worth another try.
pub(super) fn kind_of_foreign(error: &(dyn Error + 'static)) -> Option<FailureKind> {
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return Some(match error.status().map(|status| status.as_u16()) {
            Some(408 | 425 | 429 | 500..) => FailureKind::OtherIo,
            Some(_) => FailureKind::Unlisted,
            None => kind_by_type(error),
        });
    }
    error.downcast_ref().map(FailureKind::of_io)
}

/// The kind of an error that came while a response's body was read.
pub(super) fn kind_of_reading(error: &reqwest::Error) -> FailureKind {
    if let Some(kind) = certificate_fault(error) {
        return kind;
    }
    if error.is_timeout() {
        return FailureKind::ReadTimeout;
    }
    exchange_kind(error).unwrap_or(FailureKind::OtherIo)
}

/// The kind of an error of a client that nobody observes.
pub(super) fn kind_of_client(error: &reqwest::Error) -> FailureKind {
    kind_by_type(error)
}

fn kind_by_type(error: &reqwest::Error) -> FailureKind {
    if let Some(kind) = certificate_fault(error) {
        return kind;
    }
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        return FailureKind::Protocol; // what the client refuses to do
    }
    if error.is_connect() {
        return connect_kind(error);
    }
    // Before time-outs and I/O errors: those may be the body's own.
    if chain(error).skip(1).any(|cause| {
        cause
            .downcast_ref::<reqwest::Error>()
            .is_some_and(reqwest::Error::is_body)
    }) {
        return FailureKind::RequestBody;
    }
    if error.is_timeout() {
        return FailureKind::ReadTimeout;
    }
    exchange_kind(error).unwrap_or(FailureKind::OtherIo)
}

/// No connection: nothing was sent, whatever the reason.
fn connect_kind(error: &reqwest::Error) -> FailureKind {
    if error.is_dns() {
        return FailureKind::Dns;
    }
    if error.is_timeout() {
        return FailureKind::ConnectTimeout;
    }
    for cause in chain(error) {
        if cause.is::<ConnectTimedOut>() {
            return FailureKind::ConnectTimeout;
        }
        if is_proxys_refusal(cause) {
            return FailureKind::Protocol;
        }
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return match tls {
                rustls::Error::PeerIncompatible(_)
                | rustls::Error::NoApplicationProtocol
                | rustls::Error::AlertReceived(
                    AlertDescription::ProtocolVersion
                    | AlertDescription::InsufficientSecurity
                    | AlertDescription::NoApplicationProtocol,
                ) => FailureKind::Protocol, // it will not get better
                _ => FailureKind::TlsBrokenOff,
            };
        }
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            match FailureKind::of_io(io) {
                kind @ (FailureKind::ConnectRefused | FailureKind::ConnectUnreachable) => {
                    return kind;
                }
                FailureKind::ReadTimeout => return FailureKind::ConnectTimeout,
                FailureKind::Reset | FailureKind::UnexpectedEnd => {
                    return FailureKind::TlsBrokenOff;
                }
                _ => {}
            }
        }
    }
    FailureKind::BeforeHeaders
}

/// A proxy answered CONNECT, and not with 200: it will again. hyper-util has a type for this error and shows it to nobody, so its words must do;
/// `tests/http/proxy.rs` fails when they change.
fn is_proxys_refusal(cause: &(dyn Error + 'static)) -> bool {
    let words = cause.to_string();
    words == "tunnel error: proxy authorization required" || words == "tunnel error: unsuccessful"
}

/// What an established connection came to.
fn exchange_kind(error: &reqwest::Error) -> Option<FailureKind> {
    chain(error).find_map(|cause| {
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>() {
            if hyper.is_canceled() {
                // The connection closed while the request still waited for it: hyper says so only with the request in hand.
                return Some(FailureKind::BeforeHeaders);
            }
            if hyper.is_parse() || hyper.is_parse_status() {
                return Some(FailureKind::Protocol);
            }
            if hyper.is_incomplete_message() {
                return Some(FailureKind::UnexpectedEnd);
            }
        }
        if let Some(http2) = cause.downcast_ref::<h2::Error>() {
            return stream_kind(http2);
        }
        match FailureKind::of_io(cause.downcast_ref()?) {
            // There was a connection; what stands behind may say more.
            FailureKind::ConnectRefused
            | FailureKind::ConnectUnreachable
            | FailureKind::OtherIo => None,
            kind => Some(kind),
        }
    })
}

fn stream_kind(error: &h2::Error) -> Option<FailureKind> {
    if error.is_io() {
        return None; // its source says which
    }
    let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    // A stream hears of a GOAWAY only if it is beyond the last one the server took.
    let beyond = error.is_go_away();
    Some(match (error.is_remote(), refused || beyond) {
        (true, true) => FailureKind::RefusedStream,
        (true, false) => FailureKind::StreamReset,
        (false, _) => FailureKind::Protocol,
    })
}

/// A certificate not accepted, ours or theirs, anywhere in the chain.
fn certificate_fault(error: &reqwest::Error) -> Option<FailureKind> {
    chain(error).find_map(|cause| match cause.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => Some(FailureKind::Pinning),
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::InvalidCertRevocationList(_)
        | rustls::Error::NoCertificatesPresented
        | rustls::Error::AlertReceived(
            AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateUnobtainable
            | AlertDescription::BadCertificateStatusResponse,
        ) => Some(FailureKind::Certificate),
        _ => None,
    })
}

/// The error and everything behind it. An `io::Error` shows what it wraps only when asked.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| behind(*error)).take(LONGEST_CHAIN)
}

fn behind<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// A chain that goes on longer goes in a circle.
const LONGEST_CHAIN: usize = 64;
