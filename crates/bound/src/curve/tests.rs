use proptest::prelude::*;

use super::*;
use crate::number::Enclosure;
use crate::rational::Rational;

fn q(n: i128, d: i128) -> Rational {
    Rational::new(n, d)
}

fn arrivals(buckets: &[(i128, i128)]) -> Arrival<Rational> {
    let bucket = |(burst, rate): &(i128, i128)| Bucket { burst: q(*burst, 1), rate: q(*rate, 1) };
    Arrival::new(buckets.iter().map(bucket).collect())
}

fn service(pieces: &[(i128, i128)]) -> Service<Rational> {
    let piece = |(rate, latency): &(i128, i128)| RateLatency { rate: q(*rate, 1), latency: q(*latency, 1) };
    Service::new(pieces.iter().map(piece).collect())
}

fn enclosed_arrival(curve: &Arrival<Rational>) -> Arrival<Enclosure> {
    let bucket =
        |b: &Bucket<Rational>| Bucket { burst: Enclosure::of(&b.burst), rate: Enclosure::of(&b.rate) };
    Arrival::new(curve.buckets().iter().map(bucket).collect())
}

fn enclosed_service(curve: &Service<Rational>) -> Service<Enclosure> {
    let piece = |p: &RateLatency<Rational>| RateLatency {
        rate: Enclosure::of(&p.rate),
        latency: Enclosure::of(&p.latency),
    };
    Service::new(curve.pieces().iter().map(piece).collect())
}

/// Values of a curve at an instant, straight from its definition.
fn come(curve: &[(i128, i128)], t: &Rational) -> Rational {
    curve.iter().map(|(b, r)| &q(*b, 1) + &(&q(*r, 1) * t)).min().unwrap()
}

fn served(curve: &[(i128, i128)], t: &Rational) -> Rational {
    let piece = |(r, l): &(i128, i128)| &q(*r, 1) * &(t - &q(*l, 1)).max(Rational::ZERO);
    curve.iter().map(piece).max().unwrap()
}

/// When a service curve reaches `y`.
fn reached(curve: &[(i128, i128)], y: &Rational) -> Rational {
    curve.iter().map(|(r, l)| &q(*l, 1) + &(y / &q(*r, 1))).min().unwrap()
}

fn buckets() -> impl Strategy<Value = Vec<(i128, i128)>> {
    proptest::collection::vec((0_i128..2_000, 0_i128..60), 1..5)
}

fn pieces() -> impl Strategy<Value = Vec<(i128, i128)>> {
    proptest::collection::vec((1_i128..100, 0_i128..40), 1..4)
}

