//! The one place that builds every HTTP client.
//!
//! rustls with ring and the bundled roots of Mozilla: the platform's verifier needs a JVM on Android and panics without one. reqwest's own
//! retries are off; what hyper takes back unsent from a pooled connection that was just closed it puts on another one by itself, which the server
//! cannot see. A client's pool cannot be emptied; so once the network's path has grown there is a fresh client, and the old one goes
//! when its last request does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::{Client, ClientBuilder};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::super::listener::contained;
use super::witness::{Connected, listen};

pub(super) type Settings = dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync;

/// A client and whether it ever had a connection.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) client: Client,
    pub(super) connected: Arc<Connected>,
}

/// The clients of one executor: the current one, for the current path.
pub(super) struct Clients {
    tls: ClientConfig,
    settings: Option<Box<Settings>>,
    current: Mutex<Current>,
}

struct Current {
    path: u64,
    lease: Lease,
}

impl Clients {
    pub(super) fn new(
        tls: ClientConfig,
        settings: Option<Box<Settings>>,
        path: u64,
    ) -> Result<Clients, reqwest::Error> {
        let lease = build(&tls, settings.as_deref())?;
        Ok(Clients {
            tls,
            settings,
            current: Mutex::new(Current { path, lease }),
        })
    }

    /// The client there is.
    pub(super) fn current(&self) -> Client {
        self.lock().lease.client.clone()
    }

    /// The client for an attempt on this path. An attempt that noted an older path takes the newest client all the same.
    pub(super) fn on_path(&self, path: u64) -> Lease {
        {
            let current = self.lock();
            if path <= current.path {
                return current.lease.clone();
            }
        }
        // Without the lock: the settings are the app's own code, which may well use this executor.
        let fresh = contained(|| build(&self.tls, self.settings.as_deref()));
        let mut current = self.lock();
        if path > current.path {
            // Settings that fail now did not fail before; a client with old connections is better than none.
            if let Ok(Ok(lease)) = fresh {
                *current = Current { path, lease };
            }
        }
        current.lease.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn build(tls: &ClientConfig, settings: Option<&Settings>) -> Result<Lease, reqwest::Error> {
    let builder = Client::builder().tls_backend_preconfigured(tls.clone());
    let builder = match settings {
        Some(settings) => settings(builder),
        None => builder,
    };
    let connected = Arc::default();
    // After the app's settings: what we need to hear is not up to them.
    let client = listen(builder, &connected).build()?;
    Ok(Lease { client, connected })
}

/// What a TLS client trusts unless it is told otherwise: Mozilla's roots, and these.
pub(super) fn default_tls(
    authorities: &[CertificateDer<'static>],
) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{OnceLock, Weak, mpsc};
    use std::time::Duration;

    #[test]
    fn settings_may_use_the_clients_they_are_made_for() {
        let own: Arc<OnceLock<Weak<Clients>>> = Arc::default();
        let seen = own.clone();
        let settings: Box<Settings> = Box::new(move |builder| {
            if let Some(clients) = seen.get().and_then(Weak::upgrade) {
                let _ = clients.current();
            }
            builder
        });
        let tls = default_tls(&[]).unwrap();
        let clients = Arc::new(Clients::new(tls, Some(settings), 0).unwrap());
        own.set(Arc::downgrade(&clients)).unwrap();
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            clients.on_path(1);
            done.send(()).unwrap();
        });
        let waited = is_done.recv_timeout(Duration::from_secs(30));
        assert_eq!(waited, Ok(()), "it waits for its own lock");
    }
}
