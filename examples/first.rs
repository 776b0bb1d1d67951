//! The first page of docs/rust.md, as it stands there. `cargo run --example first --features reqwest -- https://example.org/`

use std::time::Duration;

use comeback::{Connectivity, Executor, Reported, RetryPolicy, Retryable};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One for the process. Whoever knows the network tells it: hub.available(..), lost(..), or just restored(). Pending waits end when it is back.
    let hub = Connectivity::new();

    // HTTP over reqwest (feature `reqwest`). A POST goes again only with an idempotency key, or if nothing of it was sent.
    let executor = Executor::builder()
        .policy(RetryPolicy::read()) // an answer within 20 s
        .connectivity(hub.clone())
        .build()?;
    let url = std::env::args().nth(1);
    let url = url.as_deref().unwrap_or("https://example.org/");
    match executor.get(url).send().await {
        Ok(response) => println!("{} {:#?}", response.status(), response.retry_report()), // None: the first answer was it
        Err(error) => println!("{error} {:#?}", error.report()),
    }

    // Any future (feature `tokio`), by a policy of your own.
    let policy = RetryPolicy::builder()
        .max_attempts(6)
        .base(Duration::from_millis(200))
        .build()?;
    let connect = || tokio::net::TcpStream::connect("example.org:443");
    let call = connect
        .retry(&policy)
        .connectivity(&hub)
        .when(|error| error.kind() != std::io::ErrorKind::PermissionDenied)
        .notify(|event| println!("{event:?}"));
    match call.await {
        Ok(socket) => println!("{:?}", socket.peer_addr()),
        Err(error) => println!("{error}: {}", error.report()), // the error, why it stopped, what was tried
    }
    Ok(())
}
