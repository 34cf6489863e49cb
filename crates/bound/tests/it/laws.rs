//! What every analysis of every network keeps, on networks drawn at random.

use proptest::prelude::*;

use crate::networks::{Ports, delays};

/// Feed-forward networks: paths ascend.
fn networks() -> impl Strategy<Value = Ports> {
    (2_usize..7, 2_usize..9).prop_flat_map(|(servers, flows)| {
        let services = proptest::collection::vec((50_u32..200, 0_u32..5), servers);
        let path = proptest::sample::subsequence((0..servers).collect::<Vec<_>>(), 1..=servers);
        let flows = proptest::collection::vec((0_u32..100, 1_u32..5, path), flows);
        (services, flows).prop_map(|(services, flows)| Ports {
            servers: services.into_iter().map(|(rate, latency)| (rate.into(), latency.into())).collect(),
            flows: flows.into_iter().map(|(burst, rate, path)| (burst.into(), rate.into(), path)).collect(),
        })
    })
}

const ALL: [&str; 8] = [
    "tfa fifo ungrouped",
    "tfa fifo grouped",
    "tfa arbitrary ungrouped",
    "sfa fifo ungrouped",
    "sfa fifo grouped",
    "sfa arbitrary ungrouped",
    "pmoo arbitrary ungrouped",
    "pmoo arbitrary grouped",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rounding_never_undercuts_and_hardly_widens(ports in networks()) {
        for question in ALL {
            let (exact, rounded) = (delays(&ports.ask(question)), delays(&ports.ask(&format!("{question} rounded"))));
            for (exact, rounded) in exact.into_iter().zip(rounded) {
                prop_assert!(exact <= rounded, "{question}: {exact} > {rounded}");
                prop_assert!(rounded <= exact * (1.0 + 1e-12) + 1e-12, "{question}: {exact} << {rounded}");
            }
        }
    }

    #[test]
    fn more_knowledge_never_widens(ports in networks()) {
        // What is known more: capacities of links, the order of service. Pay multiplexing once with grouping is not
        // here: it cuts flows where their links part, and that may cost a little more than the capacity of the link
        // gains.
        for (more, less) in [
            ("tfa fifo grouped", "tfa fifo ungrouped"),
            ("sfa fifo ungrouped", "sfa arbitrary ungrouped"),
            ("sfa fifo grouped", "sfa fifo ungrouped"),
        ] {
            for (tight, loose) in delays(&ports.ask(more)).into_iter().zip(delays(&ports.ask(less))) {
                prop_assert!(tight <= loose * (1.0 + 1e-12), "{more} {tight} above {less} {loose}");
            }
        }
    }

    #[test]
    fn more_traffic_never_shortens(mut ports in networks(), which in any::<prop::sample::Index>()) {
        let before: Vec<Vec<f64>> = ALL.iter().map(|question| delays(&ports.ask(question))).collect();
        let index = which.index(ports.flows.len());
        ports.flows[index].0 += 10.0;
        for (question, before) in ALL.iter().zip(before) {
            for (less, more) in before.into_iter().zip(delays(&ports.ask(question))) {
                prop_assert!(less <= more, "{question}: {less} > {more}");
            }
        }
    }

    #[test]
    fn one_server_is_the_same_to_every_method_in_order(burst in 1_u32..100, other in 1_u32..100) {
        let flow = |burst: u32| (f64::from(burst), 1.0, vec![0]);
        let ports = Ports { servers: vec![(10.0, 2.0)], flows: vec![flow(burst), flow(other)] };
        let total = delays(&ports.ask("tfa fifo ungrouped"));
        prop_assert!((total[0] - (2.0 + f64::from(burst + other) / 10.0)).abs() < 1e-12);
    }
}
