//! Line plots as SVG text that follows the light or dark mode of the reader.
//!
//! Each line is named in a legend above the plot. Colours are distinguishable for colour-blind
//! readers, and lines of the same style differ by their markers. The module supports the figures
//! of this repository and nothing else.

use std::fmt::{self, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 24.0;
const PLOT_HEIGHT: f64 = 330.0;
const BELOW: f64 = 58.0;
const LEGEND_TOP: f64 = 62.0;
const LEGEND_LINE: f64 = 22.0;
const LEGEND_COLUMNS: usize = 3;

/// Colours of lines for the light and the dark mode: `class, light, dark`.
const COLOURS: [(&str, &str, &str); 8] = [
    ("c0", "#c2410c", "#fb923c"),
    ("c1", "#1d4ed8", "#7aa2ff"),
    ("c2", "#047857", "#34d399"),
    ("c3", "#7e22ce", "#c792ea"),
    ("c4", "#b45309", "#facc15"),
    ("c5", "#0e7490", "#67e8f9"),
    ("c6", "#be185d", "#f47fb5"),
    ("c7", "#475569", "#a8b3c2"),
];

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stroke {
    /// Measured values: a line with a marker at each point.
    Measured,
    /// Measured values of the main line of the figure.
    Main,
    /// Comparison: dashes without markers.
    Dashed,
}

/// Scale of the y axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    Linear,
    /// Powers of ten; points must be positive.
    Logarithmic,
    /// From 0 to 100 %.
    Share,
}

/// One line.
#[derive(Debug, Clone)]
struct Series {
    name: String,
    stroke: Stroke,
    colour: usize,
    points: Vec<(f64, f64)>,
}

/// A figure.
#[derive(Debug, Clone)]
pub struct Plot {
    title: String,
    subtitle: String,
    x_label: String,
    y_label: String,
    /// Begin of the x axis.
    x_min: f64,
    /// Labels at 0, 1, ... of the x axis instead of numbers.
    x_names: Vec<String>,
    scale: Scale,
    series: Vec<Series>,
}

impl Plot {
    /// A figure without lines.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>, scale: Scale) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            x_label: String::new(),
            y_label: String::new(),
            x_min: 0.0,
            x_names: Vec::new(),
            scale,
            series: Vec::new(),
        }
    }

    /// Sets the labels of the axes.
    #[must_use]
    pub fn axes(mut self, x_label: &str, y_label: &str) -> Self {
        (self.x_label, self.y_label) = (x_label.to_owned(), y_label.to_owned());
        self
    }

    /// Sets the begin of the x axis; 0 by default.
    #[must_use]
    pub fn x_from(mut self, x_min: f64) -> Self {
        self.x_min = x_min;
        self
    }

    /// Sets the labels at 0, 1, ... of the x axis, which are then its only labels.
    #[must_use]
    pub fn x_names(mut self, names: Vec<String>) -> Self {
        self.x_names = names;
        self
    }

    /// Adds the main line, of measured points in the order of x.
    #[must_use]
    pub fn main_line(self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let colour = self.series.len();
        self.with(name, Stroke::Main, colour, points)
    }

    /// Adds a line of measured points.
    #[must_use]
    pub fn line(self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let colour = self.series.len();
        self.with(name, Stroke::Measured, colour, points)
    }

    /// Number of lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.series.len()
    }

    /// Adds a dashed line for comparison with line `of`, in its colour.
    #[must_use]
    pub fn dashed(self, name: &str, of: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, Stroke::Dashed, of, points)
    }

    /// Writes the figure to `NAME.svg` in `folder`, which is created if necessary; returns the
    /// path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, self.to_string())?;
        Ok(path)
    }

    fn with(mut self, name: &str, stroke: Stroke, colour: usize, points: Vec<(f64, f64)>) -> Self {
        self.series.push(Series { name: name.to_owned(), stroke, colour, points });
        self
    }

    fn top(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
        let lines = self.series.len().div_ceil(LEGEND_COLUMNS) as f64;
        LEGEND_TOP + lines * LEGEND_LINE + 12.0
    }

    #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
    fn write_legend(&self, svg: &mut Formatter) -> fmt::Result {
        let width = (WIDTH - 48.0) / LEGEND_COLUMNS as f64;
        for (index, series) in self.series.iter().enumerate() {
            let x = 24.0 + (index % LEGEND_COLUMNS) as f64 * width;
            let y = LEGEND_TOP + (index / LEGEND_COLUMNS) as f64 * LEGEND_LINE + 10.0;
            write_line(svg, series.stroke, class(series.colour), &[(x, y), (x + 26.0, y)])?;
            if series.stroke != Stroke::Dashed {
                marker(svg, class(series.colour), (x + 13.0, y))?;
            }
            text(svg, "name", (x + 34.0, y + 4.5), "start", &series.name)?;
        }
        Ok(())
    }
}

