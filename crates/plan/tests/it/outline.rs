//! Element trees written as outlines: one element per line, depth by leading spaces, `name=value` or
//! `name='two words'`. Lines count from 1, so a diagnostic's line can be checked.

use wg_plan::{Campaign, Diagnostic, Element, compile};

/// A good test: one way over UDP, a relayed raw flow, three end systems on a switch.
pub(crate) const BASE: &str = "\
test name=base seed=1
 network
  end-system name=mac
  end-system name=sensor
  end-system name=other
  switch name=sw1
  link between='mac sw1' rate=1Gbit/s
  link between='sensor sw1' rate=1Gbit/s
  link between='other sw1' rate=1Gbit/s
 flows
  flow id=10 protocol=udp from=mac to=sensor
  flow id=20 protocol=raw from=mac to=sensor
 tasks warm-up=5ms
  send flow=10 period=2ms payload=64B count=1000
  receive flow=10
  send flow=20 period=2ms payload=64B count=1000 offset=1ms
  relay flow=20
 limits
  limit measure=lost at-most=0
";

/// The tree of an outline.
pub(crate) fn tree(outline: &str) -> Element {
    let mut stack: Vec<Element> = Vec::new();
    let close = |stack: &mut Vec<Element>, depth: usize| {
        while stack.len() > depth.max(1) {
            let done = stack.pop().expect("not empty");
            stack.last_mut().expect("the root stays").children.push(done);
        }
    };
    for (number, line) in outline.lines().enumerate() {
        let depth = line.len() - line.trim_start().len();
        close(&mut stack, depth);
        let mut words = words(line.trim_start()).into_iter();
        let tag = words.next().expect("a tag");
        let attributes = words
            .map(|word| {
                let (name, value) = word.split_once('=').expect("name=value");
                (name.to_owned(), value.to_owned())
            })
            .collect();
        stack.push(Element { tag, line: number as u32 + 1, attributes, children: Vec::new() });
    }
    close(&mut stack, 1);
    stack.pop().expect("a root")
}

fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("never empty").push(c),
        }
    }
    words
}

/// The outline with one piece replaced; the piece must be there.
pub(crate) fn with(outline: &str, old: &str, new: &str) -> String {
    assert!(outline.contains(old), "\"{old}\" is not in the outline");
    outline.replacen(old, new, 1)
}

/// The base test with pieces replaced.
pub(crate) fn changed(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(BASE.to_owned(), |text, (old, new)| with(&text, old, new))
}

/// A campaign that must compile.
pub(crate) fn good(outline: &str) -> Campaign {
    match compile(&tree(outline)) {
        Ok(campaign) => campaign,
        Err(diagnostics) => panic!("refused: {}", shown(&diagnostics)),
    }
}

/// The diagnostics of a test that must not compile.
pub(crate) fn refused(outline: &str) -> Vec<Diagnostic> {
    compile(&tree(outline)).expect_err("accepted")
}

pub(crate) fn shown(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}
