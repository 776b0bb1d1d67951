//! An executor's calls inside `.retry` and batches: the outer layer repeats its block only if every request in it may be repeated.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use comeback::{
    Attempt, Connectivity, Executor, FailureKind, Method, Reason, Repeat, RequestFacts,
    RetryPolicy, Retryable, Round, TokioClock, Verdict, batch,
};

use crate::common::{self, KEY, soon};
use crate::server::{Act, Server};

fn policy() -> RetryPolicy {
    soon().build().unwrap()
}

/// Breaks after the request has arrived, for as long as anyone asks.
async fn breaking() -> Server {
    Server::start(vec![Act::ResetBeforeAnswer; 16]).await
}

fn keys(server: &Server) -> BTreeSet<String> {
    let heard = server.heard();
    let keys = heard.iter().filter_map(|request| request.header(KEY));
    keys.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_block_with_a_keyless_post_that_may_have_arrived_is_not_repeated() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async || executor.post(server.url("/")).send().await;
    let error = post.retry(&policy()).await.unwrap_err();
    assert_eq!(server.count(), 1);
    assert_eq!(error.reason(), Reason::NotRepeatable);
    assert!(error.may_have_arrived());
    assert!(error.into_last().unwrap().may_have_arrived());
}

#[tokio::test]
async fn a_key_that_the_executor_makes_within_a_block_does_not_make_it_repeatable() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async || {
        executor
            .post(server.url("/"))
            .idempotency_key()
            .send()
            .await
    };
    let error = post.retry(&policy()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::NotRepeatable);
    let by_policy = common::executor(soon().make_key(true));
    let post = async || by_policy.post(server.url("/")).send().await;
    post.retry(&policy()).await.unwrap_err();
    assert_eq!((server.count(), keys(&server).len()), (2, 2)); // one for each call
}

#[tokio::test]
async fn an_attempts_key_is_the_same_in_every_attempt_of_the_block() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async |attempt: Attempt| {
        let request = executor.post(server.url("/"));
        request.header(KEY, attempt.key("order")).send().await
    };
    let error = post.retry(&policy()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Attempts);
    assert_eq!((server.count(), keys(&server).len()), (4, 1));
    post.retry(&policy()).await.unwrap_err();
    assert_eq!(keys(&server).len(), 2, "another call has another key");
}

#[tokio::test(start_paused = true)]
async fn keys_differ_by_name_and_attempts_are_numbered() {
    let seen = RefCell::new(Vec::new());
    let fails = async |attempt: Attempt| {
        let keys = (attempt.key("order"), attempt.key("payment"));
        seen.borrow_mut().push((attempt.number(), keys));
        Err::<(), _>(())
    };
    fails.retry(&policy()).await.unwrap_err();
    let seen = seen.into_inner();
    let numbers: Vec<u32> = seen.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(seen.iter().all(|(_, keys)| *keys == seen[0].1));
    assert_ne!(seen[0].1.0, seen[0].1.1);
}

#[tokio::test]
async fn the_key_of_a_call_within_the_block_is_no_key_to_the_block() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let policy = policy();
    let post = async |attempt: Attempt| {
        let key = format!("\"{}\"", attempt.key("order"));
        let request = executor.post(server.url("/")).header(KEY, key);
        request.send().await
    };
    let repository = async || post.retry(&policy).await;
    let error = repository.retry(&policy).await.unwrap_err();
    assert_eq!((server.count(), keys(&server).len()), (1, 1));
    assert_eq!(error.reason(), Reason::NotRepeatable);
}

#[tokio::test]
async fn an_answered_request_counts_as_much_as_the_one_that_failed() {
    let (answers, refused) = (Server::start([]).await, Server::closed());
    let executor = common::executor(soon());
    let block = async || {
        executor.post(answers.url("/orders")).send().await?;
        executor.get(refused.url("/")).send().await
    };
    let error = block.retry(&policy()).await.unwrap_err();
    assert_eq!(answers.count(), 1);
    assert_eq!(error.reason(), Reason::NotRepeatable);
    let last = error.into_last().unwrap();
    assert!(
        !last.may_have_arrived(),
        "of the GET itself nothing was sent"
    );
}

