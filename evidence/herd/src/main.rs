//! What many clients at once do to one server, simulated on the crate's own backoff, `decide` and `resume`: a table for people, one line
//! of JSON for programs, a picture if asked for. `cargo xtask herd` runs it.

#![forbid(unsafe_code)]

mod contention;
mod fleet;
mod picture;
mod random;

use anyhow::{Context, Result};
use contention::Row;
use fleet::{Fate, MODEL, Model};
use lexopt::{Arg, Parser, ValueExt};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Many clients fail together: what each way of waiting does to the server. A simulation; nothing is sent.

Usage: cargo xtask herd [options]

  --seed S     of the model's chance and of every client's waits (1)
  --svg FILE   draw it
  --json       print nothing but the JSON line, which is the last line of the output in any case
";

/// How many clients contend in the table; the picture and the JSON have all of them.
const PRINTED: [usize; 7] = [10, 40, 70, 100, 130, 160, 190];

/// Everything one seed gives.
#[derive(Serialize)]
pub(crate) struct Results {
    pub(crate) seed: u64,
    trials: u64,
    pub(crate) contention: Vec<Row>,
    pub(crate) model: Model,
    pub(crate) fleets: Vec<Fate>,
}

impl Results {
    fn of(seed: u64, trials: u64) -> Result<Results> {
        let contention = contention::table(seed, trials, (10..=190).step_by(10))?;
        let fleets = fleet::fleets()?;
        Ok(Results {
            seed,
            trials,
            contention,
            model: MODEL,
            fleets: fleets.iter().map(|fleet| fleet.run(&MODEL, seed)).collect(),
        })
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut seed, mut svg, mut json) = (1, None::<PathBuf>, false);
    let mut arguments = Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("seed") => seed = arguments.value()?.parse()?,
            Arg::Long("svg") => svg = Some(arguments.value()?.into()),
            Arg::Long("json") => json = true,
            Arg::Short('h') | Arg::Long("help") => {
                print!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let results = Results::of(seed, contention::TRIALS)?;
    if !json {
        print_tables(&results);
    }
    if let Some(file) = svg {
        std::fs::write(&file, picture::draw(&results))
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    println!("{}", serde_json::to_string(&results)?);
    Ok(())
}

fn print_tables(results: &Results) {
    println!(
        "Contention for one row (modelled): mean time until all are done / mean number of calls.\n\
         Base {} ms, cap {} ms, first window twice the base, a message takes |N({}, {})| ms, {} trials, seed {}.\n",
        contention::BASE.as_millis(),
        contention::CAP.as_millis(),
        contention::DELAY_MS,
        contention::DEVIATION_MS,
        results.trials,
        results.seed,
    );
    print!("{:>8}", "clients");
    for way in contention::WAYS {
        print!("{:>20}", way.name);
    }
    println!();
    for clients in PRINTED {
        print!("{clients:>8}");
        for row in results
            .contention
            .iter()
            .filter(|row| row.clients == clients)
        {
            print!(
                "{:>20}",
                format!("{:.0} ms / {:.0}", row.time_ms, row.calls)
            );
        }
        println!();
    }
    let model = &results.model;
    println!(
        "\nOne server after an outage (modelled): {} clients failed together {} s ago. It answers {} requests a second, refuses who would\n\
         wait longer than {} s; a refusal costs it {} µs, a round trip takes {} ms. The last two: the network was away, not the server.\n",
        model.clients,
        model.away_ms / 1_000,
        1_000_000 / model.service_us,
        model.queue_ms / 1_000,
        model.refusal_us,
        model.round_trip_ms,
    );
    println!(
        "{:<18}{:>14}{:>14}{:>16}{:>18}{:>12}",
        "", "half served", "all served", "peak a second", "requests/client", "refused"
    );
    for fate in &results.fleets {
        println!(
            "{:<18}{:>12.1} s{:>12.1} s{:>16.0}{:>18.1}{:>12}",
            fate.name,
            fate.half_served_ms / 1e3,
            fate.all_served_ms / 1e3,
            fate.peak_per_s,
            fate.requests_per_client,
            fate.refused,
        );
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_json_and_the_same_picture() -> Result<()> {
        let told = |seed| -> Result<(String, String)> {
            let results = Results::of(seed, 2)?;
            Ok((serde_json::to_string(&results)?, picture::draw(&results)))
        };
        let first = told(4)?;
        assert_eq!(first, told(4)?);
        assert_ne!(first, told(5)?);
        Ok(())
    }

    #[test]
    fn the_picture_has_a_line_for_every_way_and_a_lane_for_every_fleet() -> Result<()> {
        let results = Results::of(1, 2)?;
        let svg = picture::draw(&results);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for fate in &results.fleets {
            assert!(
                svg.contains(&format!(">{}</text>", fate.name)),
                "{}",
                fate.name
            );
        }
        assert_eq!(
            svg.matches("<polyline ").count(),
            2 * contention::WAYS.len()
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        Ok(())
    }
}
