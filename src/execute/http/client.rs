//! The one place that builds every HTTP client.
//!
//! rustls with ring and the bundled roots of Mozilla: the platform's verifier needs a JVM on Android and panics without one. reqwest's own
//! retries are off; what hyper takes back unsent from a pooled connection that was just closed it puts on another one by itself, which the server
//! cannot see. A client's pool cannot be emptied; so once the network's path has grown there is a fresh client, and the old one goes
//! when its last request does.

use std::sync::{Arc, Mutex, PoisonError};

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
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.lease.client.clone()
    }

    /// The client for an attempt on this path. An attempt that noted an older path takes the newest client all the same.
    pub(super) fn on_path(&self, path: u64) -> Lease {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if path > current.path {
            // Settings that fail now did not fail before; a client with old connections is better than none.
            let fresh = contained(|| build(&self.tls, self.settings.as_deref()));
            if let Ok(Ok(lease)) = fresh {
                *current = Current { path, lease };
            }
        }
        current.lease.clone()
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
