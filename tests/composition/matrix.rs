//! Outer layer × driver × what else is in the block × request × what goes wrong × policy.

use std::collections::{BTreeSet, HashMap};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback::{
    Backoff, Connectivity, Executor, HttpError, Reported, RetryPolicy, Retryable, Round, batch,
};
use hyper::Method;
use hyper::http::request::Parts;
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::server::{Act, Plan, Server};

const KEY: &str = "idempotency-key";
/// Cells under way at a time, and those among them that wait for a late answer.
const SIDE_BY_SIDE: usize = 48;
const LATE_SIDE_BY_SIDE: usize = 320;
/// An attempt's limit where the answer comes late, and when it comes.
const LIMIT: Duration = Duration::from_millis(800);
const LATE: Duration = Duration::from_secs(6);
/// Of a relay's loop, whose app asks whether its calls may have arrived before it begins another.
const ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outer {
    Nothing,
    Retry,
    Batch,
    Relay,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Driver {
    Direct,
    BehindARedirect,
}

/// What else the block does, always with the same executor. What comes after the request is refused, so that the block's last error says
/// "never sent".
#[derive(Clone, Copy, Debug, PartialEq)]
enum Inner {
    Nothing,
    /// Before it, a keyless POST that is answered.
    CallBefore,
    CallAfter,
    /// If it fails, the same request to another host.
    Failover,
    /// After it a POST for a new token.
    TokenRefresh,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    Get,
    KeylessPost,
    KeyedPost,
    PostWithMadeKey,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    Ok,
    Status408,
    Status421,
    Status503,
    Status503RetryAfter0,
    ResetBefore,
    ResetAfter,
    Refused,
    HeadThenReset,
    Late,
}

const OUTERS: [Outer; 4] = [Outer::Nothing, Outer::Retry, Outer::Batch, Outer::Relay];
const DRIVERS: [Driver; 2] = [Driver::Direct, Driver::BehindARedirect];
const INNERS: [Inner; 5] = [
    Inner::Nothing,
    Inner::CallBefore,
    Inner::CallAfter,
    Inner::Failover,
    Inner::TokenRefresh,
];
const SENT: [Sent; 4] = [
    Sent::Get,
    Sent::KeylessPost,
    Sent::KeyedPost,
    Sent::PostWithMadeKey,
];
const EFFECTS: [Effect; 10] = [
    Effect::Ok,
    Effect::Status408,
    Effect::Status421,
    Effect::Status503,
    Effect::Status503RetryAfter0,
    Effect::ResetBefore,
    Effect::ResetAfter,
    Effect::Refused,
    Effect::HeadThenReset,
    Effect::Late,
];
const POLICIES: [&str; 4] = ["default", "read", "payment", "batch"];

#[derive(Clone, Copy, Debug)]
struct Cell {
    number: usize,
    outer: Outer,
    driver: Driver,
    inner: Inner,
    sent: Sent,
    effect: Effect,
    policy: usize,
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for outer in OUTERS {
        for driver in DRIVERS {
            for inner in INNERS {
                for sent in SENT {
                    for effect in EFFECTS {
                        for policy in 0..POLICIES.len() {
                            cells.push(Cell {
                                number: cells.len(),
                                outer,
                                driver,
                                inner,
                                sent,
                                effect,
                                policy,
                            });
                        }
                    }
                }
            }
        }
    }
    cells
}

/// The rules, once more and by other means than the core's.
impl Cell {
    /// Nothing of the request leaves.
    fn is_unsent(self) -> bool {
        self.effect == Effect::Refused && self.driver == Driver::Direct
    }

    /// Whether a server hears the request itself, not the one that redirects.
    fn is_heard(self) -> bool {
        !matches!(self.effect, Effect::Refused | Effect::ResetBefore)
    }

    /// Whether the layer that acts is the executor, for each of its calls.
    fn executor_acts(self) -> bool {
        matches!(self.outer, Outer::Nothing | Outer::Relay)
    }

    fn block_fails(self) -> bool {
        matches!(self.inner, Inner::CallAfter | Inner::TokenRefresh) || self.effect != Effect::Ok
    }

    /// How often the request is sent by one call of the layer that acts: at least, and at most.
    fn attempts(self, most: u32) -> (u32, u32) {
        let goes_again = if self.executor_acts() {
            let is_answer = matches!(self.effect, Effect::Ok | Effect::Status421);
            !is_answer && (self.sent != Sent::KeylessPost || self.is_unsent())
        } else {
            let may = matches!(self.sent, Sent::Get | Sent::KeyedPost) || self.is_unsent();
            self.block_fails() && may && self.inner != Inner::CallBefore
        };
        match self.effect {
            _ if goes_again => (most, most),
            // A connection that is reset at once may be known to be dead before anything is written: then nothing was sent.
            Effect::ResetBefore if self.driver == Driver::Direct => (1, most),
            _ => (1, 1),
        }
    }

    /// How often the app's own loop begins: at least, and at most.
    fn rounds(self) -> (u32, u32) {
        let goes_on = self.block_fails() && self.inner != Inner::CallBefore;
        let may_be_unsent = self.effect == Effect::ResetBefore && self.driver == Driver::Direct;
        match self.outer {
            Outer::Relay if goes_on && self.is_unsent() => (ROUNDS, ROUNDS),
            Outer::Relay if goes_on && may_be_unsent => (1, ROUNDS),
            _ => (1, 1),
        }
    }
}

/// What arrived of a cell's requests.
#[derive(Clone, Debug, Default)]
struct Count {
    sends: u32,
    keys: BTreeSet<String>,
}

/// By cell, and by what the request is to it: `main`, `front` (it is redirected from there), `other`.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<HashMap<(usize, String), Count>>>);

impl Book {
    fn count(&self, cell: Cell, what: &str) -> Count {
        let counts = self.0.lock().unwrap();
        let count = counts.get(&(cell.number, what.to_owned()));
        count.cloned().unwrap_or_default()
    }
}

/// Does what the path says: `/main/17/503`.
struct ByPath {
    book: Book,
    resets_at_accept: bool,
}

impl Plan for ByPath {
    fn at_accept(&self) -> Option<Act> {
        self.resets_at_accept.then_some(Act::ResetAtAccept)
    }

    fn on_request(&self, request: &Parts) -> Act {
        let path = request.uri.path();
        let mut parts = path.trim_start_matches('/').splitn(3, '/');
        let what = parts.next().unwrap().to_owned();
        let cell = parts.next().unwrap().parse().unwrap();
        {
            let mut counts = self.book.0.lock().unwrap();
            let count = counts.entry((cell, what)).or_default();
            count.sends += 1;
            let key = request.headers.get(KEY);
            count
                .keys
                .extend(key.map(|key| key.to_str().unwrap().to_owned()));
        }
        match parts.next().unwrap() {
            "ok" => Act::status(200),
            "reset" => Act::ResetBeforeAnswer,
            "half" => Act::HalfBody,
            "late" => Act::Slow(LATE),
            "503-0" => Act::retry_after(503, "0"),
            "redirect" => Act::redirect(307, request.uri.query().unwrap()),
            status => Act::status(status.parse().unwrap()),
        }
    }
}

/// What all cells share.
struct Fixture {
    book: Book,
    executor: Executor,
    policies: Vec<Arc<RetryPolicy>>,
    /// The same, with an attempt's limit.
    limited: Vec<Arc<RetryPolicy>>,
    plain: Server,
    /// By itself, for after an attempt that ran out of time the origin's connections are made anew.
    late: Server,
    resetting: Server,
    refused: Server,
}

impl Fixture {
    fn new() -> Fixture {
        let book = Book::default();
        let server = |resets_at_accept| {
            Server::planned(ByPath {
                book: book.clone(),
                resets_at_accept,
            })
        };
        let policy = |name: &&str, limit| {
            let preset = match *name {
                "read" => RetryPolicy::read(),
                "payment" => RetryPolicy::payment(),
                "batch" => RetryPolicy::batch(),
                _ => RetryPolicy::default(),
            };
            let ms = Duration::from_millis(1);
            // On a machine with other work a cell may take its time.
            let built = preset
                .to_builder()
                .base(ms)
                .cap(ms)
                .max_elapsed(60_000 * ms);
            Arc::new(
                built
                    .read_body(1_000)
                    .attempt_timeout(limit)
                    .build()
                    .unwrap(),
            )
        };
        let limited = POLICIES.iter().map(|name| policy(name, Some(LIMIT)));
        Fixture {
            executor: Executor::builder().build().unwrap(),
            policies: POLICIES.iter().map(|name| policy(name, None)).collect(),
            limited: limited.collect(),
            plain: server(false),
            late: server(false),
            resetting: server(true),
            refused: Server::closed(),
            book,
        }
    }

    /// The request's address, or that of the one who redirects to it.
    fn url(&self, cell: Cell) -> String {
        let number = cell.number;
        let main = |act: &str| format!("/main/{number}/{act}");
        let url = match cell.effect {
            Effect::Ok => self.plain.url(&main("ok")),
            Effect::Status408 => self.plain.url(&main("408")),
            Effect::Status421 => self.plain.url(&main("421")),
            Effect::Status503 => self.plain.url(&main("503")),
            Effect::Status503RetryAfter0 => self.plain.url(&main("503-0")),
            Effect::ResetBefore => self.resetting.url(&main("ok")),
            Effect::ResetAfter => self.plain.url(&main("reset")),
            Effect::Refused => self.refused.url(&main("ok")),
            Effect::HeadThenReset => self.plain.url(&main("half")),
            Effect::Late => self.late.url(&main("late")),
        };
        match cell.driver {
            Driver::Direct => url,
            Driver::BehindARedirect => {
                let front = format!("/front/{number}/redirect?{url}");
                match cell.effect {
                    Effect::Late => self.late.url(&front),
                    _ => self.plain.url(&front),
                }
            }
        }
    }

    async fn send(&self, cell: Cell, sent: Sent, url: String) -> Result<Response, HttpError> {
        let policy = match cell.effect {
            Effect::Late => &self.limited[cell.policy],
            _ => &self.policies[cell.policy],
        };
        let method = match sent {
            Sent::Get => Method::GET,
            _ => Method::POST,
        };
        let request = self.executor.request(method, url).policy(policy.clone());
        let request = match sent {
            Sent::Get => request,
            Sent::KeylessPost => request.body("order"),
            Sent::KeyedPost => request.body("order").header(KEY, cell.number.to_string()),
            Sent::PostWithMadeKey => request.body("order").idempotency_key(),
        };
        request.send().await
    }

    /// The block; what its request came to is left in `told`.
    async fn block(&self, cell: Cell, told: &Mutex<Option<Told>>) -> Result<(), Broken> {
        let number = cell.number;
        let mut broken = Broken::default();
        if cell.inner == Inner::CallBefore {
            let other = self.plain.url(&format!("/other/{number}/ok"));
            broken.hear(&self.send(cell, Sent::KeylessPost, other).await);
        }
        let main = self.send(cell, cell.sent, self.url(cell)).await;
        *told.lock().unwrap() = Some(Told::of(&main));
        broken.hear(&main);
        let refused = self.refused.url(&format!("/other/{number}/ok"));
        let after = match cell.inner {
            Inner::CallAfter => Some(Sent::Get),
            Inner::TokenRefresh => Some(Sent::KeylessPost),
            Inner::Failover if broken.failed => Some(cell.sent),
            _ => None,
        };
        if let Some(after) = after {
            broken.hear(&self.send(cell, after, refused).await);
        }
        if broken.failed { Err(broken) } else { Ok(()) }
    }

    /// The same for a batch of one record. Boxed, else the compiler does not see that it may be sent to another thread.
    fn round<'a>(
        &'a self,
        cell: Cell,
        told: &'a Mutex<Option<Told>>,
    ) -> Pin<Box<dyn Future<Output = Results> + Send + 'a>> {
        Box::pin(async move { Ok(vec![self.block(cell, told).await]) })
    }

    async fn run(&self, cell: Cell) -> Result<(), String> {
        let told = Mutex::new(None);
        let policy = &self.policies[cell.policy];
        // What the layer that acts says: its attempts, and whether they may have arrived.
        let (attempts, may_have_arrived) = match cell.outer {
            Outer::Nothing => {
                let _ = self.block(cell, &told).await;
                let told = told.lock().unwrap().unwrap();
                (told.attempts, told.may_have_arrived)
            }
            Outer::Retry => {
                let mut report = comeback::Report::default();
                let block = || self.block(cell, &told);
                let call = block
                    .retry(policy)
                    .notify(|event| report.hear(&event.event));
                let result = call.await;
                let arrived = result.map_or_else(|error| error.may_have_arrived(), |()| true);
                (report.end.unwrap().counted, arrived)
            }
            Outer::Batch => {
                let told = &told;
                let block = move |_: Round<()>| self.round(cell, told);
                let sent = batch(policy, vec![()], block).await;
                let end = sent.report.end.unwrap();
                let record = sent.records[0].result.as_ref();
                let arrived = record.map_or_else(|error| error.may_have_arrived, |()| true);
                (end.counted, arrived && end.may_have_arrived)
            }
            Outer::Relay => {
                let mut backoff = Backoff::new(policy, &Connectivity::new());
                let mut attempts = 0;
                let mut arrived = false;
                for _ in 0..ROUNDS {
                    let result = self.block(cell, &told).await;
                    attempts += told.lock().unwrap().unwrap().attempts;
                    arrived = result.map_or_else(|broken| broken.may_have_arrived, |()| true);
                    if arrived {
                        break; // the app knows no better
                    }
                    pin!(backoff.wait()).await;
                }
                (attempts, arrived)
            }
        };
        let (main, front) = (
            self.book.count(cell, "main"),
            self.book.count(cell, "front"),
        );
        let other = self.book.count(cell, "other");
        let problem = |what: &str| Err(format!("{what}: said {attempts}, {main:?}, {front:?}"));

        let (least, most) = cell.attempts(policy.max_attempts());
        let (rounds, most_rounds) = cell.rounds();
        let (least, most) = (least * rounds, most * most_rounds);
        if !(least..=most).contains(&attempts) {
            return problem(&format!("{least} to {most} attempts are right"));
        }
        let redirected = cell.driver == Driver::BehindARedirect;
        // On a busy machine an attempt may run out of time before its request is read.
        let is_counted = |count: &Count, heard: bool| match cell.effect {
            Effect::Late => count.sends <= if heard { attempts } else { 0 },
            _ => count.sends == if heard { attempts } else { 0 },
        };
        if !is_counted(&front, redirected) {
            return problem("the one that redirects counted otherwise");
        }
        if !is_counted(&main, cell.is_heard()) {
            return problem("the server counted otherwise");
        }
        if cell.sent == Sent::KeylessPost && main.sends.max(front.sends) > 1 || other.sends > 1 {
            return problem("a keyless POST arrived twice");
        }
        let keys: BTreeSet<_> = main.keys.union(&front.keys).collect();
        let has_key = matches!(cell.sent, Sent::KeyedPost | Sent::PostWithMadeKey);
        let arrived = main.sends + front.sends > 0;
        if keys.len() != usize::from(has_key && arrived) {
            return problem("it is not one key");
        }
        if (arrived || other.sends > 0 && cell.outer != Outer::Nothing) && !may_have_arrived {
            return problem("it arrived, and that was denied");
        }
        if cell.outer == Outer::Nothing && cell.is_unsent() && may_have_arrived {
            return problem("it was refused, and that was not seen");
        }
        Ok(())
    }
}

