//! One PE of ours: the calls that `peers/nvshmem.cpp` makes of the library, made through the API. The two print the
//! same lines.
//!
//! The measurements are generic over the backend, so that the simulator can show that they are right programs.

use std::cell::Cell;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use onesided::{
    Backend, Bootstrap, Cmp, Error, InitMethod, Pe, ReduceOp, Result, SignalOp, Stream, SymmetricBuf, expect_eq,
};
use onesided_nvshmem::{Process, Settings};
use serde_json::json;

use super::plan::{Kind, Measurement};

/// The `main` of a worker: becomes a PE, measures, and prints a line for each measurement.
pub(in crate::bench) fn run(measurements: &[String]) -> ExitCode {
    let plan: std::result::Result<Vec<Measurement>, String> = measurements.iter().map(|text| text.parse()).collect();
    let ran = plan.and_then(|plan| on_hardware(&plan).map_err(|error| error.to_string()));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn on_hardware(plan: &[Measurement]) -> Result<()> {
    let start = Instant::now();
    let process = Process::open(Settings::from_environment()?)?;
    let load_ns = ns(start);
    let start = Instant::now();
    let pe = process.init(InitMethod::Launcher)?;
    pe.host().barrier_all()?;
    let init_ns = ns(start);
    let (status, library) = (pe.init_status().name(), pe.version().library);
    print(&json!({ "ready": { "init_ns": init_ns, "load_ns": load_ns, "status": status, "library": library } }))?;
    measure(&pe, plan, |line| print(&line))?;
    pe.finalize()
}

/// One line, at once: the parent takes the time when it comes.
fn print(line: &serde_json::Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|why| Error::wrong_result(format!("the measurements cannot be printed: {why}")))
}

/// Makes all measurements, in order; PE 0 says what came out.
fn measure<B: Backend>(
    pe: &Pe<B>,
    plan: &[Measurement],
    mut say: impl FnMut(serde_json::Value) -> Result<()>,
) -> Result<()> {
    expect_eq(pe.n_pes(), 2, "the number of PEs")?;
    let bench = Bench::new(pe, plan)?;
    for (mark, &measurement) in (1..).zip(plan) {
        let samples = match measurement.kind {
            Kind::Put => bench.put(measurement, mark)?,
            Kind::PingPong => bench.ping_pong(measurement)?,
            Kind::Barrier => bench.barrier(measurement)?,
            Kind::Reduce => bench.reduce(measurement, mark)?,
        };
        if pe.my_pe() == 0 {
            let text = measurement.to_string();
            say(json!({ "measured": text, "issue_ns": samples.issue, "done_ns": samples.done }))?;
        }
    }
    bench.end()
}

/// Nanoseconds for each operation, of each sample.
#[derive(Debug, Default)]
struct Samples {
    issue: Vec<f64>,
    done: Vec<f64>,
}

/// A PE with the symmetric memory of all measurements.
struct Bench<'a, B: Backend> {
    pe: &'a Pe<B>,
    stream: Stream<B>,
    dst: SymmetricBuf<u8>,
    src: SymmetricBuf<u8>,
    sums: SymmetricBuf<f32>,
    addends: SymmetricBuf<f32>,
    flag: SymmetricBuf<u64>,
    /// The last value of the flag.
    turn: Cell<u64>,
}

