//! Request bodies: which can be sent again, and how an attempt gets its own.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Body, Request};

use super::super::listener::contained;
use super::witness::Witness;

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
    /// A stream: it can be read once.
    Once(Slot),
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
            None if is_stream => Payload::Once(Arc::new(Mutex::new(request.body_mut().take()))),
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
            Payload::Once(slot) => lock(slot).is_some(),
            Payload::Whole | Payload::Made(_) => false,
        }
    }

    /// Whether it can be seen that the body moves: a stream is asked for its pieces; few bytes leave at once, and many do so unseen.
    pub(super) fn moves_visibly(&self) -> bool {
        match &self.payload {
            Payload::Whole => self.length().is_none_or(|length| length <= SENT_AT_ONCE),
            Payload::Once(_) | Payload::Made(_) => true,
        }
    }

    /// The request of one attempt; `None` if the factory panicked.
    pub(super) fn attempt(&self, witness: &Arc<Witness>) -> Option<Request> {
        let slot = match &self.payload {
            Payload::Whole => return self.request.try_clone(),
            Payload::Once(slot) => slot.clone(),
            Payload::Made(factory) => Arc::new(Mutex::new(Some(contained(|| factory()).ok()?))),
        };
        let mut request = self.request.try_clone()?;
        *request.body_mut() = Some(Body::wrap(Watched::new(slot, witness.clone())));
        Some(request)
    }

    fn length(&self) -> Option<usize> {
        Some(self.request.body()?.as_bytes()?.len())
    }
}

/// What TCP sends before the first answer of the other side: ten segments (RFC 6928).
const SENT_AT_ONCE: usize = 14_600;

/// A stream that is taken when its first byte is asked for, and whose pieces are heard.
struct Watched {
    slot: Slot,
    taken: Option<Body>,
    size: SizeHint,
    is_empty: bool,
    witness: Arc<Witness>,
}

impl Watched {
    fn new(slot: Slot, witness: Arc<Witness>) -> Watched {
        let (size, is_empty) = match lock(&slot).as_ref() {
            Some(body) => (body.size_hint(), body.is_end_stream()),
            None => (SizeHint::new(), false),
        };
        Watched {
            slot,
            taken: None,
            size,
            is_empty,
            witness,
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if self.taken.is_none() {
            let untouched = lock(&self.slot).take();
            self.taken = untouched;
        }
        let Some(body) = &mut self.taken else {
            return Poll::Ready(None); // an attempt is made of an untouched one only
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        match &frame {
            Some(Err(_)) => self.witness.body_failed(),
            _ => self.witness.moved(),
        }
        Poll::Ready(frame)
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

fn lock(slot: &Slot) -> MutexGuard<'_, Option<Body>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