/// Of a round.
type Results = Result<Vec<Result<(), Broken>>, Broken>;

/// How the block failed, if it did.
#[derive(Debug, Default)]
struct Broken {
    failed: bool,
    may_have_arrived: bool,
}

impl Broken {
    fn hear(&mut self, result: &Result<Response, HttpError>) {
        self.failed |= !result
            .as_ref()
            .is_ok_and(|response| response.status().is_success());
        self.may_have_arrived |= Told::of(result).may_have_arrived;
    }
}

/// What a call of the executor told of itself.
#[derive(Clone, Copy)]
struct Told {
    attempts: u32,
    may_have_arrived: bool,
}

impl Told {
    fn of(result: &Result<Response, HttpError>) -> Told {
        match result {
            Ok(response) => Told {
                attempts: response
                    .retry_report()
                    .map_or(1, |report| report.end.unwrap().counted),
                may_have_arrived: true,
            },
            Err(error) => {
                assert_eq!(error.may_have_arrived(), error.report().may_have_arrived());
                Told {
                    attempts: error.report().end.unwrap().counted,
                    may_have_arrived: error.may_have_arrived(),
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_it_is_composed_the_server_counts_what_the_rules_allow() {
    let began = std::time::Instant::now();
    let fixture = Arc::new(Fixture::new());
    let few = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let many = Arc::new(Semaphore::new(LATE_SIDE_BY_SIDE));
    let cells = cells();
    let mut running = JoinSet::new();
    for &cell in &cells {
        let fixture = fixture.clone();
        let side_by_side = match cell.effect {
            Effect::Late => many.clone(),
            _ => few.clone(),
        };
        running.spawn(async move {
            let _permit = side_by_side.acquire().await.unwrap();
            let told = fixture.run(cell).await;
            told.map_err(|problem| format!("{cell:?} ({}): {problem}", POLICIES[cell.policy]))
        });
    }
    let mut wrong = Vec::new();
    while let Some(told) = running.join_next().await {
        wrong.extend(told.unwrap().err());
    }
    let counts = fixture.book.0.lock().unwrap();
    let sends: u32 = counts.values().map(|count| count.sends).sum();
    let unheard = cells.iter().filter(|cell| !cell.is_heard()).count();
    println!(
        "{} cells, none left out; the servers counted {sends} requests in {:?}.\n\
         In {unheard} cells there is no request for a server to count (refused, reset before it was read): there the reports' attempts are \
         compared with the model alone.",
        cells.len(),
        began.elapsed(),
    );
    assert_eq!(cells.len(), 6_400);
    let first: Vec<_> = wrong.iter().take(20).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        first.join("\n")
    );
}
