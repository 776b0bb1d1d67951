//! A server on a real socket that goes wrong in every way a network can, and counts what it heard.
//!
//! It plays a script: one [`Act`] for each request it hears (or for each connection, where the act comes before any request). Once the
//! script is over it answers 200 with `ok`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_rustls::TlsAcceptor;

/// What the server does with one request, or with one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Resets the connection before anything was read from it.
    ResetAtAccept,
    /// Accepts the connection and then neither reads nor writes.
    StallAtAccept,
    /// Closes the connection in the middle of the TLS handshake.
    CloseInHandshake,
    /// Refuses every stream of an HTTP/2 connection by GOAWAY.
    GoAway,
    /// Reads the head and resets the connection.
    ResetAfterHead,
    /// Reads the head and a part of the body and resets the connection.
    ResetInBody,
    /// Reads the request and resets the connection.
    ResetBeforeAnswer,
    /// Reads the request and closes the connection.
    CloseBeforeAnswer,
    /// Reads the request and sends half a response head.
    HalfHead,
    /// Reads the request and never answers.
    Stall,
    /// Reads the request and answers after this long.
    Slow(Duration),
    /// Reads the request and answers after this long with this status.
    SlowStatus(Duration, u16),
    /// Answers 200, sends half of the body, and closes the connection.
    HalfBody,
    /// Answers 200 and sends half of the body, the rest never.
    StallInBody,
    /// Answers 200 and sends these pieces, each after this long.
    Trickle(Vec<&'static str>, Duration),
    /// Answers 200 and `ok`, and after the body with this trailer; over HTTP/2.
    Trailer(&'static str, &'static str),
    /// Answers with this status and these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// The same, but nothing comes of a body that is to come.
    Head(u16, Vec<(&'static str, String)>),
    /// Reads the request and ends its HTTP/2 stream with this code.
    ResetStream(u32),
    /// Answers bytes that are no HTTP.
    Junk,
}

impl Act {
    pub(crate) fn status(status: u16) -> Act {
        Act::Status(status, Vec::new())
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Act {
        Act::Status(status, vec![("location", to.to_owned())])
    }

    pub(crate) fn retry_after(status: u16, value: &str) -> Act {
        Act::Status(status, vec![("retry-after", value.to_owned())])
    }

    fn is_before_any_request(&self) -> bool {
        matches!(
            self,
            Act::ResetAtAccept | Act::StallAtAccept | Act::CloseInHandshake | Act::GoAway
        )
    }
}

/// A request as the server heard it.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: hyper::HeaderMap,
    /// The body; `None` if it did not arrive whole.
    pub(crate) body: Option<Bytes>,
    /// The connection it came on, numbered from 0.
    pub(crate) connection: usize,
    /// When its head was there.
    pub(crate) at: Instant,
}

impl Heard {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Decides by the request, and remembers it: for servers that many calls share.
pub(crate) trait Plan: Send + Sync {
    /// What to do with a connection before any request came.
    fn at_accept(&self) -> Option<Act> {
        None
    }

    /// What to do with this request.
    fn on_request(&self, request: &hyper::http::request::Parts) -> Act;
}

#[derive(Default)]
struct State {
    /// Instead of script and memory.
    plan: Option<Box<dyn Plan>>,
    script: Mutex<VecDeque<Act>>,
    heard: Mutex<Vec<Heard>>,
    connections: AtomicUsize,
    /// The tasks that serve them.
    tasks: Mutex<Vec<AbortHandle>>,
    /// Connections with a lower number are silent: nothing is read from them any more.
    silent_below: AtomicUsize,
    in_flight: watch::Sender<usize>,
}

impl State {
    fn at_accept(&self) -> Option<Act> {
        match &self.plan {
            Some(plan) => plan.at_accept(),
            None => self.next_if(Act::is_before_any_request),
        }
    }

    fn next_if(&self, wanted: impl Fn(&Act) -> bool) -> Option<Act> {
        let mut script = lock(&self.script);
        if script.front().is_some_and(wanted) {
            script.pop_front()
        } else {
            None
        }
    }
}

/// The server; it ends when it is dropped.
pub(crate) struct Server {
    state: Arc<State>,
    address: SocketAddr,
    scheme: &'static str,
    tls: Option<TlsAcceptor>,
    /// Held while it does not listen.
    port: Option<TcpSocket>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// A server that does this, one act after the other.
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Server {
        Server::listen(script, None).await
    }

    /// The same over TLS.
    pub(crate) async fn start_tls(
        script: impl IntoIterator<Item = Act>,
        config: Arc<tokio_rustls::rustls::ServerConfig>,
    ) -> Server {
        Server::listen(script, Some(TlsAcceptor::from(config))).await
    }

    async fn listen(script: impl IntoIterator<Item = Act>, tls: Option<TlsAcceptor>) -> Server {
        let mut server = Server::bound(Arc::default(), tls);
        server.then(script);
        server.open();
        server
    }

    /// A server that goes by this plan.
    pub(crate) fn planned(plan: impl Plan + 'static) -> Server {
        let state = State {
            plan: Some(Box::new(plan)),
            ..State::default()
        };
        let mut server = Server::bound(Arc::new(state), None);
        server.open();
        server
    }

    /// A server that does not listen yet: connections are refused, and nobody else can have the port.
    pub(crate) fn closed() -> Server {
        Server::bound(Arc::default(), None)
    }

    fn bound(state: Arc<State>, tls: Option<TlsAcceptor>) -> Server {
        let socket = bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        Server {
            state,
            address: socket.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            tls,
            port: Some(socket),
            accepting: None,
        }
    }

    fn accept_on(&mut self, listener: TcpListener) {
        let (state, tls) = (self.state.clone(), self.tls.clone());
        self.accepting = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = state.connections.fetch_add(1, Ordering::SeqCst);
                let task = Arc::default();
                let serving = serve(
                    state.clone(),
                    tls.clone(),
                    stream,
                    number,
                    Arc::clone(&task),
                );
                let serving = tokio::spawn(serving).abort_handle();
                lock(&state.tasks).push(serving.clone());
                let _ = task.set(serving);
            }
        }));
    }

    /// Adds to the script.
    pub(crate) fn then(&self, script: impl IntoIterator<Item = Act>) {
        lock(&self.state.script).extend(script);
    }

    /// From now on connections are refused.
    pub(crate) async fn close(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await; // the listener is gone once this is over
            self.port = Some(bind(self.address));
        }
    }

    /// From now on connections are accepted.
    pub(crate) fn open(&mut self) {
        let port = self.port.take().unwrap();
        self.accept_on(port.listen(1_024).unwrap());
    }

    /// Closes every connection there is.
    pub(crate) fn close_connections(&self) {
        for task in lock(&self.state.tasks).drain(..) {
            task.abort();
        }
    }

    /// The connections there are get no answer any more, and nobody tells them: what a phone's network change does to them.
    pub(crate) fn silence_connections(&self) {
        let so_far = self.state.connections.load(Ordering::SeqCst);
        self.state.silent_below.store(so_far, Ordering::SeqCst);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// By name, where a certificate is to match it.
    pub(crate) fn named_url(&self, host: &str, path: &str) -> String {
        format!("{}://{host}:{}{path}", self.scheme, self.address.port())
    }

    /// The requests whose heads arrived.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        lock(&self.state.heard).clone()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.state.heard).len()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns once this many requests are being answered.
    pub(crate) async fn in_flight(&self, count: usize) {
        let mut in_flight = self.state.in_flight.subscribe();
        in_flight.wait_for(|now| *now == count).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
    }
}

