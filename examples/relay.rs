//! A loop that never ends: a link that is made anew whenever it breaks, with a backoff that starts over after success.
//! `cargo run --features tokio --example relay`

use std::cell::Cell;
use std::time::Duration;

use comeback::{Backoff, Connectivity, Network, RetryPolicy, Scatter};

/// Fails twice, then makes a link.
async fn connect(tries: &Cell<u32>) -> Result<(), &'static str> {
    tries.set(tries.get() + 1);
    if tries.get() % 3 == 0 {
        Ok(())
    } else {
        Err("refused")
    }
}

async fn relay(hub: &Connectivity, tries: &Cell<u32>) -> Result<(), comeback::PolicyError> {
    let policy = RetryPolicy::builder()
        .base(Duration::from_millis(300))
        .build()?;
    let mut backoff = Backoff::new(&policy, hub);
    let mut refresh = Scatter::new(Duration::from_millis(200));
    let start = hub.now();
    loop {
        let at = hub.now().saturating_since(start);
        match connect(tries).await {
            Ok(()) => {
                println!("{at:>10.1?}  link up");
                // All clients of one server come back in the same second: what they fetch then, they fetch scattered.
                refresh.wait(hub).await;
                tokio::time::sleep(Duration::from_millis(400)).await; // it held: a link that broke at once would not count
                backoff.start_over();
                println!("{:>10.1?}  link broke", hub.now().saturating_since(start));
            }
            Err(error) => println!("{at:>10.1?}  {error}"),
        }
        let by = backoff.wait().await;
        println!(
            "{:>10.1?}  woken by {by:?}",
            hub.now().saturating_since(start)
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), comeback::PolicyError> {
    let hub = Connectivity::new();
    hub.available(Network::usable(1));
    let tries = Cell::new(0);
    let network = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        hub.available(Network::usable(2)); // a handover: whatever waits goes now
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    tokio::select! {
        never = relay(&hub, &tries) => never,
        () = network => Ok(()),
    }
}
