//! Streams and events: work that runs beside the host, in the order in which it was enqueued.

use crate::at::At;
use crate::backend::Backend;
use crate::brand::Brand;
use crate::error::Result;
use crate::pe::Pe;

/// A queue of operations of this PE, like a CUDA stream.
///
/// [`Pe::on`] enqueues operations. Two streams run concurrently, and so do a stream and its host: only [`Pe::synchronize`] and
/// events order them. Dropping a stream lets its work run on.
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
    /// The backend's own stream, for programs that are written for one backend: they launch kernels on it, for example.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// let stream = pe.stream()?;
    /// let simulated: &onesided_sim::SimStream = stream.backend_stream();
    /// # let _ = simulated;
    /// # Ok(()) });
    /// ```
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
    /// # onesided_sim::example(2, |pe| {
    /// let stream = pe.stream()?;
    /// pe.on(&stream).barrier_all()?; // enqueued
    /// pe.synchronize(&stream)?; // done
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn stream(&self) -> Result<Stream<B>> {
        let inner = self.backend.stream(At::caller())?;
        Ok(Stream { inner, brand: self.brand })
    }

    /// Blocks until everything enqueued on `stream` so far has run. Local.
    ///
    /// What has run on the stream happens-before what the host does next. A transfer that the stream started may still be in
    /// flight: a quiet on the stream completes it.
    ///
    /// # Errors
    /// Those of the device, also those of the stream's earlier work.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<u32>(2)?;
    /// let stream = pe.stream()?;
    /// pe.on(&stream).get(buf.at(0), buf.at(1), 0)?; // enqueued
    /// pe.synchronize(&stream)?; // the value is there
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn synchronize(&self, stream: &Stream<B>) -> Result<()> {
        let call = self.call("synchronize", At::caller());
        self.backend.stream_synchronize(call.stream(stream)?, call.at)
    }

    /// A new event, not recorded yet. Local.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// let event = pe.event()?;
    /// pe.synchronize_event(&event)?; // returns at once: there is no record
    /// # Ok(()) });
    /// ```
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
    /// # onesided_sim::example(2, |pe| {
    /// let (producer, consumer, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
    /// pe.on(&producer).quiet()?;
    /// pe.record(&ready, &producer)?;
    /// pe.wait_event(&ready, &consumer)?; // what follows on `consumer` starts after the quiet
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn record(&self, event: &Event<B>, stream: &Stream<B>) -> Result<()> {
        let call = self.call("record", At::caller());
        self.backend.event_record(call.event(event)?, call.stream(stream)?, call.at)
    }

    /// Makes what is enqueued on `stream` from now on wait for the event's last record so far. Without a record it does not wait.
    /// Local.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<u32>(2)?;
    /// let (producer, consumer, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
    /// pe.on(&producer).write(buf.at(0), &[7])?;
    /// pe.record(&ready, &producer)?;
    /// pe.wait_event(&ready, &consumer)?;
    /// pe.on(&consumer).put(buf.at(1), buf.at(0), 1 - pe.my_pe())?; // puts the 7
    /// pe.on(&consumer).barrier_all()?;
    /// pe.synchronize(&consumer)?;
    /// assert_eq!(pe.read_one(buf.at(1))?, 7);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn wait_event(&self, event: &Event<B>, stream: &Stream<B>) -> Result<()> {
        let call = self.call("wait_event", At::caller());
        self.backend.event_wait(call.event(event)?, call.stream(stream)?, call.at)
    }

    /// Blocks the host until the event's last record has been reached. Returns at once if there is no record. Local.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(1, |pe| {
    /// # let buf = pe.alloc_zeroed::<u32>(1)?;
    /// let (stream, written) = (pe.stream()?, pe.event()?);
    /// pe.on(&stream).write(&buf, &[7])?;
    /// pe.record(&written, &stream)?;
    /// pe.synchronize_event(&written)?;
    /// assert_eq!(pe.read_one(&buf)?, 7);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn synchronize_event(&self, event: &Event<B>) -> Result<()> {
        let call = self.call("synchronize_event", At::caller());
        self.backend.event_synchronize(call.event(event)?, call.at)
    }
}
