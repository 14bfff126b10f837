//! [`Nvshmem`]: one PE's end of the backend (skeleton).
#![allow(missing_docs, unused_variables)]

use onesided::*;

/// One PE on a GPU.
#[derive(Debug)]
pub enum Nvshmem {}

#[derive(Debug)]
pub enum CudaStream {}
#[derive(Debug)]
pub enum CudaEvent {}

impl Backend for Nvshmem {
    type Stream = CudaStream;
    type Event = CudaEvent;
    const NAME: &'static str = "nvshmem";
    fn my_pe(&self) -> usize {
        match *self {}
    }
    fn n_pes(&self) -> usize {
        match *self {}
    }
    fn predefined(&self, which: Predefined) -> Option<Members> {
        match *self {}
    }
    fn version(&self) -> Version {
        match *self {}
    }
    fn init_status(&self) -> InitStatus {
        match *self {}
    }
    fn thread_support(&self) -> ThreadSupport {
        match *self {}
    }
    fn capabilities(&self) -> Capabilities {
        match *self {}
    }
    fn finalize(&self, leaks: &[Live], at: At) -> Result<()> {
        match *self {}
    }
    fn global_exit(&self, status: i32, at: At) -> ! {
        match *self {}
    }
    fn alloc(&self, layout: Layout, at: At) -> Result<AllocId> {
        match *self {}
    }
    fn free(&self, alloc: AllocId, at: At) -> Result<()> {
        match *self {}
    }
    fn alloc_external(&self, bytes: usize, at: At) -> Result<AllocId> {
        match *self {}
    }
    fn free_external(&self, alloc: AllocId, at: At) -> Result<()> {
        match *self {}
    }
    fn register_local(&self, alloc: AllocId, at: At) -> Result<()> {
        match *self {}
    }
    fn unregister_local(&self, alloc: AllocId, at: At) -> Result<()> {
        match *self {}
    }
    fn register_symmetric(&self, alloc: AllocId, at: At) -> Result<AllocId> {
        match *self {}
    }
    fn unregister_symmetric(&self, alloc: AllocId, at: At) -> Result<()> {
        match *self {}
    }
    fn reaches(&self, pe: usize) -> bool {
        match *self {}
    }
    fn read(&self, src: Span, pe: usize, dtype: DType, into: &mut [u8], at: At) -> Result<()> {
        match *self {}
    }
    fn write(&self, dst: Span, pe: usize, dtype: DType, from: &[u8], at: At) -> Result<()> {
        match *self {}
    }
    fn has_multicast(&self, team: TeamId) -> bool {
        match *self {}
    }
    fn multicast_write(&self, team: TeamId, dst: Span, dtype: DType, from: &[u8], at: At) -> Result<()> {
        match *self {}
    }
    fn multicast_read(
        &self,
        team: TeamId,
        src: Span,
        dtype: DType,
        op: ReduceOp,
        into: &mut [u8],
        at: At,
    ) -> Result<()> {
        match *self {}
    }
    fn team(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams> {
        match *self {}
    }
    fn team_members(&self, team: TeamId) -> Members {
        match *self {}
    }
    fn team_unique_id(&self, at: At) -> Result<TeamUniqueId> {
        match *self {}
    }
    fn issue(&self, op: &Op, stream: Option<&Self::Stream>, at: At) -> Result<u64> {
        match *self {}
    }
    fn stream(&self, at: At) -> Result<Self::Stream> {
        match *self {}
    }
    fn stream_synchronize(&self, stream: &Self::Stream, at: At) -> Result<()> {
        match *self {}
    }
    fn event(&self, at: At) -> Result<Self::Event> {
        match *self {}
    }
    fn event_record(&self, event: &Self::Event, stream: &Self::Stream, at: At) -> Result<()> {
        match *self {}
    }
    fn event_wait(&self, event: &Self::Event, stream: &Self::Stream, at: At) -> Result<()> {
        match *self {}
    }
    fn event_synchronize(&self, event: &Self::Event, at: At) -> Result<()> {
        match *self {}
    }
}
