//! Networks small enough for paper. Every expected fraction is worked out in the comment above it.

use serde_json::{Value, json};

use crate::networks::{Ports, ask, delays, exact};

/// Two servers of rate 10 and latency 1; one flow through both, one through each: all of burst 10 and rate 1.
fn tandem() -> Ports {
    let flow = |path: &[usize]| (10.0, 1.0, path.to_vec());
    Ports { servers: vec![(10.0, 1.0); 2], flows: vec![flow(&[0, 1]), flow(&[0]), flow(&[1])] }
}

#[test]
fn total_flow_analysis_of_a_tandem() {
    // s0: 1 + 20/10 = 3. The flow leaves with 10 + 3 = 13. s1: 1 + 23/10 = 33/10. Sum 63/10.
    let reply = tandem().ask("tfa fifo ungrouped");
    assert_eq!(exact(&reply, "f0", 0), "63/10");
    assert_eq!(exact(&reply, "f1", 0), "3");
    assert_eq!(exact(&reply, "f2", 0), "33/10");
    // Grouped: what comes from s0 is capped by its rate 10. The curves cross where 10t = 13 + t: t = 13/9. There
    // 130/9 + 10 + 13/9 = 233/9 have come, served at 1 + 233/90: 323/90 − 130/90 = 193/90.
    let reply = tandem().ask("tfa fifo grouped");
    assert_eq!(exact(&reply, "f2", 0), "193/90");
    // In any order s0 is busy for (20 + 10)/(10 − 2) = 15/4. What the others leave f0 there is (9, 20/9): it leaves
    // with 110/9. s1 is busy for (200/9 + 10)/8 = 145/36.
    let reply = tandem().ask("tfa arbitrary ungrouped");
    assert_eq!(exact(&reply, "f0", 0), "70/9");
    assert_eq!(exact(&reply, "f1", 0), "15/4");
}

#[test]
fn separated_flow_analysis_of_a_tandem() {
    // FIFO leaves f0 (9, 2) at each server: 4 + 10/9.
    assert_eq!(exact(&tandem().ask("sfa fifo ungrouped"), "f0", 0), "46/9");
    // f2 meets f0 with 10 + 2 = 12: (9, 1 + 12/10), and 11/5 + 10/9.
    assert_eq!(exact(&tandem().ask("sfa fifo ungrouped"), "f2", 0), "149/45");
    // Arbitrary leaves (9, 20/9) at each: 40/9 + 10/9.
    assert_eq!(exact(&tandem().ask("sfa arbitrary grouped"), "f0", 0), "50/9");
}

#[test]
fn paying_multiplexing_once() {
    // f1 goes along for both servers: R = 9, T = 2 + (10 + 1 · 2)/9 = 10/3; delay 10/3 + 10/9. Separated it pays twice:
    // 20/9 at s0, then a burst of 10 + 20/9: (10 + 110/9)/9 at s1.
    let flow = (10.0, 1.0, vec![0, 1]);
    let ports = Ports { servers: vec![(10.0, 1.0); 2], flows: vec![flow.clone(), flow] };
    assert_eq!(exact(&ports.ask("pmoo arbitrary ungrouped"), "f0", 0), "40/9");
    assert_eq!(exact(&ports.ask("sfa arbitrary ungrouped"), "f0", 0), "470/81");
}

#[test]
fn flows_that_come_over_one_link_are_grouped() {
    // f1 and f2 meet f0 at s1 and come from s0. One by one each pays for the other at s0: T = 1 + 10/10, burst 12, so
    // f0 is left (8, 1 + 24/10). Together they leave s0 with 20 + 2 · 1: (8, 1 + 22/10).
    let flow = |path: &[usize]| (10.0, 1.0, path.to_vec());
    let ports =
        Ports { servers: vec![(10.0, 1.0); 2], flows: vec![flow(&[1]), flow(&[0, 1]), flow(&[0, 1])] };
    assert_eq!(exact(&ports.ask("sfa fifo ungrouped"), "f0", 0), "93/20");
    assert_eq!(exact(&ports.ask("sfa fifo grouped"), "f0", 0), "89/20");
}

