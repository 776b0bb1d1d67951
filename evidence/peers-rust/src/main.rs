//! The same failing server before four ways to retry in Rust: `cargo xtask peers-rust` prints what it saw as a Markdown page.
//!
//! Every number is the server's count or a clock's reading of this run; nothing is written down beforehand.

#[path = "../../../tests/http/authority.rs"]
#[allow(dead_code)] // nobody here trusts it
mod authority;
mod peers;
#[path = "../../../tests/http/server.rs"]
#[allow(dead_code)] // the tests need more of it
mod server;

use std::time::{Duration, Instant};

use authority::Authority;
use comeback::Connectivity;
use peers::{Peer, Setting};
use reqwest::Method;
use server::{Act, Server};

/// What happens to one request.
struct Scenario {
    name: &'static str,
    what: &'static str,
    method: Method,
    setting: Setting,
    script: Vec<Act>,
    world: World,
    question: Question,
}

#[derive(Clone, Copy, PartialEq)]
enum World {
    Plain,
    /// The server's certificate is of an authority that the client does not know.
    WrongAuthority,
    /// Connections are refused until this long after the beginning; then the device hears that the network is back.
    BackAfter(Duration),
}

/// What the run is to tell.
enum Question {
    /// Was it tried again, as often as allowed?
    Served,
    /// Was no request made sooner than the server asked?
    Waited(Duration),
    /// Was it sent this often at most?
    Sent(usize),
    /// Did no request start later?
    StartedBefore(Duration),
    /// Was the call over by then?
    OverBefore(Duration),
}

/// One run as the server and the clock saw it.
struct Seen {
    sends: usize,
    connections: usize,
    elapsed: Duration,
    answer: String,
    /// When each request came, since the beginning.
    starts: Vec<Duration>,
}

fn scenarios() -> Vec<Scenario> {
    let second = Duration::from_secs(1);
    let ms = Duration::from_millis;
    let usual = Setting {
        attempts: 4,
        base: ms(200),
        cap: 2 * second,
        elapsed: 4 * second,
    };
    let always = |act: Act| vec![act; 20];
    let plain = |name, what, method, script, question| Scenario {
        name,
        what,
        method,
        setting: usual,
        script,
        world: World::Plain,
        question,
    };
    vec![
        plain(
            "GET, 503 twice",
            "served",
            Method::GET,
            vec![Act::status(503), Act::status(503)],
            Question::Served,
        ),
        plain(
            "GET, 503 with `Retry-After: 2`",
            "not sooner than asked",
            Method::GET,
            vec![Act::retry_after(503, "2")],
            Question::Waited(2 * second),
        ),
        plain(
            "GET, 503 with `Retry-After: 3600`",
            "neither sooner nor for an hour",
            Method::GET,
            always(Act::retry_after(503, "3600")),
            Question::Sent(1),
        ),
        plain(
            "POST without a key, 503",
            "sent once",
            Method::POST,
            always(Act::status(503)),
            Question::Sent(1),
        ),
        plain(
            "POST without a key, connection reset after its head",
            "sent once",
            Method::POST,
            always(Act::ResetAfterHead),
            Question::Sent(1),
        ),
        Scenario {
            setting: Setting {
                attempts: 10,
                ..usual
            },
            ..plain(
                "GET, 503 after 1.5 s each time; 10 attempts, 4 s",
                "no start after 4 s",
                Method::GET,
                always(Act::SlowStatus(ms(1_500), 503)),
                Question::StartedBefore(4 * second),
            )
        },
        Scenario {
            world: World::WrongAuthority,
            ..plain(
                "GET, the wrong certificate authority",
                "tried once",
                Method::GET,
                vec![],
                Question::Sent(1),
            )
        },
        Scenario {
            world: World::BackAfter(ms(300)),
            setting: Setting {
                attempts: 4,
                base: 4 * second,
                cap: 4 * second,
                elapsed: 20 * second,
            },
            ..plain(
                "GET, refused; after 0.3 s the network is back and the device says so; waits of 4 s",
                "answered within 0.5 s",
                Method::GET,
                vec![],
                Question::OverBefore(ms(500)),
            )
        },
    ]
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    println!("# Retrying HTTP in Rust, side by side\n");
    println!(
        "The same failing server before each, in one run of `cargo xtask peers-rust`, which writes this page: {}. Each is set up as its \
         documentation's first example does (backon with a `when` for transient errors, tower with the policy it leaves to the app), on \
         the same budget: unless a row says otherwise 4 attempts, waits of 200 ms doubling up to 2 s, full jitter where it has it, 4 s in \
         all where it knows such a cap. Requests are counted at the server; where none can arrive, connections are. ✓ and ✗ say whether \
         what is right was kept. Waits are drawn, so times differ from run to run.\n",
        Peer::ALL.map(Peer::version).join(", ")
    );
    println!(
        "What a peer does not do by itself it can often be told to, with code of the app's own: backon's `adjust` can read a \
         `Retry-After`, `when` and tower's `Policy` can look at the method, reqwest-retry takes another strategy. None of them hears of the \
         network.\n"
    );
    println!(
        "| what happens | right is | {} |",
        Peer::ALL.map(Peer::name).join(" | ")
    );
    println!("| --- | --- |{}", " --- |".repeat(Peer::ALL.len()));
    for scenario in scenarios() {
        let mut cells = Vec::new();
        for peer in Peer::ALL {
            let seen = run(peer, &scenario).await;
            let mark = if is_right(&scenario, &seen) {
                "✓"
            } else {
                "✗"
            };
            cells.push(format!(
                "{mark} {} sent, {:.1} s, {}",
                seen.sends,
                seen.elapsed.as_secs_f64(),
                seen.answer
            ));
        }
        println!(
            "| {} | {} | {} |",
            scenario.name,
            scenario.what,
            cells.join(" | ")
        );
    }
}

