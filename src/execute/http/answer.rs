//! Responses: reading one as part of its attempt, and reading one of a later attempt within its limit.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Response, ResponseBuilderExt};
use tokio::time::{Instant, Sleep, sleep};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Reads the body to its end, or as far as `limit` bytes and the piece that crosses it; what comes after stays to be read.
pub(super) async fn read(mut response: Response, limit: u64) -> Result<Response, reqwest::Error> {
    let mut pieces = VecDeque::new();
    let mut length = 0_u64;
    let mut ended = false;
    while length <= limit {
        let Some(piece) = response.chunk().await? else {
            ended = true;
            break;
        };
        length = length.saturating_add(piece.len() as u64);
        pieces.push_back(piece);
    }
    Ok(with_body(response, |rest| Read {
        pieces,
        rest: (!ended).then_some(rest),
        size: ended.then_some(length),
    }))
}

/// The response, whose body fails once nothing came for `inactivity`. The client's own read timeout stays, and ends it where it is shorter.
pub(super) fn within(response: Response, inactivity: Duration) -> Response {
    with_body(response, |body| Within {
        body,
        inactivity,
        timer: None,
    })
}

/// The same response with another body: status, headers, address and extensions stay.
fn with_body<B>(response: Response, change: impl FnOnce(Body) -> B) -> Response
where
    B: HttpBody<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BoxError>,
{
    let url = response.url().clone();
    let (mut head, body) = http::Response::<Body>::from(response).into_parts();
    // reqwest takes a response's address from an extension that only this builder can make.
    if let Ok(address) = http::Response::builder().url(url).body(()) {
        head.extensions.extend(address.into_parts().0.extensions);
    }
    http::Response::from_parts(head, Body::wrap(change(body))).into()
}

/// What was read, and the rest.
struct Read {
    pieces: VecDeque<Bytes>,
    rest: Option<Body>,
    /// Known once everything was read.
    size: Option<u64>,
}

impl HttpBody for Read {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if let Some(piece) = self.pieces.pop_front() {
            self.size = self
                .size
                .map(|size| size.saturating_sub(piece.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.size.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// A body that may not stand still.
struct Within {
    body: Body,
    inactivity: Duration,
    /// Runs while a piece is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Within {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep(this.inactivity)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A future that may stand still for `inactivity` at most; `None` if it did for longer.
pub(super) async fn while_moving<F: Future>(
    future: F,
    inactivity: Duration,
    still_since: impl Fn() -> Instant,
) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    loop {
        let until = still_since() + inactivity;
        match tokio::time::timeout_at(until, future.as_mut()).await {
            Ok(output) => return Some(output),
            Err(_) if still_since() + inactivity <= Instant::now() => return None,
            Err(_) => {}
        }
    }
}
