//! Axes, lines and texts of a figure as SVG.

use std::fmt::{self, Formatter};

use super::{Plot, Scale, Series, Stroke};

pub(super) const WIDTH: f64 = 760.0;
pub(super) const LEFT: f64 = 74.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const PLOT_HEIGHT: f64 = 330.0;
pub(super) const BELOW: f64 = 58.0;
pub(super) const LEGEND_TOP: f64 = 62.0;
pub(super) const LEGEND_LINE: f64 = 22.0;
pub(super) const LEGEND_COLUMNS: usize = 3;

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

/// Mapping of values to positions on the page.
pub(super) struct Frame {
    x: (f64, f64),
    y: (f64, f64),
    scale: Scale,
    top: f64,
}

impl Frame {
    pub(super) fn new(plot: &Plot) -> Self {
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

    pub(super) fn write_axes(&self, svg: &mut Formatter, plot: &Plot) -> fmt::Result {
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

    pub(super) fn write_series(
        &self,
        svg: &mut Formatter,
        series: &Series,
        class: &str,
    ) -> fmt::Result {
        let points: Vec<(f64, f64)> = series.points.iter().map(|&p| self.place(p)).collect();
        write_line(svg, series.stroke, class, &points)?;
        if series.stroke != Stroke::Dashed {
            points.iter().try_for_each(|&point| marker(svg, class, point))?;
        }
        Ok(())
    }
}

pub(super) fn class(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()].0
}

/// Round distance of ticks, of which 4 to 8 make up `largest`.
pub(super) fn step(largest: f64) -> f64 {
    let power = 10_f64.powf((largest / 4.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    *steps.iter().rev().find(|&&step| largest / step >= 4.0).unwrap_or(&power)
}

/// Formats a whole number with commas, other numbers plainly, without the rounding errors of a
/// sum of steps.
pub(super) fn grouped(number: f64) -> String {
    let rounded = format!("{number:.6e}").parse().unwrap_or(number);
    let digits = rounded.to_string();
    let Some(groups) = digits.parse::<u64>().ok().filter(|&whole| whole >= 1000) else {
        return digits;
    };
    format!("{},{:03}", groups / 1000, groups % 1000)
}

pub(super) fn write_style(svg: &mut Formatter) -> fmt::Result {
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

pub(super) fn write_line(
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

pub(super) fn marker(svg: &mut Formatter, class: &str, (x, y): (f64, f64)) -> fmt::Result {
    writeln!(svg, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="4" stroke-width="1.2"/>"#)
}

pub(super) fn text(
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

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