#[tokio::test]
async fn an_apps_word_that_nothing_was_sent_does_not_count_against_a_request_that_went_out() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async || executor.post(server.url("/")).send().await;
    let call = post
        .retry(&policy())
        .classify(|_| Verdict::NEVER_SENT)
        .await;
    assert_eq!(call.unwrap_err().reason(), Reason::NotRepeatable);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_block_whose_requests_provably_sent_nothing_is_repeated() {
    let (refused, executor) = (Server::closed(), common::executor(soon()));
    let made = Cell::new(0);
    let post = async || {
        made.set(made.get() + 1);
        executor.post(refused.url("/")).send().await
    };
    let policy = policy();
    let error = post.retry(&policy).await.unwrap_err();
    assert_eq!((made.get(), error.reason()), (4, Reason::Attempts));
    // Nobody but the app can say that nothing else was sent in the block.
    assert!(error.may_have_arrived());
    let unsent = |result: &Result<_, comeback::HttpError>| match result {
        Ok(_) => Verdict::ANSWER,
        Err(error) if error.may_have_arrived() => Verdict::IN_DOUBT,
        Err(_) => Verdict::Failed(FailureKind::ConnectRefused),
    };
    let keyless = RequestFacts::new(Method::Post);
    let call = post.retry(&policy).classify(unsent).request(keyless).await;
    let error = call.unwrap_err();
    assert_eq!((made.get(), error.reason()), (8, Reason::Attempts));
    assert!(!error.may_have_arrived());
}

#[tokio::test]
async fn always_in_the_outer_policy_is_the_callers_word_for_the_whole_block() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async || executor.post(server.url("/")).send().await;
    let always = soon().repeat(Repeat::Always).build().unwrap();
    let error = post.retry(&always).await.unwrap_err();
    assert_eq!((server.count(), error.reason()), (4, Reason::Attempts));
}

#[tokio::test]
async fn the_inner_policys_word_counts_for_its_own_request() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let always = soon().repeat(Repeat::Always).build().unwrap();
    let post = async || {
        let request = executor.post(server.url("/"));
        request.policy(always.clone()).send().await
    };
    post.retry(&policy()).await.unwrap_err();
    assert_eq!(server.count(), 4);
    let never = soon().repeat(Repeat::Never).build().unwrap();
    let get = async || {
        let request = executor.get(server.url("/"));
        request.policy(never.clone()).send().await
    };
    get.retry(&policy()).await.unwrap_err();
    assert_eq!(server.count(), 5);
}

#[tokio::test]
async fn a_request_without_a_policy_is_told_of_too() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async || {
        let request = executor.post(server.url("/"));
        request.without_retries().send().await
    };
    let error = post.retry(&policy()).await.unwrap_err();
    assert_eq!((server.count(), error.reason()), (1, Reason::NotRepeatable));
}

#[tokio::test]
async fn a_request_that_the_block_gave_up_may_have_arrived() {
    let server = Server::start(vec![Act::Stall; 16]).await;
    let executor = common::executor(soon());
    let hasty = async || {
        let post = executor.post(server.url("/")).send();
        match tokio::time::timeout(Duration::from_millis(200), post).await {
            Ok(sent) => sent.map_err(drop),
            Err(_) => Err(()),
        }
    };
    let error = hasty.retry(&policy()).await.unwrap_err();
    assert_eq!((server.count(), error.reason()), (1, Reason::NotRepeatable));
}

#[tokio::test]
async fn a_request_that_is_under_way_when_its_block_ends_may_have_arrived() {
    let server = Server::start(vec![Act::Stall; 16]).await;
    let executor = common::executor(soon());
    let kept = RefCell::new(Vec::new());
    let block = async || {
        let mut post = Box::pin(executor.post(server.url("/")).send());
        let hasty = tokio::time::timeout(Duration::from_millis(200), post.as_mut());
        let sent = hasty.await.map(|_| ());
        kept.borrow_mut().push(post); // somebody may go on with it
        sent
    };
    let error = block.retry(&policy()).await.unwrap_err();
    assert_eq!((server.count(), error.reason()), (1, Reason::NotRepeatable));
}

#[tokio::test]
async fn an_attempt_at_its_limit_does_not_repeat_a_keyless_post() {
    let server = Server::start(vec![Act::Slow(Duration::from_millis(600)); 16]).await;
    let executor = common::executor(soon());
    let post = async || executor.post(server.url("/")).send().await;
    let limited = soon().attempt_timeout(Duration::from_millis(200));
    let error = post.retry(&limited.build().unwrap()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::NotRepeatable);
    assert!(error.last().is_none() && error.may_have_arrived());
    tokio::time::sleep(Duration::from_millis(600)).await; // its answer would come now
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_batch_is_not_repeated_after_a_keyless_post_that_may_have_arrived() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async |orders: Round<u32>| {
        let sent = executor.post(server.url("/")).json(&orders[..]).send();
        sent.await.map(|_| orders.iter().map(|_| Ok(())).collect())
    };
    let sent = batch(&policy(), vec![1, 2], post).await;
    assert_eq!(server.count(), 1);
    for record in &sent.records {
        let error = record.result.as_ref().unwrap_err();
        assert_eq!(error.reason, Reason::NotRepeatable);
        assert!(error.may_have_arrived);
    }
}

