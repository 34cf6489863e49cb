//! Runs a property as a question, to show that wrong implementations fail it.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

pub(crate) type Outcome = Result<(), TestCaseError>;

/// Whether a property holds for a bounded, repeatable set of cases.
pub(crate) fn holds<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> Outcome) -> bool {
    let config = Config { cases: 128, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng).run(&strategy, property).is_ok()
}
