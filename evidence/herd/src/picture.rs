//! The results as a picture: what contention costs for each number of clients, and the requests that each fleet sends to its server.
//! Self-contained and without scripts, on a card of its own; the same results give the same bytes.

use crate::Results;
use crate::contention::{Row, WAYS};
use crate::fleet::Fate;
use std::fmt::Write;

const WIDTH: f64 = 1000.0;
const SIDE: f64 = 28.0;
const LEFT: f64 = 190.0;
const CHART_TOP: f64 = 128.0;
const CHART: f64 = 170.0;
const LANES_TOP: f64 = 412.0;
const LANE: f64 = 46.0;
const LANE_GAP: f64 = 14.0;
/// What the lanes show; what takes longer says so in words.
const SHOWN_MS: f64 = 80_000.0;
/// The top of a lane, in requests a second; the scale is logarithmic.
const MOST: f64 = 10_000.0;

const CARD: &str = "#ffffff";
const EDGE: &str = "#d0d7de";
const PLOT: &str = "#f2f7f2";
const DEAD: &str = "#d3d6dc";
const INK: &str = "#1f2328";
const SOFT: &str = "#57606a";
const BLUE: &str = "#0969da";
const RED: &str = "#cf222e";
/// One for each way, in their order.
const COLOURS: [&str; 5] = ["#57606a", "#cf222e", "#8250df", "#1a7f37", "#0969da"];

pub(crate) fn draw(results: &Results) -> String {
    let height = LANES_TOP + results.fleets.len() as f64 * (LANE + LANE_GAP) + 30.0;
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-labelledby=\"title description\" font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\">"
    ));
    svg.line(format_args!(
        "<title id=\"title\">A herd at one server, by how its clients wait</title>"
    ));
    svg.line(format_args!(
        "<desc id=\"description\">{}</desc>",
        description(&results.fleets)
    ));
    svg.line(format_args!(
        "<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"12\" fill=\"{CARD}\" stroke=\"{EDGE}\"/>",
        WIDTH - 1.0,
        height - 1.0
    ));
    svg.bold(
        SIDE,
        44.0,
        22,
        "A herd at one server, by how its clients wait",
    );
    let subtitle = format!(
        "Modelled, seed {}. Above: 10 to 190 clients contend for one row (base 5 ms, cap 2 s). Below: {} clients, a server for {} requests a second.",
        results.seed,
        results.model.clients,
        1_000_000 / results.model.service_us
    );
    svg.text(SIDE, 69.0, 13, SOFT, &subtitle);
    legend(&mut svg);
    let half = (WIDTH - 3.0 * SIDE) / 2.0;
    let rows = &results.contention;
    chart(&mut svg, SIDE, half, "calls", rows, |row| row.calls);
    chart(
        &mut svg,
        2.0 * SIDE + half,
        half,
        "seconds until all are done",
        rows,
        |row| row.time_ms / 1e3,
    );
    let title = "requests a second at the server (logarithmic; line: what it can answer)";
    svg.bold(SIDE, LANES_TOP - 26.0, 15, title);
    for (index, fate) in results.fleets.iter().enumerate() {
        lane(
            &mut svg,
            LANES_TOP + index as f64 * (LANE + LANE_GAP),
            fate,
            results,
        );
    }
    axis(&mut svg, height - 22.0);
    svg.line(format_args!("</svg>"));
    svg.0
}

fn description(fleets: &[Fate]) -> String {
    let told: Vec<String> = fleets
        .iter()
        .map(|fate| {
            format!(
                "{}: all served {:.1} s after the return, peak {:.0} requests a second",
                fate.name,
                fate.all_served_ms / 1e3,
                fate.peak_per_s
            )
        })
        .collect();
    told.join("; ")
}

fn legend(svg: &mut Svg) {
    let mut x = SIDE;
    for (way, colour) in WAYS.iter().zip(COLOURS) {
        svg.line(format_args!(
            "<path d=\"M{x:.1} 94H{:.1}\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            x + 20.0
        ));
        svg.text(x + 26.0, 98.0, 12, SOFT, way.name);
        x += 26.0 + way.name.len() as f64 * 6.3 + 20.0;
    }
}

