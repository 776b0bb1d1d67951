//! Ten thousand keyless POSTs with faults, cancellations and layers drawn at random, from one seed. None may arrive twice.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use comeback::draw::splitmix64;
use comeback::{Executor, HttpError, RequestFacts, RetryPolicy, Retryable, Round, Verdict, batch};
use hyper::http::request::Parts;
use reqwest::Response;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::server::{Act, Plan, Server};

const POSTS: u64 = 10_000;
const SIDE_BY_SIDE: usize = 64;
const SEED: u64 = 0x00c0_ffee;

/// Draws of one post, or of one request at the server.
struct Draws(u64, u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.1 += 1;
        splitmix64(self.0, self.1) % end
    }
}

/// What was counted, by post.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<HashMap<u64, u32>>>);

/// Goes wrong at random.
struct AtRandom {
    book: Book,
    accepts: Mutex<Draws>,
}

impl Plan for AtRandom {
    fn at_accept(&self) -> Option<Act> {
        match self.accepts.lock().unwrap().below(20) {
            0 => Some(Act::ResetAtAccept),
            _ => None,
        }
    }

    fn on_request(&self, request: &Parts) -> Act {
        let path = request.uri.path().trim_start_matches('/');
        let (what, number) = path.split_once('/').unwrap();
        let number: u64 = number.parse().unwrap();
        let is_http2 = request.version == hyper::Version::HTTP_2;
        if what == "redirect" {
            return Act::redirect(307, &format!("/post/{number}"));
        }
        if what == "token" {
            return Act::status(200);
        }
        let mut counts = self.book.0.lock().unwrap();
        let count = counts.entry(number).or_default();
        let mut draws = Draws(SEED ^ number.rotate_left(20), u64::from(*count));
        let act = match draws.below(14) {
            0 | 1 => Act::status(200),
            2 => Act::status(503),
            3 => Act::retry_after(503, "0"),
            4 => Act::status(408),
            5 => Act::status(500),
            6 => Act::ResetAfterHead,
            7 => Act::ResetBeforeAnswer,
            8 => Act::CloseBeforeAnswer,
            9 if !is_http2 => Act::HalfHead,
            10 => Act::Junk,
            11 => Act::HalfBody,
            12 => Act::Slow(Duration::from_millis(30)),
            13 if is_http2 => Act::ResetStream(h2::Reason::REFUSED_STREAM.into()),
            _ => Act::ResetBeforeAnswer,
        };
        if matches!(act, Act::ResetStream(_)) {
            return act; // by its own word the server did nothing with it
        }
        *count += 1;
        act
    }
}

struct Fixture {
    book: Book,
    /// By HTTP/1 and by HTTP/2.
    executors: [Executor; 2],
    policies: [Arc<RetryPolicy>; 4],
    server: Server,
    refused: Server,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<Response, HttpError>> + Send + 'a>>;

impl Fixture {
    fn new() -> Fixture {
        let book = Book::default();
        let policy = |preset: RetryPolicy| {
            let ms = Duration::from_millis(1);
            let policy = preset.to_builder().base(ms).cap(2 * ms);
            Arc::new(
                policy
                    .attempt_timeout(100 * ms)
                    .read_body(1_000)
                    .build()
                    .unwrap(),
            )
        };
        let executor = |is_http2: bool| {
            let builder = Executor::builder().client(move |client| match is_http2 {
                true => client.http2_prior_knowledge(),
                false => client,
            });
            builder.build().unwrap()
        };
        Fixture {
            executors: [executor(false), executor(true)],
            policies: [
                policy(RetryPolicy::default()),
                policy(RetryPolicy::read()),
                policy(RetryPolicy::payment()),
                policy(RetryPolicy::batch()),
            ],
            server: Server::planned(AtRandom {
                book: book.clone(),
                accepts: Mutex::new(Draws(SEED, 0)),
            }),
            refused: Server::closed(),
            book,
        }
    }

    /// The keyless POST, by itself or with what an app may do around it in the same block.
    fn block(&self, number: u64) -> Sending<'_> {
        let mut draws = Draws(SEED.rotate_left(7), number << 8);
        let executor = &self.executors[draws.below(2) as usize];
        let policy = &self.policies[draws.below(4) as usize];
        let (before, after, hops) = (draws.below(4), draws.below(4), draws.below(5));
        let hasty = (draws.below(5) == 0).then(|| Duration::from_millis(draws.below(20)));
        let is_stream = draws.below(4) == 0;
        let token = self.server.url(&format!("/token/{number}"));
        let what = if hops == 0 && !is_stream {
            "redirect"
        } else {
            "post"
        };
        let url = self.server.url(&format!("/{what}/{number}"));
        let post = move |url: String| {
            let request = executor.post(url).policy(policy.clone());
            let request = match is_stream {
                true => request.body_from(|| reqwest::Body::wrap(String::from("order"))),
                false => request.body("order"),
            };
            request.send()
        };
        Box::pin(async move {
            if before == 0 {
                let _ = executor.get(&token).policy(policy.clone()).send().await;
            }
            let sent = match hasty {
                // The app gives it up by itself, and goes on as if it had been refused.
                Some(hasty) => match tokio::time::timeout(hasty, post(url)).await {
                    Ok(sent) => sent,
                    Err(_) => post(self.refused.url("/")).await,
                },
                None => post(url).await,
            };
            match after {
                0 => post(self.refused.url("/")).await,
                1 if sent.is_err() => executor.get(self.refused.url("/")).send().await,
                _ => sent,
            }
        })
    }

