use crate::problem::Problem;
use std::io::{Read, Write};
pub(crate) fn exchange(
    rank: usize,
    n_pes: usize,
    meeting: &str,
    _limit: std::time::Duration,
    make: impl FnOnce() -> Result<[u8; 128], Problem>,
) -> Result<[u8; 128], Problem> {
    if rank == 0 {
        let id = make()?;
        let l = std::net::TcpListener::bind(meeting).unwrap();
        for _ in 1..n_pes {
            l.accept().unwrap().0.write_all(&id).unwrap();
        }
        return Ok(id);
    }
    loop {
        if let Ok(mut s) = std::net::TcpStream::connect(meeting) {
            let mut id = [0; 128];
            s.read_exact(&mut id).unwrap();
            return Ok(id);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
