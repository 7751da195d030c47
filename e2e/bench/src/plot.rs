//! Owns: the plots: latency, memory and processor time over the time of a step, and against members, services and
//! rate over all steps of a shape.
//! Never: shows what the table and the JSON file do not hold.

use std::{collections::BTreeMap, path::Path};

use anyhow::anyhow;
use plotters::prelude::*;

use super::{
    report::{Point, Section},
    series::{Latencies, Sample},
};

/// Width and height of a plot.
const SIZE: (u32, u32) = (900, 400);
/// Room above the highest value.
const HEADROOM: f64 = 1.1;

/// A named line.
type Line = (String, Vec<(f64, f64)>);

/// A plot before it is drawn.
struct Plot {
    file: String,
    title: String,
    axes: [&'static str; 2],
    lines: Vec<Line>,
}

/// Writes all plots of an invocation into `directory`; how many there are.
pub(super) fn write(directory: &Path, sections: &[Section]) -> anyhow::Result<usize> {
    let mut count = 0;
    for mut plot in sections.iter().flat_map(over_time).chain(over_steps(sections)) {
        plot.lines.retain(|(_, line)| line.len() > 1);
        if plot.lines.is_empty() {
            continue;
        }
        let path = directory.join(format!("{}.svg", plot.file));
        draw(&path, &plot).map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))?;
        count += 1;
    }
    Ok(count)
}

/// The course of one step.
fn over_time(section: &Section) -> [Plot; 3] {
    let plot = |what: &str, unit, lines| Plot {
        file: format!("{}-{what}", file_name(&section.title)),
        title: format!("{}: {what}", section.title),
        axes: ["seconds", unit],
        lines,
    };
    let sampled = |name: &str, value: fn(&Sample) -> f64| -> Line {
        let line = section
            .samples
            .iter()
            .map(|sample| (sample.seconds, value(sample)));
        (name.to_owned(), line.collect())
    };
    let late = |name: &str, value: fn(&Latencies) -> f64| -> Line {
        let line = section
            .latencies
            .iter()
            .map(|second| (second.seconds, value(second)));
        (name.to_owned(), line.collect())
    };
    let latency = vec![late("p50", |second| second.p50), late("p99", |second| second.p99)];
    [
        plot("latency", "milliseconds", latency),
        plot(
            "memory",
            "MB",
            vec![sampled("resident", |sample| sample.megabytes)],
        ),
        plot("processor", "cores", vec![sampled("busy", |sample| sample.cores)]),
    ]
}

/// Something that a step has.
type Value = fn(&Point) -> f64;

/// All steps against what told them apart.
fn over_steps(sections: &[Section]) -> Vec<Plot> {
    let axes: [(&str, Value); 3] = [
        ("members", |point| point.members as f64),
        ("services", |point| point.services as f64),
        ("rate", |point| f64::from(point.rate)),
    ];
    let values: [(&str, &str, Value); 3] = [
        ("latency", "p99, milliseconds", |point| point.p99_millis),
        ("memory", "MB", |point| point.megabytes),
        ("processor", "cores", |point| point.cores),
    ];
    let mut plots = Vec::new();
    for (against, place) in axes {
        for (what, unit, value) in values {
            plots.push(Plot {
                file: format!("{what}-against-{against}"),
                title: format!("{what} against {against}"),
                axes: [against, unit],
                lines: lines(sections, against, place, value),
            });
        }
    }
    plots
}

/// One line a rate, or a number of members and services where the rate is the axis: what else differs would mislead.
fn lines(
    sections: &[Section],
    against: &str,
    place: fn(&Point) -> f64,
    value: fn(&Point) -> f64,
) -> Vec<Line> {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for point in sections.iter().filter_map(|section| section.point.as_ref()) {
        let name = match against {
            "rate" => format!("{} members, {} services", point.members, point.services),
            _ => format!("{} updates/s", point.rate),
        };
        lines.entry(name).or_default().push((place(point), value(point)));
    }
    lines
        .values_mut()
        .for_each(|line| line.sort_by(|one, other| one.0.total_cmp(&other.0)));
    lines.into_iter().collect()
}

fn draw(path: &Path, plot: &Plot) -> Result<(), Box<dyn std::error::Error>> {
    let (lines, [x, y]) = (&plot.lines, plot.axes);
    let points = || lines.iter().flat_map(|(_, line)| line);
    let right = points().map(|point| point.0).fold(0.0, f64::max);
    let top = points()
        .map(|point| point.1)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE)
        * HEADROOM;
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(&plot.title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..right, 0.0..top)?;
    chart.configure_mesh().x_desc(x).y_desc(y).draw()?;
    for (index, (name, line)) in lines.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        chart
            .draw_series(LineSeries::new(line.iter().copied(), colour.stroke_width(2)).point_size(2))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// A title as a file name.
fn file_name(title: &str) -> String {
    let mut name = String::new();
    for letter in title.to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => name.push(letter),
            _ if !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_a_shape_are_drawn() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let section = |rate| {
            let mut section = Section::begin(format!("churn-8, {rate} updates/s"));
            let sample = |seconds| Sample {
                seconds,
                cores: 0.5,
                megabytes: 50.0,
            };
            section.samples = vec![sample(0.5), sample(1.0)];
            section.point = Some(Point {
                members: 8,
                services: 10,
                rate,
                p99_millis: f64::from(rate),
                megabytes: 50.0,
                cores: 0.5,
            });
            section
        };
        let sections = [section(10), section(50)];
        // Memory and processor of two steps, and three values against the rate; one point is no line.
        assert_eq!(write(directory.path(), &sections).expect("drawn"), 2 * 2 + 3);
        let text = std::fs::read_to_string(directory.path().join("churn-8-10-updates-s-memory.svg"));
        assert!(text.expect("written").contains("</svg>"));
    }
}
