//! Properties of this host that affect measurements: facts, each with a value or the reason why it is unknown.
//!
//! Nothing is evaluated or changed here: `python/wiregauge/examining` evaluates the facts of one or more hosts.

mod fact;
mod host;
mod interface;
mod texts;
mod tree;

pub use fact::{Fact, Value};

use crate::proto;
use crate::remote::allowance::Allowance;

/// Facts of the host and of its interfaces except loopback that `wanted` selects. With `disturbs`, facts that need a
/// trial are omitted, since it would disturb a run.
pub fn examine(wanted: impl Fn(&str) -> bool, disturbs: bool) -> Vec<Fact> {
    let tree = tree::Tree::here();
    let mut facts = host::facts(&tree);
    facts.extend(host::tried(disturbs));
    for one in wg_net::interfaces().unwrap_or_default() {
        if one.name != "lo" && wanted(&one.name) {
            facts.extend(interface::facts(&tree, &one.name));
        }
    }
    facts
}

/// Reply to the call: facts of one interface, or of all that callers may use.
///
/// # Errors
/// The interface does not exist, or the host does not permit tests on it.
pub fn answer(
    request: &proto::ExamineRequest,
    allowance: Option<&Allowance>,
    disturbs: bool,
) -> Result<proto::ExamineReply, tonic::Status> {
    let allowed = |name: &str| allowance.is_none_or(|allowance| allowance.has_interface(name));
    let named = request.interface.as_str();
    if !named.is_empty() {
        wg_net::interface_named(named).map_err(|error| tonic::Status::not_found(error.to_string()))?;
        if let Some(allowance) = allowance.filter(|_| !allowed(named)) {
            return Err(tonic::Status::permission_denied(allowance.refusal(named)));
        }
    }
    let facts = examine(|name| allowed(name) && (named.is_empty() || name == named), disturbs);
    Ok(proto::ExamineReply { facts: facts.into_iter().map(to_proto).collect() })
}

fn to_proto(fact: Fact) -> proto::HostFact {
    use proto::host_fact::Seen;

    let seen = match fact.seen {
        Ok(Value::Truth(truth)) => Seen::Truth(truth),
        Ok(Value::Number(number)) => Seen::Number(number),
        Ok(Value::Text(text)) => Seen::Text(text),
        Ok(Value::Texts(texts)) => Seen::Texts(proto::Texts { text: texts }),
        Err(why) => Seen::Unreadable(why),
    };
    proto::HostFact { name: fact.name.into(), interface: fact.interface, note: fact.note, seen: Some(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_value_or_a_reason_and_is_told_once() {
        let facts = examine(|_| true, false);
        let mut told = std::collections::BTreeSet::new();
        for fact in &facts {
            assert!(told.insert((fact.name, fact.interface.clone())), "{fact:?} is told twice");
            assert!(fact.seen.as_ref().err().is_none_or(|why| !why.is_empty()), "{fact:?}");
        }
        assert!(told.contains(&("clock-source", String::new())), "{told:?}");
        let json = serde_json::to_value(&facts).expect("it is plain");
        assert_eq!(json[0]["name"], facts[0].name);
    }

    #[test]
    fn an_interface_that_is_not_there_or_not_allowed_is_refused() {
        let request = |name: &str| proto::ExamineRequest { interface: name.into() };
        let missing = answer(&request("no-such-one"), None, false).expect_err("it is not there");
        assert_eq!(missing.code(), tonic::Code::NotFound);
        let allowance = Allowance::read(None).expect("there are defaults");
        let refused = answer(&request("lo"), Some(&allowance), false).expect_err("loopback is nobody's");
        assert_eq!(refused.code(), tonic::Code::PermissionDenied);
        assert!(refused.message().contains("all but loopback"), "{refused}");
        let told = answer(&request("lo"), None, true).expect("it is there");
        assert!(told.facts.iter().all(|fact| fact.seen.is_some()));
        let tried = told.facts.iter().find(|fact| fact.name == "mlockall").and_then(|fact| fact.seen.clone());
        assert!(matches!(tried, Some(proto::host_fact::Seen::Unreadable(why)) if why.contains("a run")));
    }
}
