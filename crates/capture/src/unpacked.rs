//! Compressed captures, read as far as they go.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::MultiGzDecoder;

/// First bytes of a file compressed by gzip (RFC 1952, 2.3.1).
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

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

/// The content of a file compressed by gzip; it ends where the compressed data is cut or damaged.
pub(crate) struct Unpacked {
    decoder: MultiGzDecoder<File>,
    ending: Ending,
}

impl Unpacked {
    pub(crate) fn new(file: File) -> (Self, Ending) {
        let ending = Ending::default();
        (Self { decoder: MultiGzDecoder::new(file), ending: ending.clone() }, ending)
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
