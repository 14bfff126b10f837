//! A program on GPUs: the process of one PE, from its start to its end.

use std::env;
use std::process::ExitCode;

use onesided::ErrorKind;
use onesided_nvshmem::Placement;

use super::gpus::{Plan, sentence};
use super::{Facts, Program};
use crate::hardware::pe::{guarded, init, lost, not_started, ready};
use crate::hardware::protocol::{Failure, LISTENS, Message, Ready};
use crate::{complain, say};

/// Initializes this process as the PE that its launcher says, and runs the program.
///
/// # Errors
/// An option is for the process that starts the PEs, or there are too few PEs.
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
                // Finalize is collective: by now the program of every PE has succeeded.
                say!("{}", sentence(facts, n_pes, &[library, status]));
            }
            Ok(ExitCode::SUCCESS)
        }
        // Exit at once: destructors could wait for PEs that are gone.
        Err(lost) => std::process::exit(i32::from(lost.0)),
    }
}

/// Prints a message for people, where no other process listens. The panic hook has printed a panic already.
fn tell(rank: usize, message: &Message) {
    match message {
        Message::Returned { text } if !text.is_empty() => say!("{text}"),
        Message::Failed(Failure { text, kind, .. }) => {
            complain!("PE {rank} failed: {text}");
            if *kind == ErrorKind::Initialization.to_string() {
                complain!("`onesided doctor`, started in the same way, says what this host lacks, and the remedies");
            }
        }
        _ => {}
    }
}
