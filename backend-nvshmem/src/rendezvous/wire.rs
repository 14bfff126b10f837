//! What PEs say to PE 0, and what it answers. All numbers are little-endian.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Bytes;

/// The first bytes of a PE, and of PE 0: they differ, for a connection can meet itself.
const VISITOR: [u8; 8] = *b"1sided>1";
const ROOT: [u8; 8] = *b"1sided<1";

/// No message is longer.
const LONGEST: u32 = 1 << 16;

/// What a PE says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// What tells its job from others.
    pub(super) job: u64,
    pub(super) rank: u64,
    pub(super) n_pes: u64,
}

impl Hello {
    pub(super) const SIZE: usize = 40;

    /// As it is sent, with how long the PE will wait.
    pub(super) fn bytes(self, left: Duration) -> [u8; Hello::SIZE] {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let words = [u64::from_le_bytes(VISITOR), self.job, self.rank, self.n_pes, left];
        let mut bytes = [0; Hello::SIZE];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// What was sent, and how long that PE will wait; `None` if it was no PE.
    pub(super) fn read(bytes: &[u8; Hello::SIZE]) -> Option<(Hello, Duration)> {
        let mut words = bytes.chunks_exact(8).map(|chunk| {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let mut next = || words.next();
        let (magic, job, rank, n_pes, left) = (next()?, next()?, next()?, next()?, next()?);
        let is_pe = magic == u64::from_le_bytes(VISITOR);
        is_pe.then_some((Hello { job, rank, n_pes }, Duration::from_millis(left)))
    }

    /// Whether these bytes may be the beginning of a hello.
    pub(super) fn may_begin_with(bytes: &[u8]) -> bool {
        bytes.iter().zip(VISITOR).all(|(byte, expected)| *byte == expected)
    }
}

/// What PE 0 answers in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Bytes(Bytes),
    Missing(String),
    Disagreement(String),
    Failed(String),
}

impl Answer {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let (kind, text) = match self {
            Answer::Bytes(bytes) => (0, &bytes[..]),
            Answer::Missing(why) => (1, why.as_bytes()),
            Answer::Disagreement(why) => (2, why.as_bytes()),
            Answer::Failed(why) => (3, why.as_bytes()),
        };
        let text = &text[..text.len().min(LONGEST as usize)];
        [&[kind], &(text.len() as u32).to_le_bytes()[..], text].concat()
    }
}

/// What PE 0 says as soon as it heard a hello.
pub(super) const WELCOME: [u8; 8] = ROOT;

/// Whether it is PE 0 that listens.
pub(super) fn read_welcome(talk: &mut Talk) -> io::Result<bool> {
    let mut magic = [0; 8];
    talk.hear(&mut magic)?;
    Ok(magic == WELCOME)
}

pub(super) fn read_answer(talk: &mut Talk) -> io::Result<Answer> {
    let damaged = || io::Error::new(ErrorKind::InvalidData, "a damaged answer");
    let mut head = [0; 5];
    talk.hear(&mut head)?;
    let [kind, length @ ..] = head;
    let length = Some(u32::from_le_bytes(length)).filter(|&length| length <= LONGEST).ok_or_else(damaged)?;
    let mut text = vec![0; length as usize];
    talk.hear(&mut text)?;
    let words = || String::from_utf8_lossy(&text).into_owned();
    Ok(match kind {
        0 => Answer::Bytes(text.as_slice().try_into().map_err(|_| damaged())?),
        1 => Answer::Missing(words()),
        2 => Answer::Disagreement(words()),
        3 => Answer::Failed(words()),
        _ => return Err(damaged()),
    })
}

/// A connection with a limit: that of each read alone would start anew with every byte.
pub(super) struct Talk {
    stream: TcpStream,
    deadline: Instant,
}

impl Talk {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> Talk {
        let _ = stream.set_nodelay(true); // it only saves time
        Talk { stream, deadline }
    }

    pub(super) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write_all(bytes)
    }

    fn hear(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut heard = 0;
        while heard < bytes.len() {
            self.stream.set_read_timeout(Some(self.left()?))?;
            match self.stream.read(&mut bytes[heard..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => heard += more,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// Whether time ran out. (Systems disagree on how a read says so.)
pub(super) fn is_timeout(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
