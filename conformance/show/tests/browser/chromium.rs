//! Chromium without a window, driven by its DevTools protocol: JSON texts with a zero byte behind each, over a pipe.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Where Chromium may be.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// So often is looked whether a page is there.
const LOOKS: usize = 6000;

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: String,
    calls: Cell<u64>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// The program, if there is one.
    pub(crate) fn find() -> Option<String> {
        let named = std::env::var("CHROMIUM").ok();
        let is_there =
            |name: &str| Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        let mut names = named.iter().map(String::as_str).chain(NAMES);
        names.find(|name| is_there(name).is_ok_and(|status| status.success())).map(str::to_string)
    }

    /// Starts the browser.
    ///
    /// # Errors
    /// Why it did not start.
    pub(crate) fn start(program: &str, width: u32, height: u32) -> Result<Browser, String> {
        let folder = tempfile::tempdir().map_err(|why| why.to_string())?;
        // the protocol's pipes are the descriptors 3 and 4
        let mut child = Command::new("sh")
            .args([
                "-c",
                "program=$1; shift; exec \"$program\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null",
                "sh",
            ])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--hide-scrollbars",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--remote-debugging-pipe", "--force-color-profile=srgb", "--font-render-hinting=none"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg(format!("--window-size={width},{height}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|why| format!("no shell: {why}"))?;
        let (to, from) = (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        let mut browser = Browser { child, to, from, session: String::new(), calls: Cell::new(0), _folder: folder };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }))?;
        let target = &page["targetId"];
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }))?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_string();
        browser.size(width, height)?;
        Ok(browser)
    }

    /// Calls a method of the protocol, and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        let id = self.calls.get() + 1;
        self.calls.set(id);
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let gone = |why: std::io::Error| format!("chromium has gone: {why}");
        self.to.write_all(format!("{message}\0").as_bytes()).and_then(|()| self.to.flush()).map_err(gone)?;
        loop {
            let mut answer = Vec::new();
            if self.from.read_until(0, &mut answer).map_err(gone)? == 0 {
                return Err("chromium has ended".to_string());
            }
            answer.pop();
            let answer: Value = serde_json::from_slice(&answer).map_err(|why| why.to_string())?;
            if answer["id"] != id {
                continue; // an event, which nobody waits for
            }
            return match answer.get("error") {
                Some(error) => Err(format!("{method}: {error}")),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    /// The size of the page.
    pub(crate) fn size(&mut self, width: u32, height: u32) -> Result<(), String> {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size).map(drop)
    }

    /// Whether the page is to be dark, and whether it is on a screen or on paper.
    pub(crate) fn media(&mut self, scheme: &str) -> Result<(), String> {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features).map(drop)
    }

    /// Opens a file, and waits until its first picture is there.
    pub(crate) fn open(&mut self, file: &Path) -> Result<(), String> {
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }))?;
        let ask = format!("location.href === {} && document.documentElement?.dataset.first !== undefined", json!(url));
        for _ in 0..LOOKS {
            // while one page makes place for the other, nobody answers
            if self.ask(&ask).is_ok_and(|is_there| is_there == true) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{url} shows nothing"))
    }

    /// The value of an expression of JavaScript in the page; of a promise, what it comes to.
    pub(crate) fn ask(&mut self, expression: &str) -> Result<Value, String> {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(format!("{expression}: {thrown}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// What the page says that it shows: an attribute of its root.
    pub(crate) fn fact(&mut self, name: &str) -> f64 {
        let text = self.ask(&format!("document.documentElement.dataset.{name}")).unwrap();
        text.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name} is {text}"))
    }

    /// Presses a key, and waits until the page has drawn.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key })).unwrap();
        }
        self.drawn();
    }

    /// Waits for two frames.
    pub(crate) fn drawn(&mut self) {
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").unwrap();
    }

    /// A picture of the page.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", json!({ "format": "png" })).unwrap();
        base64(answer["data"].as_str().expect("a picture"))
    }

    /// The page on paper.
    pub(crate) fn paper(&mut self) -> Vec<u8> {
        let answer = self.call("Page.printToPDF", json!({ "printBackground": true, "landscape": true })).unwrap();
        base64(answer["data"].as_str().expect("a document"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session.clear();
        let _ = self.call("Browser.close", json!({})); // it may have gone already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of a text in base 64, as the protocol has pictures.
fn base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |digit: u8| digits.iter().position(|other| *other == digit).map(|value| value as u32);
    let values: Vec<u32> = text.bytes().filter_map(value).collect();
    let group = |four: &[u32]| {
        let bits = four.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - four.len()));
        [bits >> 16, bits >> 8, bits].map(|byte| byte as u8).into_iter().take(four.len() - 1)
    };
    values.chunks(4).flat_map(group).collect()
}

/// Writes a picture.
pub(crate) fn save(folder: &Path, name: &str, picture: &[u8]) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(name), picture).unwrap();
}