/// A port that is taken and refuses connections.
fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap(); // its old connections may still be there
    socket.bind(address).unwrap();
    socket
}

async fn serve(
    state: Arc<State>,
    tls: Option<TlsAcceptor>,
    mut stream: TcpStream,
    number: usize,
    task: Arc<OnceLock<AbortHandle>>,
) {
    let _ = stream.set_nodelay(true);
    match state.at_accept() {
        Some(Act::ResetAtAccept) => {
            reset(&stream);
            return;
        }
        Some(Act::CloseInHandshake) => {
            let _ = stream.read(&mut [0; 64]).await; // some of the ClientHello
            return;
        }
        Some(Act::GoAway) => {
            let _ = go_away(stream).await;
            return;
        }
        Some(_) => pending().await,
        None => {}
    }
    let wire = Wire {
        stream: Arc::new(Mutex::new(stream)),
        state: state.clone(),
        number,
        task,
    };
    match tls {
        None => serve_http(state, wire.clone(), wire, number).await,
        Some(tls) => {
            if let Ok(encrypted) = tls.accept(wire.clone()).await {
                serve_http(state, encrypted, wire, number).await;
            }
        }
    }
}

async fn serve_http<S>(state: Arc<State>, stream: S, wire: Wire, number: usize)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| answer(state.clone(), wire.clone(), number, request));
    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

