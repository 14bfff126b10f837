//! The messages between PE 0 and the other PEs. All numbers are little-endian.
//!
//! | from | message | bytes |
//! |---|---|---|
//! | a PE | `1sided>3` | 8 |
//! | PE 0 | `1sided<3`, a challenge | 40 |
//! | the PE | a challenge, who and where it is, a seal: [`Hello`] | 104 |
//! | PE 0 | 0, and the connection ends; or 1 and a seal | 1 or 33 |
//! | PE 0, when all have come | [`Answer`] with a seal | up to 65,573 |

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Bytes;
use super::host::Host;
use super::seal::{Challenge, Seal, Session, What};

/// The first bytes of a PE, and of PE 0: they differ, because a connection can meet itself.
pub(super) const KNOCK: [u8; 8] = *b"1sided>3";
const ROOT: [u8; 8] = *b"1sided<3";

/// No message is longer.
const LONGEST: u32 = 1 << 16;

/// What a PE says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) rank: u64,
    pub(super) n_pes: u64,
    pub(super) host: Host,
}

/// The bytes of the numbers in a hello.
const NUMBERS: usize = 5 * 8;

impl Hello {
    /// Challenge, five numbers, seal.
    pub(super) const SIZE: usize = 32 + NUMBERS + 32;

    /// The message, with how long the PE will wait.
    pub(super) fn bytes(self, session: &Session, challenge: &Challenge, left: Duration) -> [u8; Hello::SIZE] {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let mut bytes = [0; Hello::SIZE];
        let (challenges, rest) = bytes.split_at_mut(32);
        let (words, seal) = rest.split_at_mut(NUMBERS);
        challenges.copy_from_slice(challenge);
        let numbers = [self.rank, self.n_pes, left, self.host.name, self.host.machine];
        for (chunk, word) in words.chunks_exact_mut(8).zip(numbers) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        seal.copy_from_slice(&session.seal(What::Hello, words));
        bytes
    }

    /// The hello in a message, how long that PE will wait, and the session with it. `None` if the sender does not know the key.
    pub(super) fn read(
        bytes: &[u8; Hello::SIZE],
        session: impl FnOnce(&Challenge) -> Session,
    ) -> Option<(Hello, Duration, Session)> {
        let (challenge, rest) = bytes.split_first_chunk()?;
        let (words, seal) = rest.split_last_chunk::<32>()?;
        let session = session(challenge);
        if !session.is_sealed(What::Hello, words, seal) {
            return None;
        }
        let mut words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let (rank, n_pes, left) = (words.next()?, words.next()?, words.next()?);
        let host = Host { name: words.next()?, machine: words.next()? };
        Some((Hello { rank, n_pes, host }, Duration::from_millis(left), session))
    }
}

/// What PE 0 sends to a newcomer that began as a PE does.
pub(super) fn challenge_bytes(challenge: &Challenge) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..8].copy_from_slice(&ROOT);
    bytes[8..].copy_from_slice(challenge);
    bytes
}

/// What PE 0 sends to a PE of its job.
pub(super) fn welcome_bytes(session: &Session) -> [u8; 33] {
    let mut bytes = [1; 33];
    bytes[1..].copy_from_slice(&session.seal(What::Welcome, &[]));
    bytes
}

/// What PE 0 sends to a newcomer without the key.
pub(super) const REFUSAL: [u8; 1] = [0];

/// How PE 0 answered a hello.
pub(super) enum Greeting {
    Welcome(Session),
    /// It refuses: it has another key or another job.
    Refusal,
    /// It is not PE 0, or does not know the key.
    Strange,
}

/// Says hello to PE 0. `session` makes the session from PE 0's challenge.
pub(super) fn greet(
    talk: &mut Talk,
    hello: Hello,
    left: Duration,
    challenge: &Challenge,
    session: impl FnOnce(&Challenge) -> Session,
) -> io::Result<Greeting> {
    talk.say(&KNOCK)?;
    let magic: [u8; 8] = talk.hear()?;
    if magic != ROOT {
        return Ok(Greeting::Strange);
    }
    let session = session(&talk.hear()?);
    talk.say(&hello.bytes(&session, challenge, left))?;
    if talk.hear::<1>()? == REFUSAL {
        return Ok(Greeting::Refusal);
    }
    let seal: Seal = talk.hear()?;
    let is_pe_0 = session.is_sealed(What::Welcome, &[], &seal);
    Ok(if is_pe_0 { Greeting::Welcome(session) } else { Greeting::Strange })
}

/// The final answer of PE 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Bytes(Bytes),
    Missing(String),
    Disagreement(String),
    Failed(String),
}

impl Answer {
    pub(super) fn bytes(&self, session: &Session) -> Vec<u8> {
        let (kind, text) = match self {
            Answer::Bytes(bytes) => (0, &bytes[..]),
            Answer::Missing(why) => (1, why.as_bytes()),
            Answer::Disagreement(why) => (2, why.as_bytes()),
            Answer::Failed(why) => (3, why.as_bytes()),
        };
        let text = &text[..text.len().min(LONGEST as usize)];
        let mut bytes = [&[kind], &(text.len() as u32).to_le_bytes()[..], text].concat();
        bytes.extend(session.seal(What::Answer, &bytes));
        bytes
    }
}

/// Reads the answer. A damaged one is an error of the kind [`ErrorKind::InvalidData`].
pub(super) fn read_answer(talk: &mut Talk, session: &Session) -> io::Result<Answer> {
    let damaged = || io::Error::new(ErrorKind::InvalidData, "a damaged answer");
    let head: [u8; 5] = talk.hear()?;
    let [kind, length @ ..] = head;
    let length = Some(u32::from_le_bytes(length)).filter(|&length| length <= LONGEST).ok_or_else(damaged)?;
    let mut message = head.to_vec();
    message.resize(head.len() + length as usize, 0);
    talk.hear_into(&mut message[head.len()..])?;
    let seal: Seal = talk.hear()?;
    if !session.is_sealed(What::Answer, &message, &seal) {
        return Err(damaged());
    }
    let text = &message[head.len()..];
    let words = || String::from_utf8_lossy(text).into_owned();
    Ok(match kind {
        0 => Answer::Bytes(text.try_into().map_err(|_| damaged())?),
        1 => Answer::Missing(words()),
        2 => Answer::Disagreement(words()),
        3 => Answer::Failed(words()),
        _ => return Err(damaged()),
    })
}

/// A connection with a deadline. A time limit for each read would start anew with every byte.
pub(super) struct Talk {
    stream: TcpStream,
    pub(super) deadline: Instant,
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

    fn hear<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.hear_into(&mut bytes)?;
        Ok(bytes)
    }

    fn hear_into(&mut self, bytes: &mut [u8]) -> io::Result<()> {
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
