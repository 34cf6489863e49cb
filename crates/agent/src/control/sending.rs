//! Files of records, sent in chunks from where the caller has them, with the hash of the whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tonic::Status;
use wg_record::segment::segment_files;

use super::session::Session;
use crate::proto;
use crate::recording::{host_counters, packet_capture};

/// Bytes of a file sent at a time.
const CHUNK: usize = 256 << 10;

type Chunks = mpsc::Sender<Result<proto::Chunk, Status>>;

/// What a run left in its folder.
pub(super) fn files(records: &Path) -> Result<Vec<PathBuf>, Status> {
    let mut files = segment_files(records).map_err(|error| Status::data_loss(error.to_string()))?;
    let others = [packet_capture::FILE, host_counters::FILE].map(|name| records.join(name));
    files.extend(others.into_iter().filter(|file| file.exists()));
    Ok(files)
}

/// Sends all of them, each from where `have` says; ends early when the caller has gone. `session` is kept alive by it.
pub(super) async fn send(
    files: Vec<PathBuf>,
    have: Vec<proto::FilePart>,
    session: Option<Arc<Session>>,
    to: Chunks,
) {
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

/// One file; all of it where the caller has more than there is.
async fn send_file(
    path: &Path,
    file: String,
    from: u64,
    session: Option<&Session>,
    to: &Chunks,
) -> std::io::Result<()> {
    let mut source = tokio::fs::File::open(path).await?;
    let from = if from > source.metadata().await?.len() { 0 } else { from };
    let (mut hash, mut at) = (Context::new(&SHA256), 0_u64);
    loop {
        let mut data = vec![0; CHUNK];
        let read = source.read(&mut data).await?;
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