#[tokio::test]
async fn a_batch_whose_orders_have_keys_is_repeated_with_the_same_keys() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let post = async |orders: Round<u32>| {
        let mut results = Vec::new();
        for order in orders.iter() {
            let key = orders.attempt().key(&order.to_string());
            let request = executor.post(server.url("/")).header(KEY, key);
            results.push(request.send().await.map(drop));
        }
        Ok(results)
    };
    let sent = batch(&policy(), vec![1, 2], post).await;
    assert!(!sent.is_complete());
    assert_eq!((server.count(), keys(&server).len()), (8, 2));
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asked_an_inner_request_to_wait_is_waited() {
    let server = Server::start([Act::retry_after(503, "7"), Act::retry_after(503, "60")]).await;
    let hub = Connectivity::with_clock(TokioClock::new());
    let executor = common::executor(soon());
    let get = async || {
        let response = executor.get(server.url("/")).send().await.unwrap();
        response.error_for_status()
    };
    let began = tokio::time::Instant::now();
    let policy = policy();
    let call = get.retry(&policy).connectivity(&hub);
    let (answer, ()) = tokio::join!(call.into_future(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        hub.restored(); // no edge ends a server's wait
    });
    let Reason::ServerWaitTooLong { ms: 60_000 } = answer.unwrap_err().reason() else {
        panic!("60 s do not fit into 20");
    };
    assert_eq!(began.elapsed().as_secs(), 7);
    assert_eq!(server.count(), 2);
}

/// Each is on a task of its own.
#[derive(Clone, Copy, Debug)]
enum Outside {
    Spawned,
    OnALocalSet,
}

#[tokio::test]
async fn work_on_a_task_of_its_own_is_outside_of_the_attempt() {
    for outside in [Outside::Spawned, Outside::OnALocalSet] {
        let (server, executor) = (breaking().await, common::executor(soon()));
        let get = |executor: &Executor| executor.get(server.url("/")).send();
        let mades = Cell::new(0);
        let block = async || {
            mades.set(mades.get() + 1);
            let sent = get(&executor);
            match outside {
                Outside::Spawned => tokio::spawn(sent).await.unwrap(),
                Outside::OnALocalSet => {
                    let local = tokio::task::LocalSet::new();
                    let spawned = local.spawn_local(sent);
                    local.run_until(spawned).await.unwrap()
                }
            }
        };
        let twice = soon().max_attempts(2).build().unwrap();
        let error = block.retry(&twice).await.unwrap_err();
        let reports = error.into_last().unwrap();
        assert_eq!(
            reports.report().attempts.len(),
            4,
            "{outside:?}: it acts itself"
        );
        assert_eq!((mades.get(), server.count()), (2, 8), "{outside:?}");
    }
}

#[tokio::test]
async fn on_a_local_set_a_block_and_what_it_awaits_are_one_layer() {
    let (server, executor) = (breaking().await, common::executor(soon()));
    let url = server.url("/");
    let local = tokio::task::LocalSet::new();
    let task = local.spawn_local(async move {
        let post = async || executor.post(&*url).send().await;
        post.retry(&policy()).await.unwrap_err().reason()
    });
    let reason = local.run_until(task).await.unwrap();
    assert_eq!((server.count(), reason), (1, Reason::NotRepeatable));
}

#[tokio::test]
async fn a_call_that_began_before_the_block_is_no_part_of_it() {
    let server = Server::start([Act::Slow(Duration::from_millis(100))]).await;
    let executor = common::executor(soon());
    let mut post = Box::pin(executor.post(server.url("/")).send());
    let hasty = tokio::time::timeout(Duration::from_millis(20), post.as_mut());
    assert!(hasty.await.is_err());
    let post = RefCell::new(Some(post));
    let made = Cell::new(0);
    let block = async || {
        made.set(made.get() + 1);
        let under_way = post.borrow_mut().take();
        match under_way {
            Some(post) => {
                assert_eq!(post.await.unwrap().status(), 200);
                Err("the rest of the block failed")
            }
            None => Ok(()),
        }
    };
    block.retry(&policy()).await.unwrap();
    assert_eq!((made.get(), server.count()), (2, 1));
}