/// One line for each way over the number of clients. Exponential backoff without jitter leaves the chart: its figure is written instead.
fn chart(svg: &mut Svg, left: f64, width: f64, title: &str, rows: &[Row], value: fn(&Row) -> f64) {
    let jittered = rows.iter().filter(|row| row.backoff != "exponential");
    let most = jittered.map(value).fold(0.0, f64::max) * 1.05;
    let clients = rows.iter().map(|row| row.clients).max().unwrap_or(1) as f64;
    svg.bold(left, CHART_TOP - 4.0, 15, title);
    svg.rect(left, CHART_TOP + 6.0, width, CHART, PLOT);
    let base = CHART_TOP + 6.0 + CHART;
    for step in [0.25, 0.5, 0.75] {
        let y = base - step * CHART;
        svg.line(format_args!(
            "<path d=\"M{left:.1} {y:.1}H{:.1}\" stroke=\"{EDGE}\" stroke-width=\"0.8\"/>",
            left + width
        ));
        svg.text(
            left + 4.0,
            y - 3.0,
            11,
            SOFT,
            &format!("{:.0}", most * step),
        );
    }
    for (way, colour) in WAYS.iter().zip(COLOURS) {
        let mut points = String::new();
        for row in rows.iter().filter(|row| row.backoff == way.name) {
            let (x, y) = (row.clients as f64 / clients, value(row) / most);
            if y > 1.0 {
                let last = rows
                    .iter()
                    .rfind(|row| row.backoff == way.name)
                    .unwrap_or(row);
                let note = format!("{}: {:.0} at {clients} clients", way.name, value(last));
                svg.text(left + 44.0 + x * width, CHART_TOP + 22.0, 11, colour, &note);
                break;
            }
            let _ = write!(points, "{:.1},{:.1} ", left + x * width, base - y * CHART);
        }
        svg.line(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.trim_end()
        ));
    }
    for count in [50, 100, 150] {
        let x = left + count as f64 / clients * width;
        svg.centred(x, base + 15.0, &format!("{count} clients"));
    }
}

fn lane(svg: &mut Svg, top: f64, fate: &Fate, results: &Results) {
    let model = &results.model;
    let colour = if fate.name.starts_with("wake") {
        BLUE
    } else {
        INK
    };
    svg.line(format_args!(
        "<text x=\"{SIDE}\" y=\"{:.1}\" font-size=\"15\" font-weight=\"700\" fill=\"{colour}\">{}</text>",
        top + 16.0,
        fate.name
    ));
    let figures = format!("all served +{:.1} s", fate.all_served_ms / 1e3);
    svg.text(SIDE, top + 32.0, 12, SOFT, &figures);
    let figures = format!(
        "peak {:.0}, {:.1} each",
        fate.peak_per_s, fate.requests_per_client
    );
    svg.text(SIDE, top + 46.0, 12, SOFT, &figures);
    svg.rect(LEFT, top, WIDTH - SIDE - LEFT, LANE, PLOT);
    let away = x_of(model.away_ms as f64) - LEFT;
    svg.rect(LEFT, top, away, LANE, DEAD);
    let mut path = String::new();
    for (index, count) in fate.bins.iter().enumerate() {
        let from = index as f64 * model.bin_ms as f64;
        if from >= SHOWN_MS || *count == 0 {
            continue;
        }
        let per_second = f64::from(*count) * 1e3 / model.bin_ms as f64;
        let (x, height) = (
            x_of(from + model.bin_ms as f64 / 2.0),
            height_of(per_second),
        );
        let _ = write!(path, "M{x:.1} {:.1}v-{height:.1}", top + LANE);
    }
    svg.line(format_args!(
        "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"1\" fill=\"none\"/>"
    ));
    let capacity = top + LANE - height_of(1e6 / model.service_us as f64);
    svg.line(format_args!(
        "<path d=\"M{LEFT} {capacity:.1}H{:.1}\" stroke=\"{RED}\" stroke-width=\"0.8\"/>",
        WIDTH - SIDE
    ));
    let all_served = x_of(model.away_ms as f64 + fate.all_served_ms);
    if all_served <= WIDTH - SIDE {
        svg.line(format_args!(
            "<path d=\"M{all_served:.1} {top:.1}v{LANE}\" stroke=\"#1a7f37\" stroke-width=\"2\"/>"
        ));
    }
}

fn axis(svg: &mut Svg, y: f64) {
    for second in (0..=(SHOWN_MS / 1e3) as u32).step_by(10) {
        let label = if second == 0 {
            "0 s".to_owned()
        } else {
            second.to_string()
        };
        svg.centred(x_of(f64::from(second) * 1e3), y, &label);
    }
}

fn x_of(millis: f64) -> f64 {
    LEFT + millis / SHOWN_MS * (WIDTH - SIDE - LEFT)
}

fn height_of(per_second: f64) -> f64 {
    ((1.0 + per_second).log10() / (1.0 + MOST).log10()).min(1.0) * LANE
}

struct Svg(String);

impl Svg {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}"); // a string takes everything
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, colour: &str) {
        self.line(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    fn text(&mut self, x: f64, y: f64, size: u32, colour: &str, content: &str) {
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\">{content}</text>"
        ));
    }

    fn bold(&mut self, x: f64, y: f64, size: u32, content: &str) {
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"700\" fill=\"{INK}\">{content}</text>"
        ));
    }

    fn centred(&mut self, x: f64, y: f64, content: &str) {
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"12\" fill=\"{SOFT}\" text-anchor=\"middle\">{content}</text>"
        ));
    }
}