/// Every instant at which a deviation can be greatest: where buckets cross, pieces cross, or one reaches the other.
fn instants(b: &[(i128, i128)], p: &[(i128, i128)]) -> Vec<Rational> {
    let mut all = vec![Rational::ZERO];
    for (i, (burst, rate)) in b.iter().enumerate() {
        for (other, slower) in &b[i + 1..] {
            if rate != slower {
                all.push(Rational::new(other - burst, rate - slower));
            }
        }
        for (speed, latency) in p {
            if speed != rate {
                all.push(Rational::new(burst + speed * latency, speed - rate));
            }
            all.push(q(*latency, 1));
            for (another, later) in p {
                if another != speed {
                    let bend = Rational::new(another * later - speed * latency, another - speed);
                    let height = served(p, &bend);
                    if *rate > 0 {
                        all.push(&(&height - &q(*burst, 1)) / &q(*rate, 1));
                    }
                    all.push(bend);
                }
            }
        }
    }
    all.retain(|t| t.signum() >= 0);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn deviations_are_the_suprema_of_their_definition(b in buckets(), p in pieces()) {
        let (curve, guaranteed) = (arrivals(&b), service(&p));
        let slowest = b.iter().map(|(_, rate)| *rate).min().unwrap();
        let fastest = p.iter().map(|(rate, _)| *rate).max().unwrap();
        prop_assume!(!curve.is_none());
        let (delay, backlog) = (curve.delay(&guaranteed), curve.backlog(&guaranteed));
        prop_assert_eq!(delay.is_some(), slowest <= fastest);
        prop_assert_eq!(backlog.is_some(), slowest <= fastest);
        let (Some(delay), Some(backlog)) = (delay, backlog) else { return Ok(()) };
        let all = instants(&b, &p);
        let horizontal = all.iter().map(|t| &reached(&p, &come(&b, t)) - t).max().unwrap();
        let vertical = all.iter().map(|t| &come(&b, t) - &served(&p, t)).max().unwrap();
        prop_assert_eq!(&delay, &horizontal.max(Rational::ZERO));
        prop_assert_eq!(&backlog, &vertical.max(Rational::ZERO));
        let (rounded, rough) = (enclosed_arrival(&curve), enclosed_service(&guaranteed));
        let above = |enclosed: Option<Enclosure>, exact: &Rational| {
            let high = enclosed.unwrap().upper();
            Rational::from_f64(high).unwrap() >= *exact && high <= exact.to_f64_up() * (1.0 + 1e-9) + 1e-9
        };
        prop_assert!(above(rounded.delay(&rough), &delay));
        prop_assert!(above(rounded.backlog(&rough), &backlog));
    }

    #[test]
    fn a_busy_period_ends_where_service_has_caught_up(b in buckets(), p in pieces()) {
        let (curve, guaranteed) = (arrivals(&b), service(&p));
        prop_assume!(!curve.is_none());
        let Some(end) = curve.busy_period(&guaranteed) else { return Ok(()) };
        prop_assert!(come(&b, &end) <= served(&p, &end) || end.is_zero());
        for share in 1..8 {
            let before = &end * &q(share, 8);
            prop_assert!(come(&b, &before) >= served(&p, &before));
        }
    }

    #[test]
    fn a_sum_is_the_sum_at_every_instant(a in buckets(), b in buckets(), c in buckets(), n in 0_i128..5_000, d in 1_i128..60) {
        let t = q(n, d);
        let [x, y, z] = [&a, &b, &c].map(|list| arrivals(list));
        let sum = Arrival::sum(&[&x, &y, &z]);
        let value = |curve: &Arrival<Rational>| {
            curve.buckets().iter().map(|bucket| &bucket.burst + &(&bucket.rate * &t)).min().unwrap()
        };
        prop_assert_eq!(value(&sum), &(&come(&a, &t) + &come(&b, &t)) + &come(&c, &t));
        prop_assert_eq!(value(&x.limited(&y)), come(&a, &t).min(come(&b, &t)));
        let later = q(3, 7);
        prop_assert_eq!(value(&x.delayed(&later)), come(&a, &(&t + &later)));
        // Least form: no bucket is dispensable.
        let rates: Vec<_> = sum.buckets().iter().map(|bucket| bucket.rate.clone()).collect();
        prop_assert!(rates.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn convolution_is_commutative_associative_and_adds_latencies(a in pieces(), b in pieces(), c in pieces(), n in 0_i128..400) {
        let [x, y, z] = [&a, &b, &c].map(|list| service(list));
        let t = q(n, 3);
        let value = |curve: &Service<Rational>| {
            let piece = |p: &RateLatency<Rational>| &p.rate * &(&t - &p.latency).max(Rational::ZERO);
            curve.pieces().iter().map(piece).max().unwrap()
        };
        prop_assert_eq!(value(&x.then(&y)), value(&y.then(&x)));
        prop_assert_eq!(value(&x.then(&y).then(&z)), value(&x.then(&y.then(&z))));
        prop_assert!(value(&x.then(&y)) <= value(&x));
        // The definition, at as many instants as it takes to be close: never above any of them.
        for k in 0..=60 {
            let first = &t * &q(k, 60);
            prop_assert!(value(&x.then(&y)) <= &served(&a, &first) + &served(&b, &(&t - &first)));
        }
    }

    #[test]
    fn what_leaves_is_bounded_by_backlog_and_rate(burst in 0_i128..900, rate in 0_i128..30, p in pieces()) {
        let (curve, guaranteed) = (arrivals(&[(burst, rate)]), service(&p));
        let output = curve.served(&guaranteed);
        prop_assert_eq!(output.is_some(), curve.backlog(&guaranteed).is_some());
        if let Some(output) = output {
            prop_assert_eq!(Some(output.burst().clone()), curve.backlog(&guaranteed));
        }
    }
}

#[test]
fn one_bucket_and_one_server_by_hand() {
    // Le Boudec and Thiran, chapter 1: b = 100, r = 2 through R = 10, T = 3: delay T + b/R, backlog b + rT.
    let (curve, guaranteed) = (arrivals(&[(100, 2)]), service(&[(10, 3)]));
    assert_eq!(curve.delay(&guaranteed), Some(q(13, 1)));
    assert_eq!(curve.backlog(&guaranteed), Some(q(106, 1)));
    assert_eq!(curve.busy_period(&guaranteed), Some(q(130, 8)));
    let left = guaranteed.left_over_arbitrary(&curve).unwrap();
    assert_eq!(left, Service::rate_latency(q(8, 1), q(130, 8)));
    let left = guaranteed.left_overs_fifo(&curve);
    assert_eq!(left, [RateLatency { rate: q(8, 1), latency: q(13, 1) }]);
}

#[test]
fn convolution_of_convex_curves_by_hand() {
    // Slopes in order of height: 1 for 10/9, then 2 for 5/4, then 10.
    let both = service(&[(1, 0), (10, 1)]).then(&service(&[(2, 0), (10, 1)]));
    let at = |t: Rational| both.pieces().iter().map(|p| &p.rate * &(&t - &p.latency)).max().unwrap();
    assert_eq!(at(q(1, 1)), q(1, 1));
    assert_eq!(at(q(19, 9)), q(28, 9));
    assert_eq!(at(q(10, 9).plus(&q(5, 4)).plus(&q(1, 1))), q(10, 9).plus(&q(5, 2)).plus(&q(10, 1)));
}

#[test]
fn a_variable_bit_rate_flow_by_hand() {
    // T-SPEC (p, M, r, b) = (10, 4, 2, 20) through (5, 1): the buckets cross at 2, 24 are served 1 + 24/5 after the
    // start.
    let (curve, guaranteed) = (arrivals(&[(4, 10), (20, 2)]), service(&[(5, 1)]));
    assert_eq!(curve.delay(&guaranteed), Some(q(19, 5)));
    assert_eq!(curve.backlog(&guaranteed), Some(q(19, 1)));
}

#[test]
fn at_full_load_fifo_is_bounded_and_the_left_over_is_not() {
    let (curve, guaranteed) = (arrivals(&[(100, 10)]), service(&[(10, 3)]));
    assert_eq!(curve.delay(&guaranteed), Some(q(13, 1)));
    assert_eq!(curve.busy_period(&guaranteed), None);
    assert_eq!(guaranteed.left_overs_fifo(&curve), []);
    assert_eq!(guaranteed.left_over_arbitrary(&curve), None);
}
