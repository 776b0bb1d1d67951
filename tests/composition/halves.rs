//! Connections that are cut at every byte of an answer: with `read_body` the caller gets it whole, at the price of one more attempt.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use comeback::{Executor, Reported, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const LENGTH: usize = 20_480;
const SIDE_BY_SIDE: usize = 32;

fn body() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8).collect()
}

/// The bytes of the whole answer, with its length in its head or in pieces that say theirs.
fn answer(is_chunked: bool) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
    if is_chunked {
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        for piece in body().chunks(1_000) {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
            bytes.extend(piece);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
    } else {
        bytes.extend(format!("content-length: {LENGTH}\r\n\r\n").bytes());
        bytes.extend(body());
    }
    bytes
}

/// Answers `/17` with 17 bytes and closes, and when it is asked again with all.
struct Cutting {
    answer: Vec<u8>,
    was_cut: Mutex<HashSet<usize>>,
}

impl Cutting {
    async fn serve(self: Arc<Cutting>, mut stream: TcpStream) -> io::Result<()> {
        let mut heard = Vec::new();
        loop {
            let mut some = [0; 1_024];
            let read = stream.read(&mut some).await?;
            if read == 0 {
                return Ok(());
            }
            heard.extend(&some[..read]);
            if !heard.ends_with(b"\r\n\r\n") {
                continue;
            }
            let path = heard.split(|byte| *byte == b' ').nth(1).unwrap();
            let cut = std::str::from_utf8(&path[1..]).unwrap().parse().unwrap();
            if self.was_cut.lock().unwrap().insert(cut) {
                stream.write_all(&self.answer[..cut]).await?;
                return stream.shutdown().await;
            }
            stream.write_all(&self.answer).await?;
            heard.clear();
        }
    }
}

/// Cuts an answer after each number of bytes that is less than all, `step` further each time.
async fn cut_everywhere(is_chunked: bool, step: usize) {
    let began = Instant::now();
    let cutting = Arc::new(Cutting {
        answer: answer(is_chunked),
        was_cut: Mutex::default(),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = cutting.clone();
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serving.clone().serve(stream));
        }
    });
    let policy = RetryPolicy::builder()
        .base(Duration::from_millis(1))
        .cap(Duration::from_millis(1))
        .max_elapsed(Duration::from_secs(60))
        .read_body(1 << 20);
    let executor = Executor::builder().policy(policy.build().unwrap());
    let executor = executor.build().unwrap();
    let side_by_side = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let whole = Arc::new(body());
    let mut running = JoinSet::new();
    for cut in (0..cutting.answer.len()).step_by(step) {
        let request = executor.get(format!("http://{address}/{cut}"));
        let (side_by_side, whole) = (side_by_side.clone(), whole.clone());
        running.spawn(async move {
            let _permit = side_by_side.acquire().await.unwrap();
            let response = request.send().await.unwrap();
            let attempts = response
                .retry_report()
                .map_or(0, |report| report.attempts.len());
            assert_eq!(attempts, 1, "cut after {cut} bytes");
            let arrived = response.bytes().await.unwrap();
            assert!(arrived == *whole, "cut after {cut} bytes");
        });
    }
    let cuts = running.len();
    running.join_all().await;
    accepting.abort();
    let took = began.elapsed();
    println!(
        "{cuts} answers were cut, chunked: {is_chunked}; each came whole with one more attempt. {took:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_at_any_byte_comes_whole_with_one_more_attempt() {
    cut_everywhere(false, 1).await;
    cut_everywhere(true, 97).await;
}
