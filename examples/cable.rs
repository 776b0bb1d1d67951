//! Pull the cable, plug it in again, and see the wait end: `cargo run --example cable --features netwatch -- example.org:443`.

use std::time::Duration;

use comeback::{Connectivity, NetworkMonitor, Offline, RetryPolicy, Retryable, Verdict};
use tokio::net::TcpStream;
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("example.org:443");
    let hub = Connectivity::new();
    let _monitor = NetworkMonitor::start(&hub).await?;
    // Waits of a minute, so that what ends them early is seen.
    let minute = Duration::from_secs(60);
    let policy = RetryPolicy::builder()
        .base(minute)
        .cap(minute)
        .max_attempts(100)
        .max_elapsed(60 * minute)
        .attempt_timeout(Duration::from_secs(5))
        .offline(Offline::Park)
        .offline_probe(None)
        .build()?;
    println!(
        "{:?}. Pull the cable, or turn Wi-Fi off, and on again.",
        hub.snapshot().state
    );
    loop {
        let connect = || TcpStream::connect(address);
        let call = connect
            .retry(&policy)
            .connectivity(&hub)
            .classify(Verdict::of_io)
            .notify(|event| println!("{:?}", event.event));
        match call.await {
            Ok(socket) => println!("connected to {:?}", socket.peer_addr()?),
            Err(error) => println!("{error}"),
        }
        sleep(Duration::from_secs(2)).await;
    }
}
