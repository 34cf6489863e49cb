//! Sends record files in chunks, from the caller's offset, with the hash of the whole file.
//!
//! A disk that does not answer must not block a caller for ever: every access has a time limit, after which the
//! caller gets an error that names the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tonic::Status;
use wg_record::segment::segment_files;

use super::calls::answered;
use super::session::Session;
use crate::proto;
use crate::recording::{host_counters, packet_capture};

/// Length of a chunk, bytes.
const CHUNK: usize = 256 << 10;
/// Time limit of one disk access: a list of files, or a chunk.
const PATIENCE: Duration = Duration::from_secs(20);

type Chunks = mpsc::Sender<Result<proto::Chunk, Status>>;

/// The files in a run's folder.
fn files(records: &Path) -> Result<Vec<PathBuf>, Status> {
    let mut files = segment_files(records).map_err(|error| Status::data_loss(error.to_string()))?;
    let others = [packet_capture::FILE, host_counters::FILE].map(|name| records.join(name));
    files.extend(others.into_iter().filter(|file| file.exists()));
    Ok(files)
}

/// Sends all files in a run's folder, each from the offset in `have`; ends early when the caller has gone. Keeps
/// `session` alive.
pub(super) async fn send(
    records: PathBuf,
    have: Vec<proto::FilePart>,
    session: Option<Arc<Session>>,
    to: Chunks,
) {
    let files = match listed(records).await {
        Ok(files) => files,
        Err(refused) => return drop(to.send(Err(refused)).await),
    };
    for path in files {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let from = have.iter().find(|part| part.file == name).map_or(0, |part| part.bytes);
        let sent = send_file(&path, name, from, session.as_deref(), &to).await;
        if let Err(error) = sent {
            let problem = format!("cannot read {}: {error}", path.display());
            drop(to.send(Err(Status::data_loss(problem))).await);
            return;
        }
    }
}

/// Lists the files of a run off the control thread.
async fn listed(records: PathBuf) -> Result<Vec<PathBuf>, Status> {
    in_time(answered(move || files(&records))).await.map(tonic::Response::into_inner)
}

/// The answer of a disk access, or an error if it exceeds the time limit.
pub(super) async fn in_time<T>(asked: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("the disk of the records does not answer")))
}

/// As [`in_time`], for reading a file.
async fn read_in_time<T>(
    patience: Duration,
    asked: impl Future<Output = std::io::Result<T>>,
) -> std::io::Result<T> {
    tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| {
        let why = format!("the disk does not answer within {patience:?}");
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
    })
}

/// Sends one file; from the start if the caller has more than there is.
async fn send_file(
    path: &Path,
    file: String,
    from: u64,
    session: Option<&Session>,
    to: &Chunks,
) -> std::io::Result<()> {
    let mut source = read_in_time(PATIENCE, tokio::fs::File::open(path)).await?;
    let from = if from > read_in_time(PATIENCE, source.metadata()).await?.len() { 0 } else { from };
    let (mut hash, mut at) = (Context::new(&SHA256), 0_u64);
    loop {
        let mut data = vec![0; CHUNK];
        let read = read_in_time(PATIENCE, source.read(&mut data)).await?;
        data.truncate(read);
        hash.update(&data);
        let begin = at;
        at += u64::try_from(read).unwrap_or(0);
        let over = read == 0;
        if !over && at <= from {
            continue;
        }
        // The caller has the first part of this chunk.
        let had = usize::try_from(from.saturating_sub(begin)).unwrap_or(0).min(data.len());
        let sha256 = if over { hash.clone().finish().as_ref().to_vec() } else { Vec::new() };
        let offset = begin + u64::try_from(had).unwrap_or(0);
        let chunk = proto::Chunk { file: file.clone(), data: data.split_off(had), offset, sha256 };
        if to.send(Ok(chunk)).await.is_err() || over {
            return Ok(());
        }
        if let Some(session) = session {
            session.alive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disk_that_does_not_answer_is_named_in_time() {
        let stuck = std::future::pending::<std::io::Result<()>>();
        let refused = read_in_time(Duration::from_millis(10), stuck).await.expect_err("nobody answers");
        assert_eq!(refused.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(refused.to_string(), "the disk does not answer within 10ms");
        let answers = read_in_time(Duration::from_secs(60), async { Ok(7) });
        assert_eq!(answers.await.expect("it answers"), 7);
    }
}