    /// Through layers that are drawn. What is returned is whether the call said that it had arrived, if it was not dropped.
    async fn call(&self, number: u64) -> Option<bool> {
        let mut draws = Draws(SEED.rotate_left(13), number << 8);
        let outer = draws.below(7);
        let policy = &*self.policies[draws.below(4) as usize];
        let patience = match draws.below(4) {
            0 => Duration::from_millis(draws.below(40)),
            _ => Duration::from_secs(60),
        };
        let block = || async move {
            let response = self.block(number).await;
            match response {
                Ok(response) if response.status().is_success() => Ok(()),
                Ok(_) => Err(true),
                Err(error) => Err(error.may_have_arrived()),
            }
        };
        // The app's own word for the block's last error: it must not count against what the layers know.
        let word = |result: &Result<(), bool>| match result {
            Ok(()) => Verdict::ANSWER,
            Err(true) => Verdict::IN_DOUBT,
            Err(false) => Verdict::NEVER_SENT,
        };
        let keyless = RequestFacts::new(comeback::Method::Post);
        let call: Pin<Box<dyn Future<Output = Option<bool>> + Send + '_>> = match outer {
            0 => Box::pin(async {
                self.block(number).await.ok();
                None // the block may have lost what its first request said
            }),
            1 => Box::pin(async {
                let call = block.retry(policy).classify(word).await;
                Some(call.map_or_else(|error| error.may_have_arrived(), |()| true))
            }),
            2 => Box::pin(async {
                let call = block.retry(policy).classify(word).request(keyless);
                let call = call.restart(true).await;
                Some(call.map_or_else(|error| error.may_have_arrived(), |()| true))
            }),
            3 => Box::pin(async {
                let call = block.retry(policy).await;
                Some(call.map_or_else(|error| error.may_have_arrived(), |()| true))
            }),
            4 => Box::pin(async {
                let inner = || async { block.retry(policy).classify(word).await };
                let call = inner.retry(&self.policies[3]).await;
                Some(call.map_or_else(|error| error.may_have_arrived(), |()| true))
            }),
            5 => Box::pin(async {
                let round = |_: Round<()>| async { Ok(vec![block().await]) };
                let sent = batch(policy, vec![()], round);
                let sent = sent.classify(|error| word(&Err(*error))).await;
                let record = sent.records[0].result.as_ref();
                Some(record.map_or_else(|error| error.may_have_arrived, |()| true))
            }),
            _ => Box::pin(async {
                // A loop of the app's own, which asks before it begins again.
                let url = self.server.url(&format!("/post/{number}"));
                for _ in 0..3 {
                    let post = self.executors[0].post(&url).policy(policy.clone());
                    match post.send().await {
                        Err(error) if !error.may_have_arrived() => {}
                        _ => return Some(true),
                    }
                }
                Some(false)
            }),
        };
        tokio::time::timeout(patience, call).await.ok().flatten()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_ten_thousand_keyless_posts_through_any_layers_none_arrives_twice() {
    let began = Instant::now();
    let fixture = Arc::new(Fixture::new());
    let side_by_side = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut running = JoinSet::new();
    for number in 0..POSTS {
        let (fixture, side_by_side) = (fixture.clone(), side_by_side.clone());
        running.spawn(async move {
            let _permit = side_by_side.acquire().await.unwrap();
            (number, fixture.call(number).await)
        });
    }
    let mut told = HashMap::new();
    while let Some(call) = running.join_next().await {
        let (number, arrived) = call.unwrap();
        told.insert(number, arrived);
    }
    // What is still on its way arrives now.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let counts = fixture.book.0.lock().unwrap();
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    let denied: Vec<_> = counts
        .iter()
        .filter(|(number, count)| **count > 0 && told[*number] == Some(false))
        .collect();
    let unsent = told.values().filter(|told| **told == Some(false)).count();
    println!(
        "{} of {POSTS} keyless POSTs arrived, {} of them twice; {unsent} calls said that nothing had, {} of them wrongly. Seed {SEED:#x}, {:?}",
        counts.len(),
        twice.len(),
        denied.len(),
        began.elapsed(),
    );
    assert!(counts.len() as u64 > POSTS / 2, "the faults leave too few");
    assert!(twice.is_empty(), "{twice:?}");
    assert!(denied.is_empty(), "{denied:?}");
}
