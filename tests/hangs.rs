//! Where an attempt can hang × what ends it: the caller has its answer in time, and nothing is left behind. Real time and real sockets; a process of
//! its own, for its sockets are counted.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // a test says no by panicking

#[path = "http/authority.rs"]
mod authority;
#[allow(dead_code)] // the tests in `http` need more of it
#[path = "http/server.rs"]
mod server;

use std::sync::Arc;
use std::time::Duration;

use comeback::{Executor, ExecutorBuilder, RetryPolicy};
use reqwest::dns::{Name, Resolve, Resolving};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use authority::Authority;
use server::{Act, Server};

const LIMIT: Duration = Duration::from_millis(700);
const LATE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq)]
enum HangsAt {
    LookUp,
    Connect,
    Tls,
    Upload,
    Head,
    Body,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum EndedBy {
    AttemptTimeout,
    Cut,
    ClientsOwnTimeout,
    Drop,
}

const HANGS_AT: [HangsAt; 6] = [
    HangsAt::LookUp,
    HangsAt::Connect,
    HangsAt::Tls,
    HangsAt::Upload,
    HangsAt::Head,
    HangsAt::Body,
];
const ENDS: [EndedBy; 4] = [
    EndedBy::AttemptTimeout,
    EndedBy::Cut,
    EndedBy::ClientsOwnTimeout,
    EndedBy::Drop,
];

/// Finds no name, and does not say so.
struct Silent;

impl Resolve for Silent {
    fn resolve(&self, _name: Name) -> Resolving {
        Box::pin(std::future::pending())
    }
}

/// A listener whose queue is full, so that no connect to it ends; and what fills the queue.
async fn full() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut queue = Vec::new();
    let address = listener.local_addr().unwrap();
    while let Ok(connected) = timeout(LIMIT, TcpStream::connect(address)).await {
        queue.push(connected.unwrap());
    }
    (listener, queue)
}

/// What a cell hangs on.
enum Hang {
    Server(Server),
    Url(String),
}

/// One cell; what it hung on and its executor are still there afterwards.
struct Cell {
    hangs_at: HangsAt,
    end: EndedBy,
    hang: Hang,
    authority: Arc<Authority>,
}

impl Cell {
    async fn run(self) -> (Cell, Executor) {
        let (hangs_at, end) = (self.hangs_at, self.end);
        let policy = RetryPolicy::builder().max_attempts(1).read_body(1_000);
        let policy = match end {
            EndedBy::AttemptTimeout => policy.attempt_timeout(LIMIT),
            EndedBy::Cut => policy.max_elapsed(LIMIT).cut_at_deadline(true),
            EndedBy::ClientsOwnTimeout | EndedBy::Drop => policy,
        };
        let settings = |builder: ExecutorBuilder| match hangs_at {
            HangsAt::LookUp => builder.client(|client| client.dns_resolver(Arc::new(Silent))),
            HangsAt::Tls => builder.trust(self.authority.certificate().to_vec()),
            _ => builder,
        };
        let builder = Executor::builder().policy(policy.build().unwrap());
        let executor = settings(builder).build().unwrap();
        let url = match &self.hang {
            Hang::Server(server) => server.url("/"),
            Hang::Url(url) => url.clone(),
        };
        let request = executor.post(url);
        let request = match hangs_at {
            HangsAt::Upload => request.body(vec![0; 20_000_000]),
            _ => request.body("order"),
        };
        let request = match end {
            EndedBy::ClientsOwnTimeout => request.timeout(LIMIT),
            _ => request,
        };
        // Beside a timer that is set to the limit, so that a busy machine does not count as late.
        let control = tokio::spawn(async {
            sleep(LIMIT).await;
            Instant::now()
        });
        let result = match end {
            EndedBy::Drop => timeout(LIMIT, request.send()).await.ok(),
            _ => Some(request.send().await),
        };
        let ended = Instant::now();
        let late = ended.saturating_duration_since(control.await.unwrap());
        let cell = format!("{hangs_at:?} hangs, ended by {end:?}");
        assert!(late <= LATE, "{cell}: {late:?} too late");
        match result {
            None => assert_eq!(end, EndedBy::Drop),
            Some(result) => {
                let error = result.expect_err(&cell);
                let unsent = matches!(hangs_at, HangsAt::LookUp | HangsAt::Connect | HangsAt::Tls);
                assert_eq!(error.may_have_arrived(), !unsent, "{cell}: {error:?}");
            }
        }
        (self, executor)
    }
}

fn sockets() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let is_socket = |target: &std::path::PathBuf| target.to_string_lossy().starts_with("socket:");
    targets.filter(is_socket).count()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_an_attempt_hangs_its_caller_has_an_answer_in_time_and_nothing_is_left() {
    let authority = Arc::new(Authority::new());
    let (listener, _queue) = full().await;
    let mut cells = Vec::new();
    for hangs_at in HANGS_AT {
        for end in ENDS {
            let hang = match hangs_at {
                HangsAt::LookUp => Hang::Url("http://nobody.answers/".to_owned()),
                HangsAt::Connect => {
                    Hang::Url(format!("http://{}/", listener.local_addr().unwrap()))
                }
                HangsAt::Tls => {
                    let config = authority.server("127.0.0.1");
                    Hang::Server(Server::start_tls([Act::StallAtAccept], config).await)
                }
                HangsAt::Upload => Hang::Server(Server::start([Act::StallAtAccept]).await),
                HangsAt::Head => Hang::Server(Server::start([Act::Stall]).await),
                HangsAt::Body => Hang::Server(Server::start([Act::StallInBody]).await),
            };
            cells.push(Cell {
                hangs_at,
                end,
                hang,
                authority: authority.clone(),
            });
        }
    }
    let count = cells.len();
    let before = (Handle::current().metrics().num_alive_tasks(), sockets());
    let running: JoinSet<_> = cells.into_iter().map(Cell::run).collect();
    let ended = running.join_all().await;
    // The servers' halves go, so that what is left is ours.
    for (cell, _) in &ended {
        if let Hang::Server(server) = &cell.hang {
            server.close_connections();
        }
    }
    let began = Instant::now();
    loop {
        let after = (Handle::current().metrics().num_alive_tasks(), sockets());
        if after.0 <= before.0 && after.1 <= before.1 {
            let took = began.elapsed();
            println!(
                "{count} cells; tasks and sockets: {before:?} before, {after:?} after {took:?}"
            );
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{before:?} tasks and sockets before, {after:?} after"
        );
        sleep(Duration::from_millis(50)).await;
    }
    drop(ended);
}