/// The figure as SVG.
impl fmt::Display for Plot {
    fn fmt(&self, svg: &mut Formatter) -> fmt::Result {
        let height = self.top() + PLOT_HEIGHT + BELOW;
        writeln!(
            svg,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif">"#
        )?;
        writeln!(svg, "<title>{}</title>", escaped(&self.title))?;
        write_style(svg)?;
        writeln!(svg, r#"<rect class="card" width="{WIDTH}" height="{height}" rx="10"/>"#)?;
        text(svg, "title", (24.0, 32.0), "start", &self.title)?;
        text(svg, "soft", (24.0, 51.0), "start", &self.subtitle)?;
        self.write_legend(svg)?;
        let frame = Frame::new(self);
        frame.write_axes(svg, self)?;
        // The first line is drawn last, on top of the others.
        for series in self.series.iter().rev() {
            frame.write_series(svg, series, class(series.colour))?;
        }
        writeln!(svg, "</svg>")
    }
}

/// Mapping of values to positions on the page.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
    scale: Scale,
    top: f64,
}

impl Frame {
    fn new(plot: &Plot) -> Self {
        let points = || plot.series.iter().flat_map(|series| &series.points);
        let x_max = points().map(|&(x, _)| x).fold(plot.x_min, f64::max);
        // A single point is at the left end.
        let x_max = if x_max > plot.x_min { x_max } else { plot.x_min + 1.0 };
        let largest = points().map(|&(_, y)| y).fold(f64::MIN_POSITIVE, f64::max);
        let least = points().map(|&(_, y)| y).fold(largest, f64::min);
        let y = match plot.scale {
            Scale::Share => (0.0, 1.0),
            Scale::Linear => {
                let step = step(largest);
                (0.0, (largest / step).ceil() * step)
            }
            Scale::Logarithmic => (10_f64.powf(least.log10().floor()), largest * 1.3),
        };
        Self { x: (plot.x_min, x_max), y, scale: plot.scale, top: plot.top() }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (low, high) = self.y;
        let share = match self.scale {
            Scale::Logarithmic => (y / low).ln() / (high / low).ln(),
            _ => (y - low) / (high - low),
        };
        let across = (x - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT);
        (LEFT + across, self.top + (1.0 - share) * PLOT_HEIGHT)
    }

    fn y_ticks(&self) -> Vec<f64> {
        let (low, high) = self.y;
        let start = |first: f64, next: fn(f64, f64) -> f64, step: f64| {
            let ticks = std::iter::successors(Some(first), move |&tick| Some(next(tick, step)));
            ticks.take_while(|&tick| tick <= high * 1.000_001).collect()
        };
        match self.scale {
            Scale::Logarithmic => start(low, |tick, factor| tick * factor, 10.0),
            Scale::Share => start(low, |tick, step| tick + step, 0.2),
            Scale::Linear => start(low, |tick, step| tick + step, step(high)),
        }
    }

    fn x_ticks(&self, names: &[String]) -> Vec<(f64, String)> {
        if !names.is_empty() {
            return (0_u32..).map(f64::from).zip(names.iter().cloned()).collect();
        }
        let (low, high) = self.x;
        let step = step(high - low);
        let ticks = std::iter::successors(Some(low), |&tick| Some(tick + step));
        let ticks = ticks.take_while(|&tick| tick <= high * 1.000_001);
        ticks.map(|tick| (tick, grouped(tick))).collect()
    }

