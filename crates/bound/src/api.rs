//! Text interface for other languages.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wg_plan::{Diagnostic, Element, Network, Run};

use crate::analysis::analyse_with;
use crate::answer::Answer;
use crate::certificate::{Certificate, certify};
use crate::formats::plan::PlannedLimit;
use crate::formats::{output_ports, physical, plan};
use crate::method::Choice;
use crate::model::{Model, Server, problem};
use crate::plp::Solver;
use crate::question::{Question, Refusal};

/// A network as text: its format, and beside it the members of that format.
#[derive(Deserialize)]
struct Source {
    format: Format,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    /// JSON of Saihu.
    OutputPorts,
    /// XML of WoPANets, xTFA and Saihu.
    Physical,
    /// One run of a compiled test.
    Plan,
}

#[derive(Deserialize)]
struct OutputPorts {
    text: String,
}

#[derive(Deserialize)]
struct Physical {
    tree: Element,
}

/// Network and run are read by their own crate: here their hundred types would be compiled once more.
#[derive(Deserialize)]
struct Plan<'a> {
    name: String,
    #[serde(borrow)]
    network: &'a RawValue,
    #[serde(borrow)]
    run: &'a RawValue,
    limits: Vec<PlannedLimit>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Reply {
    Answer(Box<Answer>),
    Certificate(Box<Certificate>),
    Refused(Refusal),
    Written(String),
}

fn model(source: &str) -> Result<Model, Vec<Diagnostic>> {
    let unreadable = |error: serde_json::Error| {
        vec![problem(0, "network", &format!("it cannot be read: {error}"), "", "this is a bug of the caller")]
    };
    let form: Source = serde_json::from_str(source).map_err(unreadable)?;
    match form.format {
        Format::OutputPorts => {
            let ports: OutputPorts = serde_json::from_str(source).map_err(unreadable)?;
            output_ports::read(&ports.text)
        }
        Format::Physical => {
            let physical: Physical = serde_json::from_str(source).map_err(unreadable)?;
            physical::read(&physical.tree)
        }
        Format::Plan => {
            let parts: Plan<'_> = serde_json::from_str(source).map_err(unreadable)?;
            let network = Network::from_json(parts.network.get().as_bytes()).map_err(unreadable)?;
            let run = Run::from_json(parts.run.get().as_bytes()).map_err(unreadable)?;
            plan::read(&parts.name, &network, &run, &parts.limits)
        }
    }
}

fn reply(result: Result<Reply, Refusal>) -> String {
    // Writing plain data to a string fails only out of memory.
    serde_json::to_string(&result.unwrap_or_else(Reply::Refused)).unwrap_or_default()
}

/// The network and what is asked of it.
fn asked(source: &str, question: &str) -> Result<(Model, Choice), Refusal> {
    let question: Question = serde_json::from_str(question).map_err(|error| {
        let message = format!("it cannot be read: {error}");
        Refusal::Input(vec![problem(0, "question", &message, "", "this is a bug of the caller")])
    })?;
    let model = model(source).map_err(Refusal::Input)?;
    let choice = question.understood(&model)?;
    Ok((model, choice))
}

/// Computes the bounds of a network: `{"answer": …}`, or `{"refused": …}` with `input` or `no-fixed-point`.
///
/// Never panics, whatever the text.
pub fn bounds_json(source: &str, question: &str) -> String {
    bounds_json_with(source, question, None)
}

/// As [`bounds_json`], with a solver of linear programmes.
pub fn bounds_json_with(source: &str, question: &str, solver: Option<&mut Solver<'_>>) -> String {
    let bounded = || {
        let (model, choice) = asked(source, question)?;
        Ok(Reply::Answer(Box::new(analyse_with(&model, choice, solver)?)))
    };
    reply(bounded())
}

/// Writes the steps of the bounds of a network, for a checker: `{"certificate": …}` or `{"refused": …}`.
///
/// Never panics, whatever the text.
pub fn certificate_json(source: &str, question: &str) -> String {
    let certified = || {
        let (model, choice) = asked(source, question)?;
        Ok(Reply::Certificate(Box::new(certify(&model, choice)?)))
    };
    reply(certified())
}

/// Writes a network in the format `output-ports` or `physical`: `{"written": …}` or `{"refused": …}`.
///
/// Waits between servers, classes and windows of a test have no place in these formats; a test with them is refused.
pub fn converted_json(source: &str, format: &str) -> String {
    let refuse = |message: &str, cure: &str| Refusal::Input(vec![problem(0, "--write", message, "", cure)]);
    let converted = || {
        let model = model(source).map_err(Refusal::Input)?;
        let steps = || model.flows.iter().flat_map(|flow| &flow.steps);
        let plain = steps().all(|step| step.wait.is_zero() && step.variation.is_zero())
            && model.flows.iter().all(|flow| flow.targets.iter().all(|target| target.wait.is_zero()));
        let alike =
            steps().all(|step| steps().all(|other| step.server != other.server || step.class == other.class));
        let ruled = |server: &Server| server.reserved.is_some() || !server.rules.is_empty();
        let alike = alike && model.flows.iter().all(|flow| !flow.is_part && flow.copies.is_none());
        if !plain || !alike || model.servers.iter().any(ruled) {
            return Err(refuse(
                "the network has waits between servers, classes or windows, and the format knows none",
                "bound it here",
            ));
        }
        match format {
            "output-ports" => Ok(Reply::Written(output_ports::write(&model))),
            "physical" => physical::write(&model).map(Reply::Written).map_err(|error| {
                refuse(&error.to_string(), "write it as output ports, to a file that ends in .json")
            }),
            other => Err(refuse(
                &format!("there is no format \"{other}\""),
                "name a file that ends in .json or .xml",
            )),
        }
    };
    reply(converted())
}