async fn run(peer: Peer, scenario: &Scenario) -> Seen {
    let authority = Authority::new();
    let script = scenario.script.clone();
    let mut server = match scenario.world {
        World::WrongAuthority => Server::start_tls(script, authority.server("127.0.0.1")).await,
        World::Plain | World::BackAfter(_) => Server::start(script).await,
    };
    let hub = Connectivity::new().with_loopback();
    let url = server.url("/");
    let began = Instant::now();
    let answer = match scenario.world {
        World::Plain | World::WrongAuthority => {
            peer.call(scenario.setting, scenario.method.clone(), &url, &hub)
                .await
        }
        World::BackAfter(after) => {
            server.close().await;
            let call = peer.call(scenario.setting, scenario.method.clone(), &url, &hub);
            let back = async {
                tokio::time::sleep(after).await;
                server.open();
                hub.restored();
            };
            tokio::join!(call, back).0
        }
    };
    let heard = server.heard();
    Seen {
        sends: match scenario.world {
            World::WrongAuthority => server.connections(),
            World::Plain | World::BackAfter(_) => heard.len(),
        },
        connections: server.connections(),
        elapsed: began.elapsed(),
        answer,
        starts: heard.iter().map(|one| one.at - began).collect(),
    }
}

fn is_right(scenario: &Scenario, seen: &Seen) -> bool {
    match scenario.question {
        Question::Served => seen.answer == "200",
        Question::Waited(asked) => {
            let mut pairs = seen.starts.windows(2);
            seen.answer == "200" && pairs.all(|pair| pair[1] - pair[0] >= asked)
        }
        Question::Sent(times) => seen.sends <= times && seen.connections <= times,
        Question::StartedBefore(end) => seen.starts.iter().all(|start| *start <= end),
        Question::OverBefore(end) => seen.answer == "200" && seen.elapsed <= end,
    }
}
