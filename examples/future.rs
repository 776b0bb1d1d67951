//! Any future: a look-up that fails twice, and a network that comes back. `cargo run --features tokio --example future`

use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::time::Duration;

use comeback::{Connectivity, Network, RetryPolicy, Retryable};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // One per process; a monitor of the platform tells it what it hears.
    let hub = Connectivity::new();
    hub.available(Network::usable(1));

    let policy = RetryPolicy::builder()
        .base(Duration::from_secs(4))
        .attempt_timeout(Duration::from_secs(2))
        .build()?;

    let made = Cell::new(0);
    let load = || {
        made.set(made.get() + 1);
        let number = made.get();
        async move {
            match number {
                1 => Err(Error::from(ErrorKind::ConnectionReset)),
                2 => Err(Error::from(ErrorKind::TimedOut)),
                _ => Ok(format!("loaded by attempt {number}")),
            }
        }
    };
    let call = load
        .retry(&policy)
        .connectivity(&hub)
        .when(|error| error.kind() != ErrorKind::PermissionDenied)
        .notify(|event| println!("call {}: {:?}", event.call_id, event.event))
        .label("load");

    // The train leaves the tunnel twice: each wait of up to 4 and 8 seconds ends then.
    let tunnel = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            hub.lost(1);
            hub.available(Network::usable(1));
        }
        std::future::pending::<()>().await
    };
    tokio::select! {
        text = call.into_future() => println!("{}", text?),
        () = tunnel => {}
    }
    Ok(())
}
