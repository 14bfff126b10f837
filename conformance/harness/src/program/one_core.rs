//! A program that is not `Sync`, on one core.

use onesided::{Backend, Pe, Result};
use send_wrapper::SendWrapper;

use super::Program;

/// A program that only the thread which made it may run. It panics on others; there are none, because its plans are for one core.
pub(super) struct OneCore<P>(SendWrapper<P>);

impl<P> OneCore<P> {
    pub(super) fn new(program: P) -> OneCore<P> {
        OneCore(SendWrapper::new(program))
    }
}

impl<P: Program> Program for OneCore<P> {
    const NAME: &'static str = P::NAME;
    const ABOUT: &'static str = P::ABOUT;
    const CHECKS: &'static str = P::CHECKS;
    const PES: usize = P::PES;
    const MIN_PES: usize = P::MIN_PES;

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        self.0.precondition(n_pes)
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        self.0.run(pe)
    }
}
