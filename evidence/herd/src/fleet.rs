//! Many clients fail together, and one server has to serve them all afterwards. Each client is a call of the crate's, driven through
//! `decide` and `resume`; the server, the network between and the clients' start are the model.
//!
//! The model: a request or an answer takes half a round trip. While the server is out, connections are refused. Otherwise it serves one
//! request after another; who would wait longer than the queue's length is answered 503 at once, which costs the server a little too. A
//! client whose call ends without an answer begins a new one at once, as a user would tap again.
//!
//! Mass wake: the server is well, but the network that all clients share is away, and every client's system knows. It comes back for all
//! of them in one instant.

use crate::random::Random;
use comeback::{
    Allowed, Call, Decision, FailureKind, Hub, Instant, Jitter, Method, Network, Outcome,
    PolicyError, RequestFacts, Resumed, RetryPolicy, Signals, Sleep, Snapshot, Waiting, decide,
    resume,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MILLISECOND;

/// What is modelled, printed with every result.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Model {
    pub(crate) clients: usize,
    /// How long the server, or the network, is away after all clients have failed.
    pub(crate) away_ms: i64,
    pub(crate) round_trip_ms: i64,
    /// One answer keeps the server for so long.
    pub(crate) service_us: i64,
    /// One refusal does.
    pub(crate) refusal_us: i64,
    /// Who would wait longer is refused.
    pub(crate) queue_ms: i64,
    /// Requests are counted per so long.
    pub(crate) bin_ms: i64,
}

pub(crate) const MODEL: Model = Model {
    clients: 1_000,
    away_ms: 20_000,
    round_trip_ms: 100,
    service_us: 10_000,
    refusal_us: 50,
    queue_ms: 1_000,
    bin_ms: 100,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Server,
    Network,
}

/// Clients that all have one policy.
pub(crate) struct Fleet {
    name: &'static str,
    away: Away,
    policy: RetryPolicy,
}

/// What became of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fate {
    pub(crate) name: &'static str,
    /// From the return until the last client has its answer.
    pub(crate) all_served_ms: f64,
    /// From the return until half of them have.
    pub(crate) half_served_ms: f64,
    /// What arrived at the server, refused connections included.
    pub(crate) requests: usize,
    pub(crate) requests_per_client: f64,
    /// Answered 503.
    pub(crate) refused: usize,
    /// Calls that ended without an answer, and were begun anew.
    pub(crate) begun_anew: usize,
    /// The busiest bin since the return, as requests per second.
    pub(crate) peak_per_s: f64,
    /// Requests in each bin, from the failure on.
    pub(crate) bins: Vec<u32>,
}

/// All fleets in the order of the table.
pub(crate) fn fleets() -> Result<Vec<Fleet>, PolicyError> {
    let builder = || {
        RetryPolicy::builder()
            .max_attempts(100)
            .max_elapsed(Duration::from_secs(3600))
    };
    let fixed = |wait: Duration| builder().jitter(Jitter::None).base(wait).cap(wait);
    let server = |name, policy| Fleet {
        name,
        away: Away::Server,
        policy,
    };
    let network = |name, policy| Fleet {
        name,
        away: Away::Network,
        policy,
    };
    Ok(vec![
        // The shortest wait there can be: a policy's base is 1 ms or more.
        server("none", fixed(Duration::from_millis(1)).build()?),
        server("fixed", fixed(Duration::from_secs(1)).build()?),
        server("exponential", builder().jitter(Jitter::None).build()?),
        server("equal", builder().jitter(Jitter::Equal).build()?),
        server("full", builder().jitter(Jitter::Full).build()?),
        server(
            "decorrelated",
            builder().jitter(Jitter::Decorrelated).build()?,
        ),
        network("wake, spread 0 s", builder().build()?),
        network(
            "wake, spread 2 s",
            builder().wake_spread(Duration::from_secs(2)).build()?,
        ),
    ])
}

impl Fleet {
    pub(crate) fn run(&self, model: &Model, seed: u64) -> Fate {
        Simulation::new(self, model, seed).run()
    }
}

/// What happens next to a client; ordered only to stand in a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// Its request arrives at the server.
    Arrival,
    Refused,
    Unreachable,
    Reset,
    Answer(u16),
    /// Its wait is over, or may be.
    Ask,
}

enum Client {
    InFlight { call: Call, noted: Snapshot },
    Asleep(Waiting),
    Served,
}

