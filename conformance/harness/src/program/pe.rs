//! A program on a GPU, seen from one of its PEs: the whole life of a process.

use std::env;
use std::process::ExitCode;

use onesided::ErrorKind;
use onesided_nvshmem::Placement;

use super::gpus::{Plan, sentence};
use super::{Facts, Program};
use crate::hardware::pe::{guarded, init, lost, not_started, ready};
use crate::hardware::protocol::{LISTENS, Message, Ready};
use crate::{complain, say};

/// Becomes the PE that the launcher made this process, and runs the program.
///
/// # Errors
/// Options that only the process understands that starts the PEs; too few PEs.
pub(super) fn run<P: Program>(
    facts: &Facts,
    program: &P,
    plan: &Plan,
    placement: &Placement,
) -> Result<ExitCode, String> {
    let &Placement { rank, n_pes, .. } = placement;
    plan.check_pe(n_pes)?;
    if n_pes < facts.min_pes {
        return Err(format!("{} needs at least {} PEs, not {n_pes}", facts.name, facts.min_pes));
    }
    program.precondition(n_pes).map_err(|why| facts.cannot_run(n_pes, &why))?;
    let is_heard = env::var_os(LISTENS).is_some();
    let say = |message: Message| if is_heard { message.send() } else { tell(rank, &message) };
    let done = init().map_err(|error| not_started(&error, &say)).and_then(|pe| {
        let about = ready(&pe);
        say(about.clone());
        say(Message::Start { name: facts.name.to_string() });
        let text = guarded(|| program.run(&pe), &say)?;
        say(Message::Returned { text });
        pe.finalize().map_err(|error| lost(&error, &say))?;
        Ok(about)
    });
    match done {
        Ok(about) => {
            say(Message::Finalized);
            if let (false, 0, Message::Ready(Ready { library, status, .. })) = (is_heard, rank, &about) {
                // All PEs are past finalize, to which none comes whose program failed.
                say!("{}", sentence(facts, n_pes, &[library, status]));
            }
            Ok(ExitCode::SUCCESS)
        }
        // Not by returning: nothing is to be undone here, where undoing may wait for PEs that are gone.
        Err(lost) => std::process::exit(i32::from(lost.0)),
    }
}

/// What a person reads of a PE that nobody listens to. A panic was printed already, as panics are.
fn tell(rank: usize, message: &Message) {
    match message {
        Message::Returned { text } if !text.is_empty() => say!("{text}"),
        Message::Failed { text, kind, .. } => {
            complain!("PE {rank} failed: {text}");
            if *kind == ErrorKind::Initialization.to_string() {
                complain!("`onesided doctor`, started in the same way, says what this host lacks, and the remedies");
            }
        }
        _ => {}
    }
}
