//! The client: an executor on a runtime of its own.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comeback::stored::{self, Unreadable};
use comeback::{
    CancelKind, Connectivity, Event, Executor, HttpRequest, Instant, NetworkState, Reason,
    RetryEvent, Snapshot,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::mailbox::{Mailbox, NotEntered};
use crate::request::{Request, length};
use crate::told::{End, EndKind, Told};

/// Threads that calls run on. They wait for sockets and decide; a phone needs no more.
const WORKERS: usize = 2;

/// The most threads that wait for the system's look-ups, which block. They are made when needed, and end.
const LOOK_UPS: usize = 16;

/// What is set once.
#[derive(Clone, uniffi::Record)]
pub struct Setting {
    /// Trusted beside Mozilla's roots.
    pub authorities: Vec<Authority>,
    pub user_agent: Option<String>,
    /// One route's connect, TLS included. None: no limit.
    pub connect_timeout: Option<i64>,
    /// The longest that nothing may come. None: no limit.
    pub read_timeout: Option<i64>,
    /// Whether what is told of the network applies to calls to this machine too.
    pub concerns_loopback: bool,
}

#[derive(Clone, uniffi::Record)]
pub struct Authority {
    pub der: Vec<u8>,
}

/// The network's state, as the core's library tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Link {
    Unknown,
    Offline,
    Blocked,
    Online,
}

#[derive(Debug, PartialEq, Eq, uniffi::Error)]
pub enum ClientProblem {
    /// The client was closed.
    Closed,
    /// The settings are invalid, the runtime cannot be made, or an argument is invalid.
    Refused { problem: String },
}

impl fmt::Display for ClientProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ClientProblem::Closed => "the client was closed",
            ClientProblem::Refused { problem } => problem,
        })
    }
}

impl std::error::Error for ClientProblem {}

impl From<Unreadable> for ClientProblem {
    fn from(bytes: Unreadable) -> ClientProblem {
        ClientProblem::Refused {
            problem: bytes.to_string(),
        }
    }
}

impl From<NotEntered> for ClientProblem {
    fn from(why: NotEntered) -> ClientProblem {
        match why {
            NotEntered::Closed => ClientProblem::Closed,
            NotEntered::NumberInUse => ClientProblem::Refused {
                problem: "a call in flight has that number".to_owned(),
            },
        }
    }
}

/// The executor, its runtime, and what is to be told of its calls. All methods may be called from any thread.
#[derive(uniffi::Object)]
pub struct Client {
    /// Taken when the client is closed.
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    executor: Executor,
    connectivity: Connectivity,
    mailbox: Arc<Mailbox>,
}

#[uniffi::export]
impl Client {
    #[uniffi::constructor]
    pub fn new(setting: Setting) -> Result<Arc<Client>, ClientProblem> {
        let runtime = runtime().map_err(refused)?;
        let connectivity = match setting.concerns_loopback {
            true => Connectivity::new().with_loopback(),
            false => Connectivity::new(),
        };
        let mailbox = Arc::new(Mailbox::default());
        let executor = executor(setting, connectivity.clone(), mailbox.clone())?;
        Ok(Arc::new(Client {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            executor,
            connectivity,
            mailbox,
        }))
    }

    /// Starts a call under a number that no other call in flight has. `receive` returns its events, then its end.
    pub fn start(&self, call: i64, request: Request) -> Result<(), ClientProblem> {
        let policy = request.policy.as_deref().map(stored::policy).transpose()?;
        let ending = self.mailbox.enter(call)?;
        let executor = self.executor.clone();
        self.spawn(call, async move {
            let ending = ending; // dropped last, when the call's events are told
            match request.prepare(&executor, policy, call.to_string()) {
                Ok(request) => ending.tell(send(request).await),
                Err(end) => ending.tell(end),
            }
        });
        Ok(())
    }

    /// Ends a call: its attempt is dropped, so that the server sees its connection or stream end. Its end is told all the same.
    pub fn cancel(&self, call: i64) {
        self.mailbox.cancel(call);
    }

    /// What happened since it was last asked, in order. Blocks until there is something; an empty list is the last: the client is closed, and
    /// every call has ended. For one thread.
    pub fn receive(&self) -> Vec<Told> {
        self.mailbox.receive()
    }

