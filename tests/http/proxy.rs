//! A proxy that refuses to open a tunnel: it has answered, and will answer the next attempt the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comeback::{Executor, FailureKind, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{soon, with};

/// Answers every CONNECT with this status, or closes the connection instead; and counts them.
async fn proxy(status: Option<&'static str>) -> (Executor, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(connection.read_u8().await.unwrap());
            }
            assert!(head.starts_with(b"CONNECT "), "{head:?}");
            counted.fetch_add(1, Ordering::SeqCst);
            if let Some(status) = status {
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                connection.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let executor = with(soon(), |builder| {
        builder.client(move |client| client.proxy(reqwest::Proxy::all(&address).unwrap()))
    });
    (executor, asked)
}

#[tokio::test]
async fn a_proxys_refusal_is_permanent() {
    for status in [
        "407 Proxy Authentication Required",
        "403 Forbidden",
        "405 Method Not Allowed",
    ] {
        let (executor, asked) = proxy(Some(status)).await;
        let request = executor.get("https://origin.invalid/");
        let error = request.send().await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::Permanent), "{status}");
        assert_eq!(error.kind(), Some(FailureKind::Protocol), "{status}");
        assert!(!error.report().may_have_arrived(), "{status}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{status}");
    }
}

#[tokio::test]
async fn a_proxy_that_closes_instead_of_answering_is_asked_again() {
    let (executor, asked) = proxy(None).await;
    let request = executor.get("https://origin.invalid/");
    let error = request.send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Attempts), "{error:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 4);
}
