//! Line plots as SVG text that follows the light or dark mode of the reader.
//!
//! Each line is named in a legend above the plot. Colours are distinguishable for colour-blind
//! readers, and lines of the same style differ by their markers. The module supports the figures
//! of this repository and nothing else.

mod svg;

use std::fmt::{self, Formatter};
use std::fs;
use std::io;

use self::svg::{
    BELOW, Frame, LEGEND_COLUMNS, LEGEND_LINE, LEGEND_TOP, PLOT_HEIGHT, WIDTH, class, escaped,
    marker, text, write_line, write_style,
};
use super::Figures;

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
pub(crate) enum Scale {
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
pub(crate) struct Plot {
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
    pub(crate) fn new(title: impl Into<String>, subtitle: impl Into<String>, scale: Scale) -> Self {
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
    pub(crate) fn axes(mut self, x_label: &str, y_label: &str) -> Self {
        (self.x_label, self.y_label) = (x_label.to_owned(), y_label.to_owned());
        self
    }

    /// Sets the begin of the x axis; 0 by default.
    #[must_use]
    pub(crate) fn x_from(mut self, x_min: f64) -> Self {
        self.x_min = x_min;
        self
    }

    /// Sets the labels at 0, 1, ... of the x axis, which are then its only labels.
    #[must_use]
    pub(crate) fn x_names(mut self, names: Vec<String>) -> Self {
        self.x_names = names;
        self
    }

    /// Adds the main line, of measured points in the order of x.
    #[must_use]
    pub(crate) fn main_line(self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let colour = self.series.len();
        self.with(name, Stroke::Main, colour, points)
    }

    /// Adds a line of measured points.
    #[must_use]
    pub(crate) fn line(self, name: &str, points: Vec<(f64, f64)>) -> Self {
        let colour = self.series.len();
        self.with(name, Stroke::Measured, colour, points)
    }

    /// Number of lines.
    #[must_use]
    pub(crate) fn lines(&self) -> usize {
        self.series.len()
    }

    /// Adds a dashed line for comparison with line `of`, in its colour.
    #[must_use]
    pub(crate) fn dashed(self, name: &str, of: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, Stroke::Dashed, of, points)
    }

    /// Adds a line of the points that there are at 0, 1, ..., the numbers of `x_names`; none
    /// without points.
    #[must_use]
    pub(crate) fn line_by_number(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        let points = (0_u32..).map(f64::from).zip(values);
        let points: Vec<(f64, f64)> = points.filter_map(|(x, y)| Some((x, y?))).collect();
        if points.is_empty() { self } else { self.line(name, points) }
    }

    /// Writes the figure to `NAME.svg` in the folder for figures, if there is one, and says so.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn save(&self, figures: &Figures, name: &str) -> io::Result<()> {
        let Some(folder) = figures.folder() else { return Ok(()) };
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, self.to_string())?;
        println!("wrote {}\n", path.display());
        Ok(())
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

#[cfg(test)]
mod tests;