    /// The network, from the process's one hub: its state, for how long already (none: for ever), epoch and path.
    pub fn publish(&self, state: Link, age: Option<i64>, epoch: i64, path: i64) {
        let since = age.map_or(Instant::LONG_AGO, |age| {
            let now = self.connectivity.now().as_nanos();
            Instant::from_nanos(now.saturating_sub(age.max(0)))
        });
        self.connectivity.follow(Snapshot {
            state: match state {
                Link::Unknown => NetworkState::Unknown,
                Link::Offline => NetworkState::Offline,
                Link::Blocked => NetworkState::Blocked,
                Link::Online => NetworkState::Online,
            },
            since,
            epoch: u64::try_from(epoch).unwrap_or(0),
            path: u64::try_from(path).unwrap_or(0),
        });
    }

    /// Ends all calls, and starts none any more. Does not wait for them: their ends are told.
    pub fn shut_down(&self) {
        if self.mailbox.close() {
            let taken = self
                .runtime
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(runtime) = taken {
                runtime.shutdown_background();
            }
        }
    }

    /// How many calls have not ended; a measure for tests and leaks.
    pub fn in_flight(&self) -> i32 {
        i32::try_from(self.mailbox.in_flight()).unwrap_or(i32::MAX)
    }

    /// A call that panics on purpose: shows that a panic in a task ends that call alone.
    #[allow(clippy::panic)] // its purpose
    pub fn provoke_panic(&self, call: i64) -> Result<(), ClientProblem> {
        let ending = self.mailbox.enter(call)?;
        self.spawn(call, async move {
            let _ending = ending;
            panic!("a panic was asked for, to show that it is contained");
        });
        Ok(())
    }
}

impl Client {
    fn spawn(&self, call: i64, task: impl Future<Output = ()> + Send + 'static) {
        // If the runtime is gone the task is dropped at once, and its ending says so.
        let task = self.handle.spawn(task);
        self.mailbox.runs(call, task.abort_handle());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shut_down();
    }
}

fn runtime() -> std::io::Result<Runtime> {
    let made = AtomicUsize::new(1);
    Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(LOOK_UPS)
        .thread_name_fn(move || format!("comeback-{}", made.fetch_add(1, Ordering::Relaxed)))
        .enable_all()
        .build()
}

fn executor(
    setting: Setting,
    connectivity: Connectivity,
    mailbox: Arc<Mailbox>,
) -> Result<Executor, ClientProblem> {
    let Setting {
        authorities,
        user_agent,
        connect_timeout,
        read_timeout,
        ..
    } = setting;
    let mut builder = Executor::builder()
        .connectivity(connectivity)
        .client(move |mut client| {
            if let Some(agent) = &user_agent {
                client = client.user_agent(agent);
            }
            if let Some(limit) = connect_timeout {
                client = client.connect_timeout(length(limit));
            }
            if let Some(limit) = read_timeout {
                client = client.read_timeout(length(limit));
            }
            client
        })
        .listener(move |event: &RetryEvent<'_>| tell(&mailbox, event));
    for authority in authorities {
        builder = builder.trust(authority.der);
    }
    builder.build().map_err(refused)
}

/// The label is the call's number. A call that is dropped because the client closes was not ended by its caller.
fn tell(mailbox: &Mailbox, event: &RetryEvent<'_>) {
    let Some(call) = event.label.and_then(|label| label.parse().ok()) else {
        return;
    };
    let mut event = event.event;
    if let Event::Final(end) = &mut event
        && end.reason == Some(Reason::Cancelled(CancelKind::Caller))
        && mailbox.is_closed()
    {
        end.reason = Some(Reason::Cancelled(CancelKind::Closed));
    }
    if let Some(told) = Told::event(call, &event) {
        mailbox.tell(told);
    }
}

async fn send(request: HttpRequest) -> End {
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return End::failed(&error),
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    match response.bytes().await {
        Ok(body) if i32::try_from(body.len()).is_ok() => {
            End::answered(status, &headers, body.into())
        }
        Ok(_) => End::of_kind(
            EndKind::Failed,
            "the answer is longer than an array can be, 2 GiB",
        ),
        Err(_) => End::of_kind(
            EndKind::Failed,
            "the answer broke off, after more of it had come than is tried again",
        ),
    }
}

fn refused(problem: impl ToString) -> ClientProblem {
    ClientProblem::Refused {
        problem: problem.to_string(),
    }
}
