//! Networks as text, and what an analysis says of them.

use serde_json::{Value, json};

/// A network of output ports, its numbers without units.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// `(rate, latency)` of each server; its name is `s` and its number.
    pub(crate) servers: Vec<(f64, f64)>,
    /// `(burst, rate, path)` of each flow; its name is `f` and its number.
    pub(crate) flows: Vec<(f64, f64, Vec<usize>)>,
}

impl Ports {
    pub(crate) fn text(&self) -> String {
        let path = |path: &[usize]| path.iter().map(|server| format!("s{server}")).collect::<Vec<_>>();
        let servers = self.servers.iter().enumerate().map(|(index, (rate, latency))| {
            json!({
                "name": format!("s{index}"),
                "service_curve": {"latencies": [latency], "rates": [rate]},
                "capacity": rate,
            })
        });
        let flows = self.flows.iter().enumerate().map(|(index, (burst, rate, servers))| {
            json!({
                "name": format!("f{index}"),
                "path": path(servers),
                "arrival_curve": {"bursts": [burst], "rates": [rate]},
                "max_packet_length": 1,
            })
        });
        json!({
            "network": {"name": "ports"},
            "flows": flows.collect::<Vec<_>>(),
            "servers": servers.collect::<Vec<_>>(),
        })
        .to_string()
    }

    pub(crate) fn ask(&self, question: &str) -> Value {
        ask(&self.text(), question)
    }
}

/// Asks of a network of output ports; the question is `method`, `multiplexing`, `grouping` and `arithmetic` in words.
pub(crate) fn ask(text: &str, question: &str) -> Value {
    let words: Vec<&str> = question.split(' ').collect();
    let grouping = words.iter().find_map(|word| match *word {
        "grouped" => Some(true),
        "ungrouped" => Some(false),
        _ => None,
    });
    let one_of = |all: &[&str]| words.iter().find(|word| all.contains(word)).copied();
    let question = json!({
        "method": words[0],
        "multiplexing": one_of(&["fifo", "arbitrary"]),
        "grouping": grouping,
        "arithmetic": one_of(&["exact", "rounded"]),
    });
    let source = json!({"format": "output-ports", "text": text});
    serde_json::from_str(&wg_bound::bounds_json(&source.to_string(), &question.to_string())).unwrap()
}

/// The exact delay of a flow to its target `index`.
pub(crate) fn exact(reply: &Value, flow: &str, index: usize) -> String {
    let flows = reply["answer"]["flows"].as_array().unwrap_or_else(|| panic!("no answer: {reply}"));
    let flow = flows.iter().find(|found| found["flow"] == flow).unwrap();
    flow["targets"][index]["delay_exact"].as_str().unwrap_or("none").to_owned()
}

/// The delay of every target in order; infinite where there is none.
pub(crate) fn delays(reply: &Value) -> Vec<f64> {
    let flows = reply["answer"]["flows"].as_array().unwrap_or_else(|| panic!("no answer: {reply}"));
    let targets = flows.iter().flat_map(|flow| flow["targets"].as_array().unwrap());
    targets.map(|target| target["delay"].as_f64().unwrap_or(f64::INFINITY)).collect()
}
