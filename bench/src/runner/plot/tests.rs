//! Lines, ticks and labels of figures.

use super::svg::{LEFT, RIGHT, grouped, step};
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
    assert!(svg.lines().any(|line| line.starts_with(&label) && line.contains("1 MiB")), "{svg}");
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
