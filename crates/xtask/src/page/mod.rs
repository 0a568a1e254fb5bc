//! `cargo xtask page FILE`: opens the report of drills in a headless browser and looks at it as a reader would.
//!
//! Fails on a complaint of the browser, on a request for anything but the file, on a refusal that cannot be seen, and on anything wider
//! than a phone. Leaves pictures beside the file.

mod browser;
mod devtools;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use devtools::Tab;

/// Arguments of `cargo xtask page`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page: target/drill-report/report.html
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Args {
    /// This page.
    pub(crate) fn of(file: PathBuf) -> Self {
        Self { file }
    }
}

/// Name of a picture, width of the window, and whether it is dark.
const VIEWS: [(&str, u32, bool); 4] =
    [("wide", 1_200, false), ("phone", 360, false), ("small", 320, false), ("dark", 1_200, true)];

/// How many refusals are there to be seen, and what reaches beyond the window. What is in a box that scrolls does not.
const LOOK: &str = r#"(() => {
    const seen = element => {
        const box = element.getBoundingClientRect(), style = getComputedStyle(element);
        return box.width > 4 && box.height > 4 && style.visibility === 'visible' && Number(style.opacity) > 0.5
            && box.left >= 0 && box.right <= innerWidth;
    };
    const scrolls = element => element && (getComputedStyle(element).overflowX === 'auto' || scrolls(element.parentElement));
    const wide = element => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element.parentElement);
    const all = [...document.body.querySelectorAll('*')];
    document.querySelectorAll('details').forEach(details => details.open = true);
    const wider = all.filter(wide).map(element => element.tagName + ' ' + element.textContent.slice(0, 60));
    document.querySelectorAll('details').forEach(details => details.open = false);
    return {
        refusals: [...document.querySelectorAll('[data-mark="refused"]')].filter(seen).length,
        wider: wider.slice(0, 5),
        scroll: document.documentElement.scrollWidth - innerWidth,
        height: document.documentElement.scrollHeight,
    };
})()"#;

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let file = fs::canonicalize(&args.file).with_context(|| format!("the page {}", args.file.display()))?;
    let browser = browser::find()?;
    let mut tab = Tab::open(&browser)?;
    let url = format!("file://{}", file.display());
    let mut complaints = Vec::new();
    for (name, width, dark) in VIEWS {
        look(&mut tab, &url, width, dark)?;
        let seen = tab.evaluate(LOOK)?;
        complaints.extend(wrong(&seen).into_iter().map(|wrong| format!("{name}, {width} px: {wrong}")));
        let height = seen["height"].as_u64().unwrap_or(800).clamp(100, 16_000);
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let picture = tab.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }))?;
        keep(&picture, &file, &format!("{name}.png"))?;
    }
    let print = tab.call("Page.printToPDF", json!({ "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69 }))?;
    keep(&print, &file, "print.pdf")?;
    complaints.extend(tab.complaints(&url));
    // each view opens the page anew, and says the same anew
    complaints.dedup();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    ensure!(complaints.is_empty(), "{} is not as it must be: {} complaints", file.display(), complaints.len());
    println!("{}: no complaint, no request, refusals to be seen; pictures beside it", file.display());
    Ok(ExitCode::SUCCESS)
}

fn look(tab: &mut Tab, url: &str, width: u32, dark: bool) -> anyhow::Result<()> {
    let scheme = if dark { "dark" } else { "light" };
    tab.call("Emulation.setEmulatedMedia", json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }))?;
    let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    tab.call("Emulation.setDeviceMetricsOverride", size)?;
    let opened = tab.call("Page.navigate", json!({ "url": url }))?;
    if let Some(error) = opened["errorText"].as_str() {
        bail!("the browser cannot open {url}: {error}");
    }
    tab.wait_for("Page.loadEventFired")
}

/// What is wrong with what was seen.
fn wrong(seen: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if seen["refusals"].as_u64().unwrap_or(0) == 0 {
        wrong.push("no refusal can be seen".to_owned());
    }
    if seen["scroll"].as_i64() != Some(0) {
        wrong.push(format!("the page is wider than its window, by {} px", seen["scroll"]));
    }
    let wider = seen["wider"].as_array().map(Vec::as_slice).unwrap_or_default();
    wrong.extend(wider.iter().map(|element| format!("wider than the window: {element}")));
    wrong
}

fn keep(answer: &Value, page: &Path, name: &str) -> anyhow::Result<()> {
    let data = STANDARD.decode(answer["data"].as_str().context("a picture without data")?)?;
    let file = page.with_file_name(format!("report-{name}"));
    fs::write(&file, data).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_would_miss_is_wrong() {
        let fine = json!({ "refusals": 1, "wider": [], "scroll": 0 });
        assert!(wrong(&fine).is_empty());
        let bad = json!({ "refusals": 0, "wider": ["TABLE x"], "scroll": 12 });
        assert_eq!(wrong(&bad).len(), 3);
        assert_eq!(wrong(&Value::Null).len(), 2, "nothing was seen at all");
    }
}