#[test]
fn a_ring_has_a_fixed_point() {
    // Three servers (10, 0), three flows of burst 10 and rate 1 over two servers each. With delay d everywhere:
    // d = (10 + 10 + d)/10, so d = 20/9.
    let flow = |from: usize| (10.0, 1.0, vec![from, (from + 1) % 3]);
    let ring = Ports { servers: vec![(10.0, 0.0); 3], flows: (0..3).map(flow).collect() };
    assert_eq!(exact(&ring.ask("tfa fifo ungrouped"), "f0", 0), "40/9");
    let rounded = delays(&ring.ask("tfa fifo ungrouped rounded"))[0];
    assert!((40.0 / 9.0..40.0 / 9.0 + 1e-14).contains(&rounded), "{rounded}");
    // Separated, bursts x that have passed one server: x = 10 + 1 · (10 + x' )/10 of the cross flows there, x' = x: the
    // cross flow at the first server has passed one, that at the second is fresh. At its first server a flow is left
    // (9, x/10) and at its second (9, 1); x = 10 + x/10, x = 100/9. Delay 10/9 + 1 + 10/9.
    assert_eq!(exact(&ring.ask("sfa fifo ungrouped"), "f0", 0), "29/9");
}

#[test]
fn a_ring_that_feeds_itself_too_much_has_no_answer() {
    // Each of four flows passes four servers: burst grows by d each time, 4 · 10 + (0 + 1 + 2 + 3) · r · d ≤ 10 · d
    // needs 6r < 10. At r = 2 the load is 0.8 and nothing converges.
    let flow = |from: usize| (10.0, 2.0, (0..4).map(|step| (from + step) % 4).collect());
    let ring = Ports { servers: vec![(10.0, 0.0); 4], flows: (0..4).map(flow).collect() };
    let reply = ring.ask("tfa fifo ungrouped");
    assert!(
        reply["refused"]["no-fixed-point"]["message"].as_str().unwrap().contains("s0, s1, s2, s3"),
        "{reply}"
    );
    // Grouping caps what each link brings, and then there is one.
    assert!(ring.ask("tfa fifo grouped")["answer"].is_object());
}

#[test]
fn one_stage_of_priority_by_hand() {
    let reply = tandem().ask("tfa fifo");
    assert_eq!(reply["answer"]["grouping"], "off");
    assert_eq!(reply["answer"]["time_unit"], "own");
    assert_eq!(reply["answer"]["servers"][0]["backlog_exact"], "22");
    assert_eq!(reply["answer"]["servers"][0]["load_exact"], "1/5");
}

/// The demonstration network of Saihu's readers: units, several pieces, multicast.
fn with_units() -> String {
    json!({
        "network": {"name": "units", "packetizer": false, "multiplexing": "FIFO", "analysis_option": ["IS"],
                    "time_unit": "us", "data_unit": "B", "rate_unit": "Mbps"},
        "flows": [
            {"name": "f0", "path": ["a", "b"], "path_name": "p0", "multicast": [{"name": "p1", "path": ["a", "c"]}],
             "arrival_curve": {"bursts": [10, "2kB"], "rates": ["10kbps", 0.5]}, "max_packet_length": 50, "rate_unit": "kbps"},
            {"name": "f1", "path": ["a"], "arrival_curve": {"bursts": ["80b"], "rates": ["10kbps"]}},
            {"name": "f2", "path": ["b"], "arrival_curve": {"bursts": [10], "rates": ["10kbps"]}},
        ],
        "servers": [
            {"name": "a", "service_curve": {"latencies": [10, "1ms"], "rates": ["4Mbps", "50Mbps"]}, "capacity": 100},
            {"name": "b", "service_curve": {"latencies": [10, "1ms"], "rates": [4, 50]}, "capacity": 100},
            {"name": "c", "service_curve": {"latencies": [10], "rates": ["4Mbps"]}, "capacity": 100},
        ],
    })
    .to_string()
}

#[test]
fn units_pieces_and_multicast() {
    // a: 10 us + 160 bit / 4 Mbit/s = 50 us. b: f0 comes with 80.5 bit and at most 100 Mbit/s: at 80.5/99.99 us
    // 80.5 + 80 + 2 · 0.01 · 80.5/99.99 bit have come; served 10 us + that/4 after the start.
    let reply = ask(&with_units(), "tfa");
    assert_eq!(reply["answer"]["time_unit"], "s");
    let nanos: Vec<f64> = delays(&reply).iter().map(|delay| (delay * 1e9).round()).collect();
    assert_eq!(nanos, [99_324.0, 79_322.0, 50_000.0, 49_324.0]);
    assert_eq!(reply["answer"]["flows"][0]["targets"][1]["target"], "p1");
    // f0 is at a once although it goes two ways: the backlog there is 160 bit and what comes in 10 us.
    assert_eq!(reply["answer"]["servers"][0]["backlog_exact"], "801/5");
    let tenths = |question: &str| (delays(&ask(&with_units(), question))[0] * 1e7).round();
    assert_eq!(tenths("sfa fifo ungrouped"), 801.0);
    assert_eq!(tenths("pmoo arbitrary ungrouped"), 802.0);
}

