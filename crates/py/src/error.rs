//! The exception of this module.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    wiregauge._native,
    NativeError,
    PyException,
    "What could not be done, as a sentence for the user: which file, what happened, the cure."
);
