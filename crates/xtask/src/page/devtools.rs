//! One tab of a browser, told by the Chrome DevTools Protocol: JSON messages with a NUL after each, over pipes.
//! <https://chromedevtools.github.io/devtools-protocol/>

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::browser::Browser;

/// For one answer, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running browser with one tab. Dropped, it is killed.
pub(crate) struct Tab {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    events: Vec<Value>,
    // last, so that it is removed when the browser has gone
    _profile: TempDir,
}

impl Tab {
    /// Starts the browser, and listens to everything that the tab complains of or asks for.
    pub(crate) fn open(browser: &Browser) -> anyhow::Result<Tab> {
        let profile = tempfile::Builder::new().prefix("settled-browser-").tempdir()?;
        let mut command = browser.command(profile.path())?;
        // its log says much that matters to nobody; the protocol says what matters
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("starting the browser")?;
        let to = child.stdin.take().context("the browser's input")?;
        let out = child.stdout.take().context("the browser's output")?;
        let (send, from) = channel();
        thread::spawn(move || {
            let messages = BufReader::new(out).split(0).map_while(Result::ok);
            for message in messages.filter_map(|message| serde_json::from_slice(&message).ok()) {
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let mut tab = Tab { child, to, from, session: None, calls: 0, events: Vec::new(), _profile: profile };
        let made = tab.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attached = tab.call("Target.attachToTarget", json!({ "targetId": made["targetId"], "flatten": true }))?;
        tab.session = Some(attached["sessionId"].as_str().context("a session")?.to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.call(&format!("{domain}.enable"), json!({}))?;
        }
        Ok(tab)
    }

    /// Calls a method: its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        self.to.write_all(&bytes).with_context(|| format!("telling the browser {method}"))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.next(deadline).with_context(|| format!("waiting for {method}"))?;
            if answer["id"] == json!(id) {
                ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]["message"]);
                return Ok(answer["result"].clone());
            }
            self.events.push(answer);
        }
    }

    /// Waits for an event that has not been waited for yet.
    pub(crate) fn wait_for(&mut self, event: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.events.iter().position(|had| had["method"] == event) {
                self.events.remove(at);
                return Ok(());
            }
            let next = self.next(deadline).with_context(|| format!("waiting for {event}"))?;
            self.events.push(next);
        }
    }

    /// The value of an expression.
    pub(crate) fn evaluate(&mut self, expression: &str) -> anyhow::Result<Value> {
        let answer = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }))?;
        if !answer["exceptionDetails"].is_null() {
            bail!("looking at the page: {}", answer["exceptionDetails"]);
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Errors and warnings so far, and requests for anything but `url`.
    pub(crate) fn complaints(&self, url: &str) -> Vec<String> {
        self.events.iter().filter_map(|event| complaint(event, url)).collect()
    }

    fn next(&mut self, deadline: Instant) -> anyhow::Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.from.recv_timeout(left) {
            Ok(message) => Ok(message),
            Err(_) => match self.child.try_wait()? {
                Some(status) => bail!("the browser ended with {status}"),
                None => bail!("the browser did not answer"),
            },
        }
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn complaint(event: &Value, url: &str) -> Option<String> {
    let params = &event["params"];
    match event["method"].as_str()? {
        "Runtime.consoleAPICalled" if ["error", "warning", "assert"].iter().any(|kind| params["type"] == *kind) => {
            Some(format!("console: {}", params["args"]))
        }
        "Runtime.exceptionThrown" => Some(format!("exception: {}", params["exceptionDetails"])),
        "Log.entryAdded" if ["error", "warning"].iter().any(|level| params["entry"]["level"] == *level) => {
            Some(format!("log: {} {}", params["entry"]["text"], params["entry"]["url"]))
        }
        "Network.requestWillBeSent" if params["request"]["url"] != url => {
            Some(format!("request for something else: {}", params["request"]["url"]))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_anything_else_is_a_complaint() {
        let request = |url: &str| json!({ "method": "Network.requestWillBeSent", "params": { "request": { "url": url } } });
        assert_eq!(complaint(&request("file:///r.html"), "file:///r.html"), None);
        assert!(complaint(&request("file:///favicon.ico"), "file:///r.html").is_some());
        let log = json!({ "method": "Log.entryAdded", "params": { "entry": { "level": "error", "text": "no" } } });
        assert!(complaint(&log, "").is_some());
        let said = |kind: &str| json!({ "method": "Runtime.consoleAPICalled", "params": { "type": kind, "args": [] } });
        assert!(complaint(&said("error"), "").is_some() && complaint(&said("log"), "").is_none());
    }
}
