//! The schema lists measures and axes for editors; the plan knows their meaning. Neither may know more.

use std::collections::BTreeSet;
use std::fs;

fn choices(of: &str) -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/wiregauge/config/wiregauge-test-2.xsd");
    let schema = fs::read_to_string(path).expect("the schema is in the repository");
    let start = schema.find(&format!("<xs:simpleType name=\"{of}\">")).expect("the type is declared");
    let end = schema[start..].find("</xs:simpleType>").expect("and ends");
    let values = schema[start..start + end].split("<xs:enumeration value=\"").skip(1);
    values.map(|rest| rest.split('"').next().expect("a value").to_owned()).collect()
}

#[test]
fn measures_are_those_of_the_plan() {
    assert_eq!(choices("measure-name"), wg_plan::measures().map(str::to_owned).collect());
}

#[test]
fn axes_are_those_of_the_plan() {
    assert_eq!(choices("axis-name"), wg_plan::AXES.map(str::to_owned).into());
}