struct Simulation<'a> {
    fleet: &'a Fleet,
    model: &'a Model,
    random: Random,
    hub: Hub,
    clients: Vec<Client>,
    agenda: BinaryHeap<Reverse<(i64, u64, usize, Happening)>>,
    entries: u64,
    now: i64,
    server_free_at: i64,
    arrivals: Vec<i64>,
    refused: usize,
    begun_anew: usize,
    served_at: Vec<i64>,
}

impl<'a> Simulation<'a> {
    fn new(fleet: &'a Fleet, model: &'a Model, seed: u64) -> Simulation<'a> {
        let mut simulation = Simulation {
            fleet,
            model,
            random: Random::new(seed),
            hub: Hub::new(),
            clients: Vec::new(),
            agenda: BinaryHeap::new(),
            entries: 0,
            now: 0,
            server_free_at: 0,
            arrivals: Vec::new(),
            refused: 0,
            begun_anew: 0,
            served_at: Vec::new(),
        };
        if fleet.away == Away::Network {
            simulation
                .hub
                .available(Instant::from_nanos(-1), Network::usable(1));
        }
        for client in 0..model.clients {
            let call = simulation.begin();
            let noted = simulation.hub.snapshot();
            simulation.clients.push(Client::InFlight { call, noted });
            simulation.enter(0, client, Happening::Reset);
        }
        if fleet.away == Away::Network {
            simulation.hub.lost(Instant::from_nanos(0), 1);
        }
        simulation
    }

    fn run(mut self) -> Fate {
        let back_at = self.model.away_ms * MILLISECOND;
        let mut is_back = false;
        while let Some(Reverse((at, _, client, happening))) = self.agenda.pop() {
            if at >= back_at && !is_back {
                is_back = true;
                self.now = back_at;
                self.returned();
            }
            self.now = at;
            match happening {
                Happening::Arrival => self.arrives(client),
                Happening::Ask => self.ask(client),
                Happening::Refused => {
                    self.over(client, &Outcome::failure(FailureKind::ConnectRefused))
                }
                Happening::Unreachable => {
                    self.over(client, &Outcome::failure(FailureKind::ConnectUnreachable))
                }
                Happening::Reset => self.over(client, &Outcome::failure(FailureKind::Reset)),
                Happening::Answer(status) => self.over(client, &Outcome::response(status)),
            }
        }
        self.fate(back_at)
    }

    /// The shared network is back: every wait is asked about at once. An entry made before asks once more, which is harmless.
    fn returned(&mut self) {
        if self.fleet.away == Away::Network {
            self.hub
                .available(Instant::from_nanos(self.now), Network::usable(2));
            for client in 0..self.clients.len() {
                self.ask(client);
            }
        }
    }

    fn begin(&mut self) -> Call {
        let seed = self.random.word();
        let now = Instant::from_nanos(self.now);
        Call::begin(RequestFacts::new(Method::Get), seed, now, None)
    }

    fn send(&mut self, client: usize, call: Call) {
        let noted = self.hub.snapshot();
        self.clients[client] = Client::InFlight { call, noted };
        if noted.is_absent() {
            self.enter(self.now, client, Happening::Unreachable);
        } else {
            self.enter(self.now + self.one_way(), client, Happening::Arrival);
        }
    }

    fn arrives(&mut self, client: usize) {
        self.arrivals.push(self.now);
        let is_out = self.fleet.away == Away::Server && self.now < self.model.away_ms * MILLISECOND;
        if is_out {
            return self.enter(self.now + self.one_way(), client, Happening::Refused);
        }
        let free_at = self.server_free_at.max(self.now);
        if free_at - self.now > self.model.queue_ms * MILLISECOND {
            self.refused += 1;
            self.server_free_at = free_at + self.model.refusal_us * 1_000;
            self.enter(self.now + self.one_way(), client, Happening::Answer(503));
        } else {
            self.server_free_at = free_at + self.model.service_us * 1_000;
            self.enter(
                self.server_free_at + self.one_way(),
                client,
                Happening::Answer(200),
            );
        }
    }

    fn over(&mut self, client: usize, outcome: &Outcome<'_>) {
        let Client::InFlight { call, noted } =
            std::mem::replace(&mut self.clients[client], Client::Served)
        else {
            unreachable!("only what is in flight has an outcome")
        };
        let signals = self.signals();
        match decide(&self.fleet.policy, call, &noted, outcome, &signals).decision {
            Decision::Deliver => self.served_at.push(self.now),
            Decision::Stop(_) => self.begin_anew(client),
            Decision::Sleep(sleep) => self.sleep(client, sleep),
        }
    }

    fn ask(&mut self, client: usize) {
        let waiting = match std::mem::replace(&mut self.clients[client], Client::Served) {
            Client::Asleep(waiting) => waiting,
            other => {
                self.clients[client] = other;
                return;
            }
        };
        match resume(&self.fleet.policy, waiting, &self.signals()).decision {
            Resumed::Go(go) => self.send(client, go.call),
            Resumed::Sleep(sleep) => self.sleep(client, sleep),
            Resumed::Stop(_) => self.begin_anew(client),
        }
    }

    fn sleep(&mut self, client: usize, sleep: Sleep) {
        self.clients[client] = Client::Asleep(sleep.waiting);
        self.enter(sleep.ask_at.as_nanos(), client, Happening::Ask);
    }

    fn begin_anew(&mut self, client: usize) {
        self.begun_anew += 1;
        let call = self.begin();
        self.send(client, call);
    }

    fn signals(&self) -> Signals {
        Signals {
            now: Instant::from_nanos(self.now),
            network: self.hub.snapshot(),
            wall_ms: None,
            allowed: Allowed::ALL,
        }
    }

    fn enter(&mut self, at: i64, client: usize, happening: Happening) {
        self.entries += 1;
        self.agenda
            .push(Reverse((at, self.entries, client, happening)));
    }

    fn one_way(&self) -> i64 {
        self.model.round_trip_ms * MILLISECOND / 2
    }

    fn fate(self, back_at: i64) -> Fate {
        let bin = self.model.bin_ms * MILLISECOND;
        let last = self.served_at.last().copied().unwrap_or(back_at);
        let mut bins = vec![0u32; (last / bin) as usize + 1];
        for arrival in &self.arrivals {
            bins[(arrival / bin) as usize] += 1;
        }
        let since_return = &bins[(back_at / bin) as usize..];
        let peak = since_return.iter().copied().max().unwrap_or(0);
        let half = self.served_at[self.served_at.len() / 2];
        let since = |at: i64| (at - back_at) as f64 / MILLISECOND as f64;
        Fate {
            name: self.fleet.name,
            all_served_ms: since(last),
            half_served_ms: since(half),
            requests: self.arrivals.len(),
            requests_per_client: self.arrivals.len() as f64 / self.model.clients as f64,
            refused: self.refused,
            begun_anew: self.begun_anew,
            peak_per_s: f64::from(peak) * SECOND as f64 / bin as f64,
            bins,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64) -> Vec<Fate> {
        let fleets = fleets().unwrap_or_else(|error| unreachable!("{error}"));
        fleets.iter().map(|fleet| fleet.run(&MODEL, seed)).collect()
    }

    fn named<'a>(fates: &'a [Fate], name: &str) -> &'a Fate {
        let found = fates.iter().find(|fate| fate.name == name);
        found.unwrap_or_else(|| unreachable!("no fleet {name}"))
    }

    #[test]
    fn every_client_is_served_and_every_request_is_in_a_bin() {
        for fate in fates(1) {
            let in_bins: u32 = fate.bins.iter().sum();
            assert_eq!(in_bins as usize, fate.requests, "{}", fate.name);
            // Nothing serves a thousand in less than ten seconds.
            assert!(fate.all_served_ms > 9_900.0, "{fate:?}");
        }
    }

    #[test]
    fn jitter_spreads_the_return_and_no_jitter_keeps_the_herd_together() {
        let fates = fates(1);
        let peak = |name| named(&fates, name).peak_per_s;
        assert_eq!(peak("exponential"), 10_000.0, "all in one bin");
        assert!(peak("full") < 1_000.0, "{}", peak("full"));
        assert!(named(&fates, "full").all_served_ms < named(&fates, "exponential").all_served_ms);
        assert!(named(&fates, "full").requests * 10 < named(&fates, "none").requests);
    }

    #[test]
    fn an_edge_wakes_all_at_once_and_a_spread_keeps_them_apart() {
        let fates = fates(1);
        let at_return = (MODEL.away_ms / MODEL.bin_ms) as usize;
        let arrived = |name, bins: usize| -> u32 {
            named(&fates, name).bins[at_return..at_return + bins]
                .iter()
                .sum()
        };
        assert_eq!(arrived("wake, spread 0 s", 1), 1_000);
        // U[0, 2 s]: about fifty in each tenth of a second, and all within two seconds and half a round trip.
        assert!((20..90).contains(&arrived("wake, spread 2 s", 2)));
        assert!(arrived("wake, spread 2 s", 21) >= 1_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_fate_and_another_seed_another() {
        assert_eq!(fates(5), fates(5));
        assert_ne!(named(&fates(5), "full"), named(&fates(6), "full"));
    }
}
