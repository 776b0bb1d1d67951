//! A batch of writes of which some fail: only those go again, results come in order. `cargo run --features tokio --example batch`

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use comeback::{Connectivity, FailureKind, RetryPolicy, Verdict, batch};
use tokio::sync::Semaphore;

#[derive(Debug)]
enum WriteError {
    Overloaded,
    Malformed,
    ConnectionLost,
}

/// A server that is overloaded by more than three records, and loses the first connection of all.
async fn write(
    rows: &[i32],
    calls: &AtomicU32,
) -> Result<Vec<Result<i32, WriteError>>, WriteError> {
    println!("writing {rows:?}");
    if calls.fetch_add(1, Ordering::Relaxed) == 0 {
        return Err(WriteError::ConnectionLost);
    }
    let answer = |(place, row): (usize, &i32)| match row {
        row if *row < 0 => Err(WriteError::Malformed),
        _ if place >= 3 => Err(WriteError::Overloaded),
        row => Ok(row * 10),
    };
    Ok(rows.iter().enumerate().map(answer).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let hub = Connectivity::new();
    let policy = RetryPolicy::batch(); // 8 rounds at most, 20 to 500 ms between them
    let under_way = Arc::new(Semaphore::new(2)); // rounds of all batches; a batch that waits holds none
    let calls = AtomicU32::new(0);

    let written = batch(&policy, vec![1, 2, -3, 4, 5, 6, 7], |rows| {
        let calls = &calls;
        async move { write(&rows, calls).await }
    })
    .connectivity(&hub)
    .limit(&under_way)
    .classify(|error| match error {
        WriteError::Overloaded => Verdict::overloaded(Duration::from_millis(50)),
        WriteError::Malformed => Verdict::PERMANENT,
        WriteError::ConnectionLost => Verdict::Failed(FailureKind::Reset),
    })
    .await;

    for (place, record) in written.records.iter().enumerate() {
        match &record.result {
            Ok(answer) => print!("row {place}: {answer}"),
            Err(error) => print!("row {place}: {error} ({:?})", error.cause),
        }
        let doubt = if record.in_doubt {
            ", was once in doubt"
        } else {
            ""
        };
        println!(" after {} rounds{doubt}", record.rounds);
    }
}
