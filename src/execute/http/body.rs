//! Request bodies: which can be sent again, and how an attempt gets its own.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request};

use super::super::listener::contained;
use super::observer::AttemptObserver;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Makes a body for each attempt.
pub(super) type Factory = dyn Fn() -> Body + Send + Sync;

/// A request that attempts are made from.
pub(super) struct Template {
    request: Request,
    payload: Payload,
}

enum Payload {
    /// None, or bytes: they are cloned with the request.
    Whole,
    /// A stream: it can be read once. The latest attempt has it.
    Once(Mutex<Slot>),
    /// A stream from a factory.
    Made(Arc<Factory>),
}

/// A stream that nobody has asked for a byte yet lies here.
type Slot = Arc<Mutex<Option<Body>>>;

impl Template {
    pub(super) fn new(mut request: Request, factory: Option<Arc<Factory>>) -> Template {
        let is_stream = request.body().is_some_and(|body| body.as_bytes().is_none());
        let payload = match factory {
            Some(factory) => {
                *request.body_mut() = None;
                Payload::Made(factory)
            }
            None if is_stream => {
                let slot = Arc::new(Mutex::new(request.body_mut().take()));
                Payload::Once(Mutex::new(slot))
            }
            None => Payload::Whole,
        };
        Template { request, payload }
    }

    pub(super) fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn has_body(&self) -> bool {
        match &self.payload {
            Payload::Whole => self.length().is_some_and(|length| length > 0),
            Payload::Once(_) | Payload::Made(_) => true,
        }
    }

    pub(super) fn is_replayable(&self) -> bool {
        !matches!(self.payload, Payload::Once(_))
    }

    /// Whether a body that can be read once has not been asked for a byte.
    pub(super) fn is_untouched(&self) -> bool {
        match &self.payload {
            Payload::Once(slot) => lock(&lock(slot)).is_some(),
            Payload::Whole | Payload::Made(_) => false,
        }
    }

    /// How much of the body the client has from the start, in bytes; `None` of a stream, which it asks for piece by piece.
    pub(super) fn at_once(&self) -> Option<usize> {
        match &self.payload {
            Payload::Whole => Some(self.length().unwrap_or(0)),
            Payload::Once(_) | Payload::Made(_) => None,
        }
    }

    /// The request of one attempt; `None` if the factory panicked, or a body that can be read once was touched after all.
    pub(super) fn attempt(&self, observer: &Arc<AttemptObserver>) -> Option<Request> {
        let slot = match &self.payload {
            Payload::Whole => return self.request.try_clone(),
            Payload::Once(latest) => {
                // Taken from the attempt before, whose connection may not know yet that it was abandoned.
                let mut latest = lock(latest);
                let untouched = lock(&latest).take()?;
                *latest = Arc::new(Mutex::new(Some(untouched)));
                latest.clone()
            }
            Payload::Made(factory) => Arc::new(Mutex::new(Some(contained(|| factory()).ok()?))),
        };
        let mut request = self.request.try_clone()?;
        *request.body_mut() = Some(Body::wrap(Watched::new(slot, observer.clone())));
        Some(request)
    }

    fn length(&self) -> Option<usize> {
        Some(self.request.body()?.as_bytes()?.len())
    }
}

/// A stream that is taken when its first byte is asked for, and whose pieces are heard.
struct Watched {
    slot: Slot,
    taken: Option<Body>,
    size: SizeHint,
    is_empty: bool,
    observer: Arc<AttemptObserver>,
}

impl Watched {
    fn new(slot: Slot, observer: Arc<AttemptObserver>) -> Watched {
        let (size, is_empty) = match lock(&slot).as_ref() {
            Some(body) => (body.size_hint(), body.is_end_stream()),
            None => (SizeHint::new(), false),
        };
        Watched {
            slot,
            taken: None,
            size,
            is_empty,
            observer,
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.taken.is_none() {
            let untouched = lock(&self.slot).take();
            self.taken = untouched;
        }
        let Some(body) = &mut self.taken else {
            // A later attempt has the stream. The rest of this body must not look complete to the server.
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::BrokenPipe).into())));
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        match &frame {
            Some(Err(_)) => self.observer.body_failed(),
            Some(Ok(frame)) => self
                .observer
                .handed_out(frame.data_ref().map_or(0, Bytes::len)),
            None => self.observer.moved(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.taken {
            Some(body) => body.is_end_stream(),
            None => self.is_empty,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.taken {
            Some(body) => body.size_hint(),
            None => self.size,
        }
    }
}

fn lock<T>(behind: &Mutex<T>) -> MutexGuard<'_, T> {
    behind.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn first_frame(request: &mut Request) -> Option<Result<Bytes, reqwest::Error>> {
        let body = Pin::new(request.body_mut().as_mut().unwrap());
        match body.poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(frame) => Some(frame?.map(|frame| frame.into_data().unwrap())),
            Poll::Pending => unreachable!("the body has it all"),
        }
    }

    #[test]
    fn an_attempt_that_was_given_up_cannot_take_the_body_from_the_next() {
        let url = "http://localhost/".parse().unwrap();
        let mut request = Request::new(reqwest::Method::PUT, url);
        let bytes = Body::from("once");
        *request.body_mut() = Some(Body::wrap(bytes));
        let template = Template::new(request, None);
        assert!(!template.is_replayable());
        let observer = Arc::new(AttemptObserver::new(template.at_once(), None));

        let mut given_up = template.attempt(&observer).unwrap();
        assert!(template.is_untouched());
        let mut next = template.attempt(&observer).unwrap();
        assert!(
            first_frame(&mut given_up).unwrap().is_err(),
            "nor may it end as if it were whole"
        );
        assert!(template.is_untouched());
        assert_eq!(first_frame(&mut next).unwrap().unwrap(), "once");
        assert!(!template.is_untouched());
        assert!(template.attempt(&observer).is_none());
    }
}
