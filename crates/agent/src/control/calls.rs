//! Execution of calls: work that must not be abandoned, and work that may block.

use tonic::{Response, Status};

/// Runs work to its end even if the caller stops waiting.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::spawn(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}

/// Runs work that may block off the control thread, and returns its answer.
pub(super) async fn answered<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}
