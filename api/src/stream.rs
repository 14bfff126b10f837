//! Streams and events: work that runs beside the host, in the order in which it was enqueued.

use crate::at::At;
use crate::backend::Backend;
use crate::brand::Brand;
use crate::error::Result;
use crate::pe::Pe;

/// A queue of operations of this PE, like a CUDA stream.
///
/// Operations are enqueued through [`Pe::on`]. Two streams, and a stream and its host, run concurrently: only
/// [`Pe::synchronize`] and events order them. Dropping a stream lets its work run on.
pub struct Stream<B: Backend> {
    pub(crate) inner: B::Stream,
    pub(crate) brand: Brand,
}

/// A point in a stream that the host and other streams can wait for, like a CUDA event.
pub struct Event<B: Backend> {
    pub(crate) inner: B::Event,
    pub(crate) brand: Brand,
}

impl<B: Backend> Stream<B> {
    /// The backend's own stream, for code that is about one backend (launching kernels, say).
    pub fn backend_stream(&self) -> &B::Stream {
        &self.inner
    }
}

impl<B: Backend> std::fmt::Debug for Stream<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl<B: Backend> std::fmt::Debug for Event<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Event")
    }
}

/// # Streams and events
impl<B: Backend> Pe<B> {
    /// A new stream. Local.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// let stream = pe.stream()?;
    /// pe.on(&stream).barrier_all()?; // enqueued
    /// pe.synchronize(&stream)?; // done
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn stream(&self) -> Result<Stream<B>> {
        let inner = self.backend.stream(At::caller())?;
        Ok(Stream { inner, brand: self.brand })
    }

    /// Blocks until everything enqueued on `stream` so far has run. Local.
    ///
    /// What ran is then known to the host; a non-blocking transfer that was *started* on the stream may still be in
    /// flight, and needs a quiet on the stream.
    ///
    /// # Errors
    /// Those of the device; failures of the stream's work appear here.
    #[track_caller]
    pub fn synchronize(&self, stream: &Stream<B>) -> Result<()> {
        let call = self.call("synchronize", At::caller());
        self.backend.stream_synchronize(call.stream(stream)?, call.at)
    }

    /// A new event, not recorded yet. Local.
    ///
    /// # Errors
    /// Those of the device.
    #[track_caller]
    pub fn event(&self) -> Result<Event<B>> {
        let inner = self.backend.event(At::caller())?;
        Ok(Event { inner, brand: self.brand })
    }

    /// Enqueues a record: the event happens when `stream` reaches it. Local.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// let (producer, consumer, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
    /// pe.on(&producer).quiet()?;
    /// pe.record(&ready, &producer)?;
    /// pe.wait_event(&ready, &consumer)?; // what follows on `consumer` starts after the quiet
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn record(&self, event: &Event<B>, stream: &Stream<B>) -> Result<()> {
        let call = self.call("record", At::caller());
        self.backend.event_record(call.event(event)?, call.stream(stream)?, call.at)
    }

    /// Makes what is enqueued on `stream` from now on wait for the event's last record; none if there was no record.
    /// Local.
    ///
    /// # Errors
    /// Those of the device.
    #[track_caller]
    pub fn wait_event(&self, event: &Event<B>, stream: &Stream<B>) -> Result<()> {
        let call = self.call("wait_event", At::caller());
        self.backend.event_wait(call.event(event)?, call.stream(stream)?, call.at)
    }

    /// Blocks the host until the event's last record has been reached; returns at once if there was none. Local.
    ///
    /// # Errors
    /// Those of the device.
    #[track_caller]
    pub fn synchronize_event(&self, event: &Event<B>) -> Result<()> {
        let call = self.call("synchronize_event", At::caller());
        self.backend.event_synchronize(call.event(event)?, call.at)
    }
}
