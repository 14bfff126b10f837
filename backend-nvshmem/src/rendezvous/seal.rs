//! [`Session`]: how two ends of a connection prove to each other that they know the job's key, without sending it.
//!
//! Each end chooses a random challenge. A *seal* is a keyed hash (HMAC with SHA-256) of both challenges, the job, the kind of a
//! message and the message. Only a process with the key can make or check it. A recorded seal is useless in another
//! connection, at the other end, or for another message.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::key::{self, Key};
use crate::problem::Problem;

/// A random number that makes a connection differ from all others.
pub(super) type Challenge = [u8; 32];
/// Proves that a message comes from a process with the key.
pub(super) type Seal = [u8; 32];

/// The kinds of sealed messages. A seal fits one kind only.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum What {
    Hello = 1,
    Welcome = 2,
    Answer = 3,
}

pub(super) fn challenge() -> Result<Challenge, Problem> {
    key::random()
}

/// One connection between PE 0 and another PE.
#[derive(Clone)]
pub(super) struct Session(Hmac<Sha256>);

impl Session {
    /// `job` distinguishes jobs with the same key.
    pub(super) fn new(key: &Key, job: &str, of_pe_0: &Challenge, of_the_other: &Challenge) -> Session {
        let mut mac = Hmac::<Sha256>::new_from_slice(key.reveal().as_bytes()).expect("HMAC takes keys of any length");
        mac.update(of_pe_0);
        mac.update(of_the_other);
        mac.update(&(job.len() as u64).to_le_bytes());
        mac.update(job.as_bytes());
        Session(mac)
    }

    pub(super) fn seal(&self, what: What, message: &[u8]) -> Seal {
        self.with(what, message).finalize().into_bytes().into()
    }

    /// Whether a process with the key sealed this. The comparison takes the same time for every seal, so that the time tells
    /// nothing about the right one.
    pub(super) fn is_sealed(&self, what: What, message: &[u8], seal: &Seal) -> bool {
        self.with(what, message).verify_slice(seal).is_ok()
    }

    fn with(&self, what: What, message: &[u8]) -> Hmac<Sha256> {
        self.0.clone().chain_update([what as u8]).chain_update(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_fits_one_key_one_connection_and_one_message() {
        let [key, other] = [Key::random().unwrap(), Key::random().unwrap()];
        let [a, b] = [challenge().unwrap(), challenge().unwrap()];
        let session = Session::new(&key, "job", &a, &b);
        let seal = session.seal(What::Hello, b"message");
        assert!(Session::new(&key, "job", &a, &b).is_sealed(What::Hello, b"message", &seal));

        assert!(!session.is_sealed(What::Welcome, b"message", &seal));
        assert!(!session.is_sealed(What::Hello, b"messagE", &seal));
        for index in 0..seal.len() {
            let mut damaged = seal;
            damaged[index] ^= 1;
            assert!(!session.is_sealed(What::Hello, b"message", &damaged), "{index}");
        }
        for stranger in [
            Session::new(&other, "job", &a, &b),
            Session::new(&key, "other", &a, &b),
            Session::new(&key, "job", &b, &a),
            Session::new(&key, "job", &a, &a),
        ] {
            assert!(!stranger.is_sealed(What::Hello, b"message", &seal));
        }
    }

    /// RFC 4231, test case 2: the hash is the published one.
    #[test]
    fn it_is_the_published_hash() {
        let mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap().chain_update(b"what do ya want for nothing?");
        let hash: Seal = mac.finalize().into_bytes().into();
        assert_eq!(hash[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }
}
