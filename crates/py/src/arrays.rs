//! What arrays of NumPy are handed to. They come as buffers, are copied, and go back as bytes.

use std::ops::Range;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wg_record::Sketch;

/// Counts of integers in the buckets of tracking's own sketches.
#[pyclass]
#[derive(Default)]
pub struct Counts {
    of: Sketch,
}

/// Number, least, greatest, sum and squared deviations of the values; lowest and highest value and count of each bucket.
type Counted<'py> = (u64, i64, i64, i128, f64, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl Counts {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Counts the values of an array of 64-bit integers.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
    fn add(&mut self, py: Python<'_>, values: PyBuffer<i64>) -> PyResult<()> {
        let values = values.to_vec(py)?;
        let of = &mut self.of;
        py.detach(|| of.add_all(&values));
        Ok(())
    }

    /// Number, least, greatest and sum of the values, exact; the sum of their squared deviations from the mean; and as
    /// bytes of 64-bit integers the lowest and the highest value of each bucket, ascending, and its count. None without
    /// values.
    fn counted<'py>(&self, py: Python<'py>) -> Option<Counted<'py>> {
        let (min, max) = (self.of.min()?, self.of.max()?);
        let buckets: Vec<_> = self.of.buckets().collect();
        let bytes = |of: fn(&wg_record::Bucket) -> [u8; 8]| {
            PyBytes::new(py, &buckets.iter().flat_map(of).collect::<Vec<u8>>())
        };
        Some((
            self.of.n(),
            min,
            max,
            self.of.sum(),
            self.of.squared_deviations(),
            bytes(|bucket| bucket.low.to_ne_bytes()),
            bytes(|bucket| bucket.high.to_ne_bytes()),
            bytes(|bucket| bucket.count.to_ne_bytes()),
        ))
    }
}

/// The local maxima of the sums of the first `2^octaves` harmonics of a power spectrum: their ordinates, of the highest
/// harmonic, as bytes of 64-bit integers, and the sums there, of doubles. Only ordinates from `first` to before `past`
/// are looked at. Raises ValueError where these are not all in the spectrum.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn harmonic_peaks<'py>(
    py: Python<'py>,
    power: PyBuffer<f64>,
    first: usize,
    past: usize,
    octaves: u32,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let power = copied(py, &power, Some(first..past))?;
    let found = py.detach(|| wg_stats::peaks(&power, first..past, octaves));
    let places = found.iter().flat_map(|peak| (peak.ordinate as u64).to_ne_bytes());
    let heights = found.iter().flat_map(|peak| peak.height.to_ne_bytes());
    Ok((PyBytes::new(py, &places.collect::<Vec<_>>()), PyBytes::new(py, &heights.collect::<Vec<_>>())))
}

/// The medians of the sections of doubles from each edge to the next. Raises ValueError where the edges do not ascend
/// within the values.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn section_medians(
    py: Python<'_>,
    values: PyBuffer<f64>,
    edges: Vec<usize>,
) -> PyResult<Vec<f64>> {
    let ends = edges.first().copied().unwrap_or_default()..edges.last().copied().unwrap_or_default();
    if !edges.is_sorted() {
        return Err(PyValueError::new_err("the edges do not ascend"));
    }
    let values = copied(py, &values, Some(ends))?;
    Ok(py.detach(|| wg_stats::medians(&values, &edges)))
}

/// Sums of weights in bins of `width` folded at `frequency`: for each of `rows` parts of the series `phases` doubles, as
/// bytes.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn fold<'py>(
    py: Python<'py>,
    weights: PyBuffer<f64>,
    width: f64,
    frequency: f64,
    rows: usize,
    phases: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let weights = copied(py, &weights, None)?;
    Ok(doubles(py, &py.detach(|| wg_stats::folded(&weights, width, frequency, rows, phases))))
}

/// For each row of `shifts` the sum of all rows of `cells`, of `phases` doubles each, moved right by its own number
/// round the ring, as bytes. Raises ValueError without a phase.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn superpose<'py>(
    py: Python<'py>,
    cells: PyBuffer<f64>,
    phases: usize,
    shifts: PyBuffer<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    if phases == 0 {
        return Err(PyValueError::new_err("a ring has one phase at least"));
    }
    let (cells, shifts) = (copied(py, &cells, None)?, copied(py, &shifts, None)?);
    Ok(doubles(py, &py.detach(|| wg_stats::superposed(&cells, phases, &shifts))))
}

/// For each of `wanted` the place of the first number of `among` that equals it, -1 where there is none, as bytes of
/// 64-bit integers.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn first_places<'py>(
    py: Python<'py>,
    among: PyBuffer<u64>,
    wanted: PyBuffer<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (among, wanted) = (copied(py, &among, None)?, copied(py, &wanted, None)?);
    let found = py.detach(|| wg_stats::first_places(&among, &wanted));
    let number = |place: Option<usize>| place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    let places = found.into_iter().flat_map(|place| number(place).to_ne_bytes());
    Ok(PyBytes::new(py, &places.collect::<Vec<_>>()))
}

/// The knots of the shortest line from the first of some points to the last that stays within `band` of those between:
/// their abscissae and ordinates, as bytes. Raises ValueError where the points have not as many of both.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 gives buffers by value")]
pub(crate) fn taut_string<'py>(
    py: Python<'py>,
    x: PyBuffer<f64>,
    y: PyBuffer<f64>,
    band: f64,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (x, y) = (copied(py, &x, None)?, copied(py, &y, None)?);
    if x.len() != y.len() {
        return Err(PyValueError::new_err(format!("{} abscissae, and {} ordinates", x.len(), y.len())));
    }
    let points: Vec<wg_stats::Knot> = x.into_iter().zip(y).collect();
    let (edges, heights): (Vec<f64>, Vec<f64>) =
        py.detach(|| wg_stats::taut(&points, band)).into_iter().unzip();
    Ok((doubles(py, &edges), doubles(py, &heights)))
}

/// The elements of an array, of which `needed` are looked at.
fn copied<T: Element>(py: Python<'_>, array: &PyBuffer<T>, needed: Option<Range<usize>>) -> PyResult<Vec<T>> {
    let elements = array.to_vec(py)?;
    match needed {
        Some(needed) if needed.end > elements.len() => Err(PyValueError::new_err(format!(
            "element {} is needed of an array of {}",
            needed.end,
            elements.len()
        ))),
        _ => Ok(elements),
    }
}

fn doubles<'py>(py: Python<'py>, values: &[f64]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())
}
