//! How calls are answered: by work that goes on to its end, or that may block.

use tonic::{Response, Status};

/// Work that goes on to its end although the caller waits no longer.
pub(super) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::spawn(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}

/// What work that may block answers, off the control thread.
pub(super) async fn answered<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<Response<T>, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Status::internal("the call failed; this is a defect of wiregauge"))?.map(Response::new)
}