    fn write_axes(&self, svg: &mut Formatter, plot: &Plot) -> fmt::Result {
        for tick in self.y_ticks() {
            let (x, y) = self.place((self.x.0, tick));
            let end = WIDTH - RIGHT;
            writeln!(svg, r#"<path class="grid" d="M{x:.1} {y:.1}H{end:.1}"/>"#)?;
            text(svg, "tick", (x - 10.0, y + 4.0), "end", &self.label(tick))?;
        }
        let bottom = self.top + PLOT_HEIGHT;
        for (tick, name) in self.x_ticks(&plot.x_names) {
            let (x, _) = self.place((tick, self.y.1));
            writeln!(svg, r#"<path class="axis" d="M{x:.1} {bottom:.1}v5"/>"#)?;
            text(svg, "tick", (x, bottom + 21.0), "middle", &name)?;
        }
        writeln!(svg, r#"<path class="axis" d="M{LEFT} {bottom:.1}H{:.1}"/>"#, WIDTH - RIGHT)?;
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        text(svg, "label", (middle, bottom + 44.0), "middle", &plot.x_label)?;
        let y = self.top + PLOT_HEIGHT / 2.0;
        writeln!(
            svg,
            r#"<text class="label" text-anchor="middle" transform="translate(20 {y:.1}) rotate(-90)">{}</text>"#,
            escaped(&plot.y_label)
        )
    }

    fn label(&self, tick: f64) -> String {
        match self.scale {
            Scale::Share => format!("{:.0} %", tick * 100.0),
            _ => grouped(tick),
        }
    }

    fn write_series(&self, svg: &mut Formatter, series: &Series, class: &str) -> fmt::Result {
        let points: Vec<(f64, f64)> = series.points.iter().map(|&p| self.place(p)).collect();
        write_line(svg, series.stroke, class, &points)?;
        if series.stroke != Stroke::Dashed {
            points.iter().try_for_each(|&point| marker(svg, class, point))?;
        }
        Ok(())
    }
}

fn class(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()].0
}

/// Round distance of ticks, of which 4 to 8 make up `largest`.
fn step(largest: f64) -> f64 {
    let power = 10_f64.powf((largest / 4.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    *steps.iter().rev().find(|&&step| largest / step >= 4.0).unwrap_or(&power)
}

/// Formats a whole number with commas, other numbers plainly, without the rounding errors of a
/// sum of steps.
fn grouped(number: f64) -> String {
    let rounded = format!("{number:.6e}").parse().unwrap_or(number);
    let digits = rounded.to_string();
    let Some(groups) = digits.parse::<u64>().ok().filter(|&whole| whole >= 1000) else {
        return digits;
    };
    format!("{},{:03}", groups / 1000, groups % 1000)
}

fn write_style(svg: &mut Formatter) -> fmt::Result {
    let mode = |svg: &mut Formatter, [card, edge, ink, soft, grid]: [&str; 5], dark: bool| {
        writeln!(svg, ".card {{ fill: {card}; stroke: {edge}; }}")?;
        writeln!(svg, ".title, .name {{ fill: {ink}; }} .soft, .tick, .label {{ fill: {soft}; }}")?;
        writeln!(svg, ".grid {{ stroke: {grid}; }} .axis {{ stroke: {soft}; }}")?;
        for (class, on_light, on_dark) in COLOURS {
            let colour = if dark { on_dark } else { on_light };
            writeln!(
                svg,
                "path.{class} {{ stroke: {colour}; }} circle.{class} {{ fill: {colour}; }}"
            )?;
        }
        writeln!(svg, "circle {{ stroke: {card}; }}")
    };
    writeln!(svg, "<style>")?;
    writeln!(svg, "path {{ fill: none; stroke-linejoin: round; stroke-linecap: round; }}")?;
    writeln!(svg, ".title {{ font-size: 17px; font-weight: 600; }} .soft {{ font-size: 13px; }}")?;
    writeln!(svg, ".name, .tick {{ font-size: 13px; }} .label {{ font-size: 13px; }}")?;
    writeln!(svg, ".line {{ stroke-width: 2; }} .main {{ stroke-width: 3.5; }}")?;
    writeln!(svg, ".dashed {{ stroke-width: 2; stroke-dasharray: 2 6; }}")?;
    mode(svg, ["#ffffff", "#e2e8f0", "#0f172a", "#526072", "#e8ecf1"], false)?;
    writeln!(svg, "@media (prefers-color-scheme: dark) {{")?;
    mode(svg, ["#0f141b", "#2a3340", "#eef2f6", "#a3b0c0", "#252e3a"], true)?;
    writeln!(svg, "}}\n</style>")
}

fn write_line(
    svg: &mut Formatter,
    stroke: Stroke,
    class: &str,
    points: &[(f64, f64)],
) -> fmt::Result {
    let width = match stroke {
        Stroke::Measured => "line",
        Stroke::Main => "main",
        Stroke::Dashed => "dashed",
    };
    write!(svg, r#"<path class="{width} {class}" d=""#)?;
    for (index, (x, y)) in points.iter().enumerate() {
        write!(svg, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' })?;
    }
    writeln!(svg, r#""/>"#)
}

fn marker(svg: &mut Formatter, class: &str, (x, y): (f64, f64)) -> fmt::Result {
    writeln!(svg, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="4" stroke-width="1.2"/>"#)
}

fn text(
    svg: &mut Formatter,
    class: &str,
    (x, y): (f64, f64),
    anchor: &str,
    text: &str,
) -> fmt::Result {
    let text = escaped(text);
    writeln!(
        svg,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_largest_value() {
        for (largest, expected) in [(0.9, 0.2), (43.0, 10.0), (1158.0, 250.0), (8.0, 2.0)] {
            assert!((step(largest) - expected).abs() < 1e-9, "{largest}: {}", step(largest));
        }
    }

    #[test]
    fn lines_end_where_their_numbers_are_and_text_is_escaped() {
        let plot = Plot::new("a < b", "", Scale::Linear)
            .axes("x", "y")
            .main_line("&", vec![(0.0, 0.0), (5.0, 10.0)]);
        let svg = plot.to_string();
        let (top, bottom) = (plot.top(), plot.top() + PLOT_HEIGHT);
        let line = format!("M{LEFT:.1} {bottom:.1}L{:.1} {top:.1}", WIDTH - RIGHT);
        assert!(svg.contains(&line), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains(">&amp;<"), "{svg}");
    }

    #[test]
    fn the_x_axis_has_names_where_it_was_given_any() {
        let names = ["1 KiB", "1 MiB", "1 GiB"].map(str::to_owned).to_vec();
        let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)];
        let svg = Plot::new("", "", Scale::Linear).x_names(names).line("", points).to_string();
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        let label = format!(r#"<text class="tick" x="{middle:.1}""#);
        assert!(
            svg.lines().any(|line| line.starts_with(&label) && line.contains("1 MiB")),
            "{svg}"
        );
        assert_eq!(svg.matches(r#"v5"/>"#).count(), 3, "{svg}");
    }

    #[test]
    fn a_single_point_has_a_place() {
        for scale in [Scale::Linear, Scale::Logarithmic, Scale::Share] {
            let plot = Plot::new("", "", scale).x_from(80.0).line("", vec![(80.0, 0.5)]);
            let svg = plot.to_string();
            assert!(svg.contains(&format!(r#"cx="{LEFT:.1}""#)), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn ticks_are_shown_without_errors_of_rounding() {
        let shown = [0.1 + 0.2, 1200.0, 0.25, 1e-5, 12.5].map(grouped);
        assert_eq!(shown, ["0.3", "1,200", "0.25", "0.00001", "12.5"]);
    }

    #[test]
    fn the_x_axis_begins_where_it_is_told_to() {
        let plot =
            Plot::new("", "", Scale::Linear).x_from(50.0).line("", vec![(50.0, 0.0), (90.0, 10.0)]);
        let svg = plot.to_string();
        let (top, bottom) = (plot.top(), plot.top() + PLOT_HEIGHT);
        let line = format!("M{LEFT:.1} {bottom:.1}L{:.1} {top:.1}", WIDTH - RIGHT);
        assert!(svg.contains(&line), "{svg}");
        assert!(svg.contains(">50</text>") && svg.contains(">90</text>"), "{svg}");
        assert!(!svg.contains(">45</text>"), "{svg}");
    }
}