#[test]
fn full_load_is_finite_in_order_and_not_in_any_order() {
    let flow = |path: &[usize]| (10.0, 5.0, path.to_vec());
    let full = Ports { servers: vec![(10.0, 1.0)], flows: vec![flow(&[0]), flow(&[0])] };
    let reply = full.ask("tfa fifo");
    assert_eq!(exact(&reply, "f0", 0), "3");
    assert!(reply["answer"]["notes"][0].as_str().unwrap().contains("fully loaded"));
    let reply = full.ask("tfa arbitrary");
    assert_eq!(reply["answer"]["flows"][0]["targets"][0]["delay"], Value::Null);
    assert!(reply["answer"]["notes"][1].as_str().unwrap().contains("no bound for f0, f1"));
    assert!(delays(&full.ask("tfa fifo rounded")).iter().all(|delay| (3.0..3.0 + 1e-14).contains(delay)));
}

#[test]
fn overload_names_server_and_flows() {
    let flow = |rate: f64| (10.0, rate, vec![0]);
    let over = Ports { servers: vec![(10.0, 1.0)], flows: vec![flow(6.0), flow(5.0)] };
    let reply = over.ask("tfa fifo");
    let said = reply["answer"]["notes"][0].as_str().unwrap();
    assert!(said.contains("server \"s0\": its load is 1.1"), "{said}");
    assert!(said.contains("limit: at most 1") && said.contains("flows f0, f1; lower their rates"), "{said}");
}

#[test]
fn an_overloaded_server_leaves_bounds_to_what_it_does_not_touch() {
    let flows = vec![
        (10.0, 6.0, vec![0]),
        (10.0, 5.0, vec![0, 1]),
        (10.0, 1.0, vec![1, 2]),
        (10.0, 1.0, vec![3]),
        (10.0, 1.0, vec![3, 2]),
    ];
    let over = Ports { servers: vec![(10.0, 1.0); 4], flows };
    for question in
        ["tfa fifo", "sfa fifo", "tfa arbitrary", "sfa arbitrary", "pmoo arbitrary", "tfa fifo rounded"]
    {
        let reply = over.ask(question);
        let of = |flow: usize| reply["answer"]["flows"][flow]["targets"][0]["delay"].as_f64();
        // Those of the server, and one that shares a server with them later; the last meets that one behind it.
        assert_eq!([of(0), of(1), of(2), of(4)], [None; 4], "{question}: {reply}");
        assert!(of(3).is_some(), "{question}: {reply}");
    }
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    for (question, named) in
        [("pmoo fifo", "pmoo does not go with fifo"), ("plp arbitrary", "plp does not go with")]
    {
        let reply = tandem().ask(question);
        assert!(reply["refused"]["input"][0]["message"].as_str().unwrap().contains(named), "{reply}");
    }
}

#[test]
fn broken_networks_name_line_and_cure() {
    let good = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&with_units()).unwrap()).unwrap();
    let cases = [
        ("\"4Mbps\"", "\"4Mbit\"", "is no unit of a rate"),
        ("\"10kbps\"", "\"10us\"", "is no unit of a rate"),
        ("\"4Mbps\"", "0", "its rate is not above zero"),
        ("\"80b\"", "\"-80b\"", "is below zero"),
        ("\"c\"", "\"d\"", "server \"c\", which is not there"),
        ("\"FIFO\"", "\"LIFO\"", "there is no multiplexing"),
        ("\"us\"", "\"Mbps\"", "is no unit here"),
        ("\"path_name\": \"p0\"", "\"path_name\": 7", "it cannot be read"),
    ];
    for (old, new, said) in cases {
        assert!(good.contains(old), "{old}");
        // The names of servers are changed where they are declared, which is the last place.
        let at = if old == "\"c\"" { good.rfind(old) } else { good.find(old) }.unwrap();
        let broken = format!("{}{new}{}", &good[..at], &good[at + old.len()..]);
        let reply = ask(&broken, "tfa");
        let all = reply["refused"]["input"].as_array().unwrap_or_else(|| panic!("{new}: {reply}"));
        let found = all.iter().find(|one| one["message"].as_str().unwrap().contains(said));
        let found = found.unwrap_or_else(|| panic!("{new}: {reply}"));
        assert!(found["line"].as_u64().unwrap() > 1 && found["cure"] != "", "{found}");
    }
    for text in ["", "{}", "[1]", "{\"network\": {}, \"flows\": [], \"servers\": []}", "{\"network\": 3}"] {
        assert!(ask(text, "tfa")["refused"]["input"].is_array(), "{text}");
    }
}
