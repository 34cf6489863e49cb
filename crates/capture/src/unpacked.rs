//! Compressed captures, read as far as they go.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// First bytes of a file compressed by gzip (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a frame of zstd (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Number of first bytes that tell a compression.
pub(crate) const MAGIC: usize = 4;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// The compression of a file with these first bytes; `None`: it has none.
    pub(crate) fn of(magic: &[u8]) -> Option<Self> {
        if magic.starts_with(&GZIP) { Some(Self::Gzip) } else { (magic == ZSTD).then_some(Self::Zstd) }
    }
}

/// How the compressed data ended, for whoever reads what was in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    cut: Arc<AtomicBool>,
    damaged: Arc<AtomicBool>,
}

impl Ending {
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }
}

/// The content of a compressed file; it ends where the compressed data is cut or damaged.
pub(crate) struct Unpacked {
    decoder: Box<dyn Read + Send>,
    ending: Ending,
}

impl Unpacked {
    pub(crate) fn new(file: File, compression: Compression) -> (Self, Ending) {
        let ending = Ending::default();
        let decoder: Box<dyn Read + Send> = match compression {
            Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
            Compression::Zstd => Box::new(Frames(State::Between(Source { file, is_at_end: false }))),
        };
        (Self { decoder, ending: ending.clone() }, ending)
    }
}

impl Read for Unpacked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ending.is_cut() || self.ending.is_damaged() {
            return Ok(0);
        }
        self.decoder.read(into).or_else(|error| {
            match error.kind() {
                ErrorKind::UnexpectedEof => &self.ending.cut,
                ErrorKind::InvalidData | ErrorKind::InvalidInput => &self.ending.damaged,
                _ => return Err(error),
            }
            .store(true, Ordering::Relaxed);
            Ok(0)
        })
    }
}

/// A file that knows whether more was asked of it than it has.
struct Source {
    file: File,
    is_at_end: bool,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(into)?;
        self.is_at_end |= got == 0 && !into.is_empty();
        Ok(got)
    }
}

/// The content of a file compressed by zstd: one frame behind the other, as programs append them.
struct Frames(State);

enum State {
    Between(Source),
    Within(Box<FrameDecoder>, Source),
    Ended,
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.0, State::Ended) {
                State::Ended => return Ok(0),
                State::Between(mut source) => {
                    let mut first = [0; 1];
                    if source.read(&mut first)? == 0 {
                        return Ok(0);
                    }
                    self.0 = opened(source, first[0])?;
                }
                State::Within(mut frame, mut source) => {
                    while frame.can_collect() == 0 && !frame.is_finished() {
                        frame
                            .decode_blocks(&mut source, BlockDecodingStrategy::UptoBlocks(1))
                            .map_err(|_| ending(&source))?;
                    }
                    let got = frame.read(into)?;
                    if got > 0 || into.is_empty() {
                        self.0 = State::Within(frame, source);
                        return Ok(got);
                    }
                    let stated = frame.get_checksum_from_data();
                    if stated.is_some() && stated != frame.get_calculated_checksum() {
                        return Err(ErrorKind::InvalidData.into());
                    }
                    self.0 = State::Between(source);
                }
            }
        }
    }
}

/// The frame that begins with this byte, or what is behind it where it is one to be skipped.
fn opened(mut source: Source, first: u8) -> io::Result<State> {
    let mut decoder = FrameDecoder::new();
    match decoder.init(io::Cursor::new([first]).chain(&mut source)) {
        Ok(()) => Ok(State::Within(Box::new(decoder), source)),
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
            let skipped = io::copy(&mut source.by_ref().take(u64::from(length)), &mut io::sink())?;
            if skipped < u64::from(length) {
                Err(ErrorKind::UnexpectedEof.into())
            } else {
                Ok(State::Between(source))
            }
        }
        Err(_) => Err(ending(&source)),
    }
}

/// The end of data that cannot be decoded: cut, if more was asked for than there is.
fn ending(source: &Source) -> io::Error {
    if source.is_at_end { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData }.into()
}
