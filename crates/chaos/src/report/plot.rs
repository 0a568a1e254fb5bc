//! Plots, drawn by `plotters`. Its colours are literal; the stylesheet finds them again and gives those of the page, light or dark.

#![expect(clippy::float_arithmetic, clippy::cast_precision_loss, reason = "where to draw, not money")]

use crate::record::{Plot, Series, Shape};
use maud::{Markup, PreEscaped, html};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::ops::Range;

/// Small, so that its letters are large enough where a phone makes it smaller still.
const WIDTH: u32 = 360;
const HEIGHT: u32 = 260;
/// Height of a bar with its name above it.
const BAR: u32 = 46;
const LETTERS: i32 = 16;
const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const RULE: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
/// As many as can be told apart; further series begin again, with another form of points.
const SERIES: [RGBColor; 6] = [
    RGBColor(0x1f, 0x5f, 0xbf),
    RGBColor(0xb4, 0x53, 0x09),
    RGBColor(0x0a, 0x6b, 0x3d),
    RGBColor(0x9d, 0x17, 0x4d),
    RGBColor(0x5b, 0x21, 0xb6),
    RGBColor(0x4b, 0x55, 0x63),
];

type Failed = DrawingAreaErrorKind<std::io::Error>;

/// A figure with its caption, its legend, and its values as a table.
pub(super) fn figure(plot: &Plot) -> Markup {
    html! {
        figure.plot {
            figcaption { (plot.title) }
            @match svg(plot) {
                Ok(svg) => div role="img" aria-label={ (plot.title) "; the values are in the table below" } { (PreEscaped(svg)) },
                Err(error) => p { "Not drawn: " (error) },
            }
            @if plot.shape != Shape::Bars { (legend(plot)) }
            details { summary { "The values" } (values(plot)) }
        }
    }
}

fn legend(plot: &Plot) -> Markup {
    html! {
        ul.legend {
            @for (at, series) in plot.series.iter().enumerate() {
                li { svg.key width="14" height="14" aria-hidden="true" { circle cx="7" cy="7" r="5" class={ "series-" (at % SERIES.len()) } {} } (series.name) }
            }
        }
    }
}

fn values(plot: &Plot) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "" } @if plot.shape != Shape::Bars { th.num scope="col" { (plot.x) } } th.num scope="col" { (plot.y) } } }
            tbody {
                @for series in &plot.series {
                    @for (x, y) in &series.points {
                        tr { td { (series.name) } @if plot.shape != Shape::Bars { td.num { (number(*x)) } } td.num { (number(*y)) } }
                    }
                }
            }
        }
    }
}

fn svg(plot: &Plot) -> Result<String, Failed> {
    let height = match plot.shape {
        Shape::Bars => BAR * u32::try_from(plot.series.len()).unwrap_or(1) + 60,
        Shape::Lines | Shape::LogLines => HEIGHT,
    };
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
    match plot.shape {
        Shape::Bars => bars(plot, &root)?,
        Shape::Lines => lines(plot, &root, from_zero(bounds(plot, |point| point.1)))?,
        Shape::LogLines => {
            let (low, high) = bounds(plot, |point| point.1);
            lines(plot, &root, (low / 1.5..high * 1.5).log_scale())?;
        }
    }
    root.present()?;
    drop(root);
    Ok(text)
}

/// Those that can be drawn: a logarithm is of something above nothing.
fn points(plot: &Plot, series: &Series) -> Vec<(f64, f64)> {
    let drawn = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite() && (plot.shape != Shape::LogLines || *y > 0.0);
    series.points.iter().filter(drawn).copied().collect()
}

fn bounds(plot: &Plot, of: fn((f64, f64)) -> f64) -> (f64, f64) {
    let all = plot.series.iter().flat_map(|series| points(plot, series)).map(of);
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() { (low, high) } else { (1.0, 10.0) }
}

fn from_zero((low, high): (f64, f64)) -> Range<f64> {
    let (low, high) = (low.min(0.0), high.max(0.0));
    low..if high > low { high + (high - low) * 0.08 } else { low + 1.0 }
}

type Root<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn letters<'a>() -> TextStyle<'a> {
    ("sans-serif", LETTERS).into_font().color(&INK)
}