type AnyBody = BoxBody<Bytes, io::Error>;

/// Why the connection, or the stream, ends here.
type Broken = Box<dyn std::error::Error + Send + Sync>;

async fn answer(
    state: Arc<State>,
    wire: Wire,
    connection: usize,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, Broken> {
    let _in_flight = InFlight::enter(&state);
    let (head, mut body) = request.into_parts();
    let (act, place) = match &state.plan {
        Some(plan) => (plan.on_request(&head), None),
        None => {
            let place = remember(&state, head, connection);
            let act = state.next_if(|_| true);
            (act.unwrap_or(Act::status(200)), Some(place))
        }
    };
    match act {
        Act::ResetAfterHead => wire.reset().await,
        Act::ResetInBody => {
            body.frame().await;
            wire.reset().await
        }
        _ => {}
    }
    let whole = body.collect().await?.to_bytes();
    if let Some(place) = place {
        lock(&state.heard)[place].body = Some(whole);
    }
    match act {
        Act::ResetBeforeAnswer => wire.reset().await,
        Act::CloseBeforeAnswer => wire.close().await,
        Act::HalfHead => wire.write_and_close(b"HTTP/1.1 200 OK\r\nContent-Le").await,
        Act::Junk => wire.write_and_close(b"this is no HTTP\r\n\r\n").await,
        Act::Stall => pending().await,
        Act::Slow(after) => {
            tokio::time::sleep(after).await;
            Ok(Response::new(full("ok")))
        }
        Act::SlowStatus(after, status) => {
            tokio::time::sleep(after).await;
            Ok(Response::builder().status(status).body(full("ok"))?)
        }
        Act::HalfBody => Ok(sized(
            8,
            pieces(vec!["half"], Duration::ZERO, Ending::Broken),
        )),
        Act::StallInBody => Ok(sized(
            8,
            pieces(vec!["half"], Duration::ZERO, Ending::Stalled),
        )),
        Act::Trickle(texts, every) => {
            let length = texts.iter().map(|text| text.len()).sum();
            Ok(sized(length, pieces(texts, every, Ending::Whole)))
        }
        Act::Trailer(name, value) => {
            let mut trailers = hyper::HeaderMap::new();
            trailers.insert(name, value.parse()?);
            let trailers = std::future::ready(Some(Ok(trailers)));
            Ok(Response::new(full("ok").with_trailers(trailers).boxed()))
        }
        Act::Status(status, headers) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let empty = matches!(status, 204 | 304);
            Ok(response.body(if empty { none() } else { full("ok") })?)
        }
        Act::Head(status, headers) => {
            let mut response = sized(8, pieces(Vec::new(), Duration::ZERO, Ending::Stalled));
            *response.status_mut() = status.try_into()?;
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse()?);
            }
            Ok(response)
        }
        Act::ResetStream(code) => Err(h2::Error::from(h2::Reason::from(code)).into()),
        other => unreachable!("{other:?} comes before any request or was dealt with"),
    }
}

