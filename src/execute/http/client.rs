//! The one place that builds every HTTP client, and says which attempt gets which.
//!
//! rustls with ring and the bundled roots of Mozilla: the platform's verifier needs a JVM on Android and panics without one. reqwest's own retries are
//! off. If a pooled connection was just closed, hyper takes the unsent request back and puts it on another connection; the server cannot see this.
//!
//! A client's pool cannot be emptied. So a request that must not begin on a connection of the pool gets another client; the old client goes with its last
//! request. This concerns all requests after the network's path has grown, and an origin's requests after one of them ended by time: its
//! connections are suspect then, because they may be dead without a sign. All origins that never were suspect share one client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::{Client, ClientBuilder, Url};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::super::listener::contained;
use super::observer::{Connected, listen};

pub(super) type Settings = dyn Fn(ClientBuilder) -> ClientBuilder + Send + Sync;

/// The most origins with a client of their own. With one more, all begin anew on a fresh client that they share.
const MOST_SUSPECTS: usize = 64;

/// A client, and whether it ever had a connection.
#[derive(Clone)]
struct Built {
    client: Client,
    connected: Arc<Connected>,
}

/// What an attempt goes out by.
pub(super) struct Lease {
    pub(super) client: Client,
    pub(super) connected: Arc<Connected>,
    generation: u64,
}

/// The clients of one executor.
pub(super) struct Clients {
    tls: ClientConfig,
    settings: Option<Box<Settings>>,
    current: Mutex<Current>,
}

struct Current {
    path: u64,
    /// Of the origins that are not in `own`.
    shared: Pool,
    /// Of the origins that have been suspect since `shared` was made.
    own: HashMap<String, Pool>,
    /// The newest client, for what needs any.
    newest: Client,
    generations: u64,
}

/// The connections that attempts may begin on.
struct Pool {
    /// Its number: no other pool had it before.
    generation: u64,
    /// Built when an attempt needs it.
    built: Option<Built>,
}

/// A client that is to be built.
enum Missing {
    OnPath,
    Shared { generation: u64 },
    Own { origin: String, generation: u64 },
}

impl Clients {
    pub(super) fn new(
        tls: ClientConfig,
        settings: Option<Box<Settings>>,
        path: u64,
    ) -> Result<Clients, reqwest::Error> {
        let built = build(&tls, settings.as_deref())?;
        Ok(Clients {
            tls,
            settings,
            current: Mutex::new(Current {
                path,
                newest: built.client.clone(),
                shared: Pool {
                    generation: 0,
                    built: Some(built),
                },
                own: HashMap::new(),
                generations: 0,
            }),
        })
    }

    /// A client that there is, to build requests with.
    pub(super) fn any(&self) -> Client {
        self.lock().newest.clone()
    }

    /// The client for an attempt to this address, on this path. An attempt that noted an older path takes the newest client all the same.
    pub(super) fn lease(&self, path: u64, url: &Url) -> Lease {
        let missing = match self.lock().find(path, url) {
            Ok(lease) => return lease,
            Err(missing) => missing,
        };
        // Without the lock: the settings are the app's own code, which may use this executor.
        let fresh = contained(|| build(&self.tls, self.settings.as_deref()));
        let mut current = self.lock();
        match fresh {
            Ok(Ok(built)) => current.put(path, missing, built),
            // Settings that fail now did not fail before; a client with old connections is better than none.
            _ => {
                let connected = Arc::new(Connected::since_ever());
                return Lease {
                    client: current.newest.clone(),
                    connected,
                    generation: u64::MAX,
                };
            }
        }
        drop(current);
        self.lease(path, url)
    }

    /// An attempt to this address ended by time: no later attempt begins on a connection that it may have been on. This happens once for all attempts of one
    /// generation. If a redirect was followed, nobody knows which origin's connection it was, and the whole pool is suspect.
    pub(super) fn suspect(&self, lease: &Lease, url: &Url, was_redirected: bool) {
        if !lease.connected.ever() {
            return; // there is no connection
        }
        let origin = origin(url);
        let mut current = self.lock();
        match current.own.get(&origin) {
            Some(pool) if pool.generation == lease.generation => {}
            None if current.shared.generation == lease.generation => {}
            _ => return,
        }
        let is_shared = !current.own.contains_key(&origin);
        let fresh = current.fresh();
        if is_shared && (was_redirected || current.own.len() >= MOST_SUSPECTS) {
            current.shared = fresh;
            current.own.clear(); // all of them may begin on the new one
        } else {
            current.own.insert(origin, fresh);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn find(&self, path: u64, url: &Url) -> Result<Lease, Missing> {
        if path > self.path {
            return Err(Missing::OnPath);
        }
        let leased = |pool: &Pool| {
            let built = pool.built.as_ref()?;
            Some(Lease {
                client: built.client.clone(),
                connected: built.connected.clone(),
                generation: pool.generation,
            })
        };
        if !self.own.is_empty() {
            let origin = origin(url);
            if let Some(pool) = self.own.get(&origin) {
                let generation = pool.generation;
                return leased(pool).ok_or(Missing::Own { origin, generation });
            }
        }
        let generation = self.shared.generation;
        leased(&self.shared).ok_or(Missing::Shared { generation })
    }

    /// Another attempt may have been faster, or the pool suspect again.
    fn put(&mut self, path: u64, missing: Missing, built: Built) {
        let pool = match missing {
            Missing::OnPath if path > self.path => {
                self.path = path;
                self.own.clear();
                self.shared = self.fresh();
                &mut self.shared
            }
            Missing::OnPath => return,
            Missing::Shared { generation } if self.shared.generation == generation => {
                &mut self.shared
            }
            Missing::Shared { .. } => return,
            Missing::Own { origin, generation } => match self.own.get_mut(&origin) {
                Some(pool) if pool.generation == generation => pool,
                _ => return,
            },
        };
        if pool.built.is_none() {
            self.newest = built.client.clone();
            pool.built = Some(built);
        }
    }

    fn fresh(&mut self) -> Pool {
        self.generations += 1;
        Pool {
            generation: self.generations,
            built: None,
        }
    }
}

/// Scheme, host and port.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn build(tls: &ClientConfig, settings: Option<&Settings>) -> Result<Built, reqwest::Error> {
    let builder = Client::builder().tls_backend_preconfigured(tls.clone());
    let builder = match settings {
        Some(settings) => settings(builder),
        None => builder,
    };
    let connected = Arc::default();
    // After the app's settings: what we need to hear is not up to them.
    let client = listen(builder, &connected).build()?;
    Ok(Built { client, connected })
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
                let _ = clients.any();
            }
            builder
        });
        let tls = default_tls(&[]).unwrap();
        let clients = Arc::new(Clients::new(tls, Some(settings), 0).unwrap());
        own.set(Arc::downgrade(&clients)).unwrap();
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            clients.lease(1, &"http://localhost/".parse().unwrap());
            done.send(()).unwrap();
        });
        let waited = is_done.recv_timeout(Duration::from_secs(30));
        assert_eq!(waited, Ok(()), "it waits for its own lock");
    }
}
