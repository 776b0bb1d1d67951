//! A GET that goes again while it fails, and at once when the network is back.
//!
//!     cargo run --example get --features reqwest -- https://example.org/ [seconds]
//!
//! With a number of seconds, `hub.restored()` is called after them, as an app's network monitor would: a wait that is pending then ends.

use std::time::Duration;

use comeback::{Connectivity, Executor, Reported, RetryEvent, RetryPolicy};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .unwrap_or("https://example.org/".to_owned());
    let back_after = match arguments.next().map(|text| text.parse()) {
        Some(Err(_)) => return Err("the second argument is a whole number of seconds".into()),
        Some(Ok(seconds)) => Some(seconds),
        None => None,
    };

    let hub = Connectivity::new();
    let executor = Executor::builder()
        .policy(RetryPolicy::read())
        .connectivity(hub.clone())
        .listener(|heard: &RetryEvent<'_>| println!("call {}: {:?}", heard.call_id, heard.event))
        .build()?;

    if let Some(seconds) = back_after {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            hub.restored();
        });
    }
    let response = match executor.get(url).send().await {
        Ok(response) => response,
        Err(error) => {
            eprintln!("{error}\n{:#?}", error.report());
            std::process::exit(1);
        }
    };
    println!("{}, {:?}", response.status(), response.version());
    match response.retry_report() {
        None => println!("the first answer was the answer"),
        Some(report) => println!("{report:#?}"),
    }
    Ok(())
}