/// The place at which the request stands among those that were heard.
fn remember(state: &State, head: hyper::http::request::Parts, connection: usize) -> usize {
    let target = head.uri.path_and_query();
    let mut heard = lock(&state.heard);
    heard.push(Heard {
        method: head.method.to_string(),
        target: target.map_or("", |target| target.as_str()).to_owned(),
        headers: head.headers,
        body: None,
        connection,
        at: Instant::now(),
    });
    heard.len() - 1
}

/// Waits for the first request of an HTTP/2 connection and says by GOAWAY that none was taken.
async fn go_away(mut stream: TcpStream) -> io::Result<()> {
    const HEADERS: u8 = 1;
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await?; // SETTINGS: none
    stream.read_exact(&mut [0; 24]).await?; // the client's preface
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        if head[3] == HEADERS {
            break;
        }
    }
    stream.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).await?; // SETTINGS: acknowledged
    let last_stream_and_code = [0; 8];
    stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0]).await?; // GOAWAY
    stream.write_all(&last_stream_and_code).await?;
    while stream.read(&mut [0; 64]).await? > 0 {} // until the client goes
    Ok(())
}

fn full(text: &'static str) -> AnyBody {
    Full::new(Bytes::from(text)).map_err(never).boxed()
}

fn none() -> AnyBody {
    Empty::new().map_err(never).boxed()
}

fn never(never: Infallible) -> io::Error {
    match never {}
}

fn sized(length: usize, body: AnyBody) -> Response<AnyBody> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert("content-length", length.into());
    response
}

#[derive(Clone, Copy)]
enum Ending {
    Whole,
    Broken,
    Stalled,
}

fn pieces(texts: Vec<&'static str>, every: Duration, ending: Ending) -> AnyBody {
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        for text in texts {
            tokio::time::sleep(every).await;
            let frame = Ok(Frame::data(Bytes::from(text)));
            if sender.send(frame).await.is_err() {
                return;
            }
        }
        match ending {
            Ending::Whole => {}
            Ending::Broken => {
                // After what came before it has left.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = sender.send(Err(io::Error::other("broken off"))).await;
            }
            Ending::Stalled => sender.closed().await,
        }
    });
    Pieces(frames).boxed()
}

/// A body that comes through a channel.
struct Pieces(tokio::sync::mpsc::Receiver<Result<Frame<Bytes>, io::Error>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context)
    }
}

struct InFlight(Arc<State>);

impl InFlight {
    fn enter(state: &Arc<State>) -> InFlight {
        state.in_flight.send_modify(|count| *count += 1);
        InFlight(state.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}

/// A connection's socket, which the answers may break too.
#[derive(Clone)]
struct Wire {
    stream: Arc<Mutex<TcpStream>>,
    state: Arc<State>,
    number: usize,
    /// Serves the connection.
    task: Arc<OnceLock<AbortHandle>>,
}

impl Wire {
    /// Ends the connection by a reset, here and now.
    async fn reset(&self) -> ! {
        reset(&lock(&self.stream));
        self.close().await
    }

    /// Ends the connection.
    async fn close(&self) -> ! {
        loop {
            match self.task.get() {
                Some(task) => {
                    task.abort();
                    pending::<()>().await;
                }
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn write_and_close(&self, bytes: &[u8]) -> ! {
        lock(&self.stream).try_write(bytes).unwrap();
        self.close().await
    }

    fn is_silent(&self) -> bool {
        self.number < self.state.silent_below.load(Ordering::SeqCst)
    }
}

/// The socket's close becomes a reset.
#[allow(deprecated)] // a linger of zero never blocks, which is what the deprecation is about
fn reset(stream: &TcpStream) {
    stream.set_linger(Some(Duration::ZERO)).unwrap();
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_silent() {
            return Poll::Pending;
        }
        Pin::new(&mut *lock(&self.stream)).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *lock(&self.stream)).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.stream)).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *lock(&self.stream)).poll_shutdown(context)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
