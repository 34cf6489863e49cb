//! Numbers on the command line, checked against their bounds.

/// A value parser for a number from `least` to `most` of a unit. `nan` is out of bounds.
pub(crate) fn within(
    least: f64,
    most: f64,
    unit: &'static str,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("give a number from {least} to {most} {unit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_within_bounds_are_taken() {
        let seconds = within(0.1, 3_600.0, "s");
        assert_eq!(seconds("2.5"), Ok(2.5));
        assert_eq!(seconds("3600"), Ok(3_600.0));
        for none in ["nan", "NaN", "inf", "-inf", "-1", "0", "1e300", "3600.1", "", "two"] {
            assert_eq!(seconds(none), Err("give a number from 0.1 to 3600 s".to_owned()), "{none}");
        }
    }
}