/// Lying, each with its name and value above it: names are long, and phones narrow.
fn bars(plot: &Plot, root: &Root<'_>) -> Result<(), Failed> {
    let value = |series: &Series| points(plot, series).first().map_or(0.0, |point| point.1);
    let highest = plot.series.iter().map(value).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(root);
    chart.margin(6).margin_right(22).x_label_area_size(42);
    let mut chart = chart.build_cartesian_2d(from_zero((0.0, highest)), 0.0..plot.series.len().max(1) as f64)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().light_line_style(TRANSPARENT).bold_line_style(RULE).axis_style(RULE).label_style(letters());
    mesh.x_labels(4).x_desc(&plot.y).x_label_formatter(&|at| number(*at)).draw()?;
    for (at, series) in plot.series.iter().enumerate() {
        let (foot, value) = ((plot.series.len() - 1 - at) as f64, value(series));
        let style = SERIES[at % SERIES.len()].filled();
        chart.draw_series([Rectangle::new([(0.0, foot + 0.1), (value, foot + 0.5)], style)])?;
        let name = format!("{}: {}", series.name, number(value));
        chart.draw_series([Text::new(name, (0.0, foot + 0.88), letters())])?;
    }
    Ok(())
}

fn lines<Y>(plot: &Plot, root: &Root<'_>, y: Y) -> Result<(), Failed>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let (left, right) = bounds(plot, |point| point.0);
    let x: Range<f64> = if right > left { left..right } else { left - 0.5..left + 0.5 };
    let mut chart = ChartBuilder::on(root);
    chart.margin(6).margin_right(22).x_label_area_size(42).y_label_area_size(64);
    let mut chart: ChartContext<'_, _, Cartesian2d<RangedCoordf64, Y::CoordDescType>> = chart.build_cartesian_2d(x, y)?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(RULE).axis_style(RULE).label_style(letters());
    mesh.x_labels(5).y_labels(6).x_desc(&plot.x).y_desc(&plot.y);
    mesh.x_label_formatter(&|at| number(*at)).y_label_formatter(&|at| number(*at)).draw()?;
    for (at, series) in plot.series.iter().enumerate() {
        let (points, colour) = (points(plot, series), SERIES[at % SERIES.len()]);
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        match at / SERIES.len() % 2 {
            0 => chart.draw_series(points.into_iter().map(|point| Circle::new(point, 4, colour.filled())))?,
            _ => chart.draw_series(points.into_iter().map(|point| TriangleMarker::new(point, 6, colour.filled())))?,
        };
    }
    Ok(())
}

/// As a person writes it.
fn number(value: f64) -> String {
    let trimmed = |text: String| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => format!("{} M", trimmed(format!("{:.2}", value / 1e6))),
        size if size >= 1e4 => format!("{} k", trimmed(format!("{:.1}", value / 1e3))),
        size if size >= 100.0 => trimmed(format!("{value:.1}")),
        size if size >= 0.001 => trimmed(format!("{value:.3}")),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(shape: Shape, points: &[(f64, f64)]) -> Plot {
        let series = |name: &str| Series { name: name.to_owned(), points: points.to_vec() };
        let series = vec![series("a <lock>"), series("b")];
        Plot { title: "rates".to_owned(), x: "delay, ms".to_owned(), y: "ops/s".to_owned(), shape, series }
    }

    #[test]
    fn every_shape_is_drawn_whatever_the_figures() {
        let hard: [&[(f64, f64)]; 5] =
            [&[], &[(1.0, 0.0)], &[(1.0, 5.0), (1.0, 5.0)], &[(0.0, f64::NAN), (1.0, f64::INFINITY)], &[(1.0, 3.0), (9.0, 2e7)]];
        for shape in [Shape::Bars, Shape::Lines, Shape::LogLines] {
            for points in hard {
                let drawn = figure(&plot(shape, points)).into_string();
                assert!(drawn.contains("<svg") && drawn.contains("</svg>") && !drawn.contains("NaN,"), "{shape:?} {points:?}");
                assert!(!drawn.contains("<lock>"), "a name is escaped");
            }
        }
    }

    #[test]
    fn a_higher_figure_is_a_longer_bar() {
        let series = |name: &str, y| Series { name: name.to_owned(), points: vec![(0.0, y)] };
        let plot = Plot { series: vec![series("low", 10.0), series("high", 40.0)], ..plot(Shape::Bars, &[]) };
        let drawn = svg(&plot).expect("two bars");
        let width = |line: &str| line.split("width=\"").nth(1)?.split('"').next()?.parse::<u32>().ok();
        let bars: Vec<u32> = drawn
            .lines()
            .filter(|line| line.starts_with("<rect") && line.contains("stroke=\"none\""))
            .filter_map(width)
            .collect();
        assert_eq!(bars.len(), 2, "{drawn}");
        assert!(bars[0] * 4 <= bars[1] + 4 && bars[1] <= bars[0] * 4 + 4, "{bars:?}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 12.5, 1_234.0, 16_400.0, 2_500_000.0].map(number), ["0", "12.5", "1234", "16.4 k", "2.5 M"]);
    }
}