impl<'a, B: Backend> Bench<'a, B> {
    fn new(pe: &'a Pe<B>, plan: &[Measurement]) -> Result<Bench<'a, B>> {
        let most = |of_reduce: bool| {
            let sizes = plan.iter().filter(|m| (m.kind == Kind::Reduce) == of_reduce).map(|m| m.bytes);
            sizes.max().unwrap_or(0).max(size_of::<f32>())
        };
        Ok(Bench {
            pe,
            stream: pe.stream()?,
            dst: pe.alloc_zeroed(most(false))?,
            src: pe.alloc_zeroed(most(false))?,
            sums: pe.alloc_zeroed(most(true) / size_of::<f32>())?,
            addends: pe.alloc_zeroed(most(true) / size_of::<f32>())?,
            flag: pe.alloc_zeroed(1)?,
            turn: Cell::new(0),
        })
    }

    fn end(self) -> Result<()> {
        self.meet()?;
        self.pe.free(self.dst)?;
        self.pe.free(self.src)?;
        self.pe.free(self.sums)?;
        self.pe.free(self.addends)?;
        self.pe.free(self.flag)
    }

    fn meet(&self) -> Result<()> {
        self.pe.on(&self.stream).barrier_all()?;
        self.pe.synchronize(&self.stream)
    }

    /// A sample is the time of all operations: until they are enqueued, and until they are done. The first is not kept.
    fn sample(
        &self,
        measurement: Measurement,
        together: bool,
        mut operation: impl FnMut() -> Result<()>,
        finish: impl Fn() -> Result<()>,
    ) -> Result<Samples> {
        let mut samples = Samples::default();
        for sample in 0..=measurement.samples {
            if together {
                self.meet()?;
            }
            let start = Instant::now();
            for _ in 0..measurement.operations {
                operation()?;
            }
            let issued = ns(start);
            finish()?;
            self.pe.synchronize(&self.stream)?;
            let done = ns(start);
            if sample > 0 {
                samples.issue.push(issued / f64::from(measurement.operations));
                samples.done.push(done / f64::from(measurement.operations));
            }
        }
        Ok(samples)
    }

    /// PE 0 puts to PE 1, and completes its puts. The last bytes say that they came.
    fn put(&self, measurement: Measurement, mark: u8) -> Result<Samples> {
        let bytes = measurement.bytes;
        let tail = bytes.saturating_sub(8)..bytes;
        self.pe.write(self.src.slice(tail.clone()), &vec![mark; tail.len()])?;
        self.meet()?;
        let mut samples = Samples::default();
        if self.pe.my_pe() == 0 {
            let (dst, src) = (self.dst.slice(..bytes), self.src.slice(..bytes));
            let (pe, stream) = (self.pe, &self.stream);
            samples = self.sample(measurement, false, || pe.on(stream).put(dst, src, 1), || pe.on(stream).quiet())?;
        }
        self.meet()?;
        if self.pe.my_pe() == 1 {
            let found = self.pe.read(self.dst.slice(tail.clone()))?;
            expect_eq(found, vec![mark; tail.len()], &format!("{measurement}: the data"))?;
        }
        Ok(samples)
    }

    /// One operation is a put with signal and a wait: there and back, between PE 0 and PE 1.
    fn ping_pong(&self, measurement: Measurement) -> Result<Samples> {
        let (dst, src) = (self.dst.slice(..measurement.bytes), self.src.slice(..measurement.bytes));
        let (me, flag) = (self.pe.my_pe(), self.flag.signal(0));
        let on = self.pe.on(&self.stream);
        let turn = || {
            let turn = self.turn.get() + 1;
            self.turn.set(turn);
            if me == 1 {
                on.signal_wait_until(flag, Cmp::Ge, turn)?;
            }
            on.put_signal(dst, src, flag, turn, SignalOp::Set, 1 - me)?;
            if me == 0 {
                on.signal_wait_until(flag, Cmp::Ge, turn)?;
            }
            Ok(())
        };
        self.sample(measurement, true, turn, || Ok(()))
    }

    fn barrier(&self, measurement: Measurement) -> Result<Samples> {
        self.sample(measurement, true, || self.pe.on(&self.stream).barrier_all(), || Ok(()))
    }

    fn reduce(&self, measurement: Measurement, mark: u8) -> Result<Samples> {
        let count = measurement.bytes / size_of::<f32>();
        let (sums, addends) = (self.sums.slice(..count), self.addends.slice(..count));
        let (mark, me, pes) = (f32::from(mark), self.pe.my_pe() as f32, self.pe.n_pes() as f32);
        self.pe.write(self.addends.at(count - 1), &[mark + me])?;
        let on = self.pe.on(&self.stream);
        let reduce = || on.reduce(self.pe.world(), sums, addends, ReduceOp::Sum);
        let samples = self.sample(measurement, true, reduce, || Ok(()))?;
        self.meet()?;
        let sum = self.pe.read(self.sums.at(count - 1))?[0];
        expect_eq(sum, pes * mark + pes * (pes - 1.0) / 2.0, &format!("{measurement}: the last sum"))?;
        Ok(samples)
    }
}

fn ns(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use onesided_sim::Simulation;

    use super::super::super::lab::endless;
    use super::*;

    /// The simulator runs the same calls: they finish, move the data, and give as many samples as asked for.
    #[test]
    fn the_measurements_are_right_programs() {
        let plan: Vec<Measurement> = [
            "put:8:3:2",
            "put:5000:2:1",
            "ping_pong:8:4:3",
            "ping_pong:16:1:1",
            "barrier:0:3:2",
            "reduce:4:2:2",
            "reduce:4096:1:1",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        let lines = Mutex::new(Vec::new());
        let program = |pe: &Pe<_>| {
            measure(pe, &plan, |line| {
                lines.lock().unwrap().push(line);
                Ok(())
            })
        };
        Simulation::new(endless(2)).unwrap().run(program).unwrap().into_results().unwrap();
        let lines = lines.into_inner().unwrap();
        assert_eq!(lines.len(), plan.len());
        for (line, measurement) in lines.iter().zip(&plan) {
            assert_eq!(line["measured"], measurement.to_string());
            for samples in [&line["issue_ns"], &line["done_ns"]] {
                assert_eq!(samples.as_array().unwrap().len(), measurement.samples as usize, "{line}");
            }
        }
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        assert_eq!(run(&["put:8".to_string()]), ExitCode::from(2));
    }
}
