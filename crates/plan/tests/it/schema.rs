//! The declaration of the language as data: whole, and of the very names that limits can have.

use std::collections::BTreeSet;

use serde_json::Value;

fn names(of: &Value) -> Vec<&str> {
    let of = of.as_array().expect("a list");
    of.iter().map(|one| one["name"].as_str().expect("each has a name")).collect()
}

#[test]
fn every_element_and_every_form_is_declared_once() {
    let language: Value = serde_json::from_str(&wg_plan::language()).expect("JSON");
    for kind in ["elements", "types"] {
        let names = names(&language[kind]);
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{kind}");
    }
    let (elements, forms) = (names(&language["elements"]), names(&language["types"]));
    for element in language["elements"].as_array().expect("elements") {
        for part in names(&element["parts"]) {
            assert!(elements.contains(&part), "<{part}> in {}", element["name"]);
        }
        let attributes = names(&element["attributes"]);
        assert_eq!(attributes.iter().collect::<BTreeSet<_>>().len(), attributes.len(), "{}", element["name"]);
        for attribute in element["attributes"].as_array().expect("attributes") {
            assert!(forms.contains(&attribute["type"].as_str().expect("a form")), "{attribute}");
            let says = attribute["documentation"].as_str().expect("text");
            assert!(!says.is_empty() && !says.contains('{') && !says.contains("  "), "{attribute}");
        }
    }
}
