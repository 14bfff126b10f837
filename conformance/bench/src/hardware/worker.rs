//! One PE of ours: the calls that `peers/nvshmem.cpp` makes of the library, made through the API. The two print the
//! same lines.
//!
//! What a call costs varies from process to process by more than the API adds to it, because memory and cores differ. So a
//! process of ours makes the calls in C++ too, sample by sample in turn with its own, on the same memory and the same stream.
//! Its lines have both.
//!
//! The measurements are generic over the backend, so that the simulator can show that they are right programs.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use onesided::{
    Backend, Bootstrap, Error, InitMethod, Kernel, Module, Pe, ReduceOp, Result, Stream, SymmetricBuf, expect_eq,
};
use onesided_harness::tool::command::failed;
use onesided_nvshmem::{Process, Settings};
use serde_json::json;

use super::cpp::Cpp;
use super::loops::{Api, Calls, Inlined, Loops, Operands, inlined, kernels, nothing};
use super::plan::{Beside, Kind, Measurement};

/// The `main` of a worker: becomes a PE, measures, and prints a line for each measurement. `loops` is the file of the
/// C++ loops, if they are to be measured too.
pub(crate) fn run(measurements: &[String], loops: Option<&Path>) -> ExitCode {
    let plan: std::result::Result<Vec<Measurement>, String> = measurements.iter().map(|text| text.parse()).collect();
    let ran = plan.and_then(|plan| on_hardware(&plan, loops).map_err(|error| error.to_string()));
    ran.map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn on_hardware(plan: &[Measurement], loops: Option<&Path>) -> Result<()> {
    let start = Instant::now();
    let process = Process::open(Settings::from_environment()?)?;
    let load_ns = ns(start);
    let start = Instant::now();
    let pe = process.init(InitMethod::Launcher)?;
    pe.host().barrier_all()?;
    let init_ns = ns(start);
    let (status, library) = (pe.init_status().name(), pe.version().library);
    print(&json!({ "ready": { "init_ns": init_ns, "load_ns": load_ns, "status": status, "library": library } }))?;
    // After the line before, whose time counts.
    let cpp = match loops.map(Cpp::open).transpose() {
        Ok(cpp) => cpp,
        Err(why) => {
            print(&json!({ "no_pair": why }))?;
            None
        }
    };
    // The PEs take turns together: either both have the loops, or none uses them.
    let cpp = if everybody(&pe, cpp.is_some())? { cpp } else { None };
    let wanted = loops.is_some() && plan.iter().any(|measurement| measurement.beside() == Beside::Headers);
    let inlined = match wanted.then(|| pe.module(&inlined())).transpose() {
        Ok(module) => module,
        Err(why) => {
            print(&json!({ "no_pair": why.to_string() }))?;
            None
        }
    };
    let inlined = inlined.as_ref().map(Inlined);
    let pairs = Pairs { cpp: cpp.as_ref().map(|cpp| cpp as _), headers: inlined.as_ref().map(|inlined| inlined as _) };
    measure(&pe, plan, &Api, pairs, |line| print(&line))?;
    pe.finalize()
}

/// Who makes the same calls as the API.
struct Pairs<'a, B: Backend> {
    cpp: Option<&'a dyn Loops<B>>,
    headers: Option<&'a dyn Loops<B>>,
}

/// Whether every PE says yes. Collective.
fn everybody(pe: &Pe<impl Backend>, mine: bool) -> Result<bool> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    pe.write(&word, &[u32::from(mine)])?;
    pe.host().reduce(pe.world(), &word, &word, ReduceOp::Min)?;
    let all = pe.read(&word)?[0] == 1;
    pe.free(word)?;
    Ok(all)
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
    ours: &dyn Loops<B>,
    pairs: Pairs<'_, B>,
    mut say: impl FnMut(serde_json::Value) -> Result<()>,
) -> Result<()> {
    expect_eq(pe.n_pes(), 2, "the number of PEs")?;
    let bench = Bench::new(pe, plan)?;
    for (number, &measurement) in (0..).zip(plan) {
        let pair = match measurement.beside() {
            Beside::Nothing => None,
            Beside::Cpp => pairs.cpp,
            Beside::Headers => pairs.headers,
        };
        let sides: Sides<'_, B> = [Some(ours), pair].into_iter().flatten().zip(2 * number + 1..).collect();
        let samples = match measurement.kind {
            Kind::Put => bench.put(measurement, &sides)?,
            Kind::Get | Kind::HostGet => bench.get(measurement, &sides)?,
            Kind::PingPong => bench.ping_pong(measurement, &sides)?,
            Kind::Barrier => bench.barrier(measurement, &sides)?,
            Kind::Reduce => bench.reduce(measurement, &sides)?,
            Kind::Launch | Kind::Cooperative => bench.launch(measurement, &sides)?,
            _ => bench.device(measurement, &sides)?,
        };
        if let [ours, cpp @ ..] = samples.as_slice()
            && pe.my_pe() == 0
        {
            let text = measurement.to_string();
            let mut line = json!({ "measured": text, "issue_ns": ours.issue, "done_ns": ours.done });
            if let [cpp] = cpp {
                line["cpp_issue_ns"] = cpp.issue.as_slice().into();
                line["cpp_done_ns"] = cpp.done.as_slice().into();
            }
            say(line)?;
        }
    }
    bench.end()
}

/// Who makes the calls of a measurement: ours, then C++ if it is there. Each has a mark of its own for its data, so that
/// what one moved is not taken for the other's.
type Sides<'a, B> = Vec<(&'a dyn Loops<B>, u8)>;

/// Nanoseconds for each operation, of each sample.
#[derive(Clone, Debug, Default)]
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
    /// The last value of the flag, whoever set it.
    turn: Cell<u64>,
    /// What kernels signal to.
    signalled: SymmetricBuf<u64>,
    /// Kernels that make calls, if there are measurements that need them.
    kernels: Option<Module<B>>,
    /// The kernel that does nothing, likewise.
    nothing: Option<Module<B>>,
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
            signalled: pe.alloc_zeroed(1)?,
            kernels: needs(plan, |kind| kind.kernel().is_some()).then(|| pe.module(&kernels())).transpose()?,
            nothing: needs(plan, |kind| matches!(kind, Kind::Launch | Kind::Cooperative))
                .then(|| pe.module(&nothing()))
                .transpose()?,
        })
    }

    fn end(self) -> Result<()> {
        self.meet()?;
        self.pe.free(self.dst)?;
        self.pe.free(self.src)?;
        self.pe.free(self.sums)?;
        self.pe.free(self.addends)?;
        self.pe.free(self.flag)?;
        self.pe.free(self.signalled)
    }

    fn meet(&self) -> Result<()> {
        self.pe.on(&self.stream).barrier_all()?;
        self.pe.synchronize(&self.stream)
    }

    /// A sample is the time of all operations: until they are enqueued, and until they are done. Each side has one, in
    /// turn; the first is not kept.
    fn sample<'b>(
        &self,
        measurement: Measurement,
        sides: &Sides<'_, B>,
        together: bool,
        calls: impl Fn() -> Calls<'b, B>,
        finish: impl Fn() -> Result<()>,
    ) -> Result<Vec<Samples>>
    where
        B: 'b,
    {
        let Measurement { operations, .. } = measurement;
        let mut samples = vec![Samples::default(); sides.len()];
        for sample in 0..=measurement.samples as usize {
            for turn in 0..sides.len() {
                // Who begins changes, so that neither always follows the other. It depends on nothing but the sample's
                // number: most calls are collective, and the other PE must make the same ones.
                let side = (sample + turn) % sides.len();
                let (loops, calls) = (sides[side].0, calls());
                if together {
                    self.meet()?;
                }
                let start = Instant::now();
                loops.issue(self.pe, &self.stream, calls, operations)?;
                let issued = ns(start);
                finish()?;
                self.pe.synchronize(&self.stream)?;
                let done = ns(start);
                if sample > 0 {
                    samples[side].issue.push(issued / f64::from(operations));
                    samples[side].done.push(done / f64::from(operations));
                }
            }
        }
        Ok(samples)
    }

    /// PE 0 puts to PE 1, and completes its puts. Then, by each side, a put whose last bytes say that it came.
    fn put(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        let (bytes, is_source) = (measurement.bytes, self.pe.my_pe() == 0);
        let calls = Calls::Put { dst: self.dst.slice(..bytes), src: self.src.slice(..bytes) };
        let quiet = || self.pe.on(&self.stream).quiet();
        self.meet()?;
        let mut samples = Vec::new();
        if is_source {
            samples = self.sample(measurement, sides, false, || calls, quiet)?;
        }
        let tail = bytes.saturating_sub(8)..bytes;
        for &(loops, mark) in sides {
            self.meet()?;
            if is_source {
                self.pe.write(self.src.slice(tail.clone()), &vec![mark; tail.len()])?;
                loops.issue(self.pe, &self.stream, calls, 1)?;
                quiet()?;
            }
            self.meet()?;
            if !is_source {
                let found = self.pe.read(self.dst.slice(tail.clone()))?;
                expect_eq(found, vec![mark; tail.len()], &format!("{measurement}: the data"))?;
            }
        }
        Ok(samples)
    }

    /// PE 0 gets from PE 1. Then, by each side, a get whose last bytes say that it brought what was there.
    fn get(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        let (bytes, gets) = (measurement.bytes, self.pe.my_pe() == 0);
        let (dst, src) = (self.dst.slice(..bytes), self.src.slice(..bytes));
        let calls = match measurement.kind {
            Kind::HostGet => Calls::HostGet { dst, src },
            _ => Calls::Get { dst, src },
        };
        self.meet()?;
        let mut samples = Vec::new();
        if gets {
            samples = self.sample(measurement, sides, false, || calls, || Ok(()))?;
        }
        let tail = bytes.saturating_sub(8)..bytes;
        for &(loops, mark) in sides {
            self.meet()?;
            if !gets {
                self.pe.write(self.src.slice(tail.clone()), &vec![mark; tail.len()])?;
            }
            self.meet()?;
            if gets {
                loops.issue(self.pe, &self.stream, calls, 1)?;
                self.pe.synchronize(&self.stream)?;
                let found = self.pe.read(self.dst.slice(tail.clone()))?;
                expect_eq(found, vec![mark; tail.len()], &format!("{measurement}: the data"))?;
            }
        }
        Ok(samples)
    }

    /// One operation is a put with signal and a wait: there and back, between PE 0 and PE 1.
    fn ping_pong(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        let (dst, src) = (self.dst.slice(..measurement.bytes), self.src.slice(..measurement.bytes));
        let calls = || {
            let turn = self.turn.get();
            self.turn.set(turn + u64::from(measurement.operations));
            Calls::PingPong { dst, src, flag: self.flag.slice(..), turn }
        };
        self.sample(measurement, sides, true, calls, || Ok(()))
    }

    fn barrier(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        self.sample(measurement, sides, true, || Calls::Barrier, || Ok(()))
    }

    fn kernel(&self, measurement: Measurement) -> Result<Kernel<'_, B>> {
        match (measurement.kind.kernel(), &self.kernels, &self.nothing) {
            (Some(name), Some(module), _) => module.kernel(name),
            (None, _, Some(module)) => module.kernel("nothing"),
            _ => Err(Error::wrong_result(format!("{measurement} has no kernel"))),
        }
    }

    /// What kernels are given.
    fn operands(&self, bytes: usize) -> Operands<'_> {
        Operands { dst: self.dst.slice(..bytes), src: self.src.slice(..bytes), flag: self.signalled.slice(..) }
    }

    /// PE 0 launches a kernel.
    fn launch(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        let (kernel, operands) = (self.kernel(measurement)?, self.operands(measurement.bytes));
        let is_cooperative = measurement.kind == Kind::Cooperative;
        let calls = || Calls::Launch { kernel: &kernel, is_cooperative, operands };
        self.meet()?;
        let samples = match self.pe.my_pe() {
            0 => self.sample(measurement, sides, false, calls, || Ok(()))?,
            _ => Vec::new(),
        };
        self.meet()?;
        Ok(samples)
    }

    /// A kernel of PE 0 makes all calls of a sample. Then, by each side, a kernel whose effect is checked.
    fn device(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        /// Calls of the kernel that is checked.
        const CALLS: u32 = 3;
        let (me, bytes, kernel) = (self.pe.my_pe(), measurement.bytes, self.kernel(measurement)?);
        let operands = self.operands(bytes);
        let calls = Calls::Device { kernel: &kernel, operands };
        self.meet()?;
        let mut samples = Vec::new();
        if me == 0 {
            samples = self.sample(measurement, sides, false, || calls, || Ok(()))?;
        }
        for &(loops, mark) in sides {
            self.meet()?;
            self.pe.write(operands.dst, &vec![0; bytes])?;
            self.pe.write(operands.src, &vec![mark; bytes])?;
            self.pe.write(&self.signalled, &[0])?;
            self.meet()?;
            if me == 0 {
                loops.issue(self.pe, &self.stream, calls, CALLS)?;
            }
            self.meet()?;
            let last = u64::from(CALLS) - 1;
            let put = match (measurement.kind, me) {
                (Kind::DeviceP, 1) => last.to_ne_bytes().to_vec(),
                (Kind::DevicePut, 1) => vec![mark; bytes],
                (Kind::DeviceG, 0) => (u64::from_ne_bytes([mark; 8]).wrapping_mul(CALLS.into())).to_ne_bytes().to_vec(),
                _ => vec![0; bytes],
            };
            let signalled = if (measurement.kind, me) == (Kind::DeviceSignal, 1) { last } else { 0 };
            let found = (self.pe.read(operands.dst)?, self.pe.read(&self.signalled)?[0]);
            expect_eq(found, (put, signalled), &format!("{measurement}: what the kernel left"))?;
        }
        Ok(samples)
    }

    /// All PEs add. Then, by each side, a sum of which the last element is checked.
    fn reduce(&self, measurement: Measurement, sides: &Sides<'_, B>) -> Result<Vec<Samples>> {
        let count = measurement.bytes / size_of::<f32>();
        let calls = Calls::Reduce { sums: self.sums.slice(..count), addends: self.addends.slice(..count) };
        let samples = self.sample(measurement, sides, true, || calls, || Ok(()))?;
        let (me, pes) = (self.pe.my_pe() as f32, self.pe.n_pes() as f32);
        for &(loops, mark) in sides {
            let mark = f32::from(mark);
            self.pe.write(self.addends.at(count - 1), &[mark + me])?;
            self.meet()?;
            loops.issue(self.pe, &self.stream, calls, 1)?;
            self.meet()?;
            let sum = self.pe.read(self.sums.at(count - 1))?[0];
            expect_eq(sum, pes * mark + pes * (pes - 1.0) / 2.0, &format!("{measurement}: the last sum"))?;
        }
        Ok(samples)
    }
}

fn needs(plan: &[Measurement], is_such: impl Fn(Kind) -> bool) -> bool {
    plan.iter().any(|measurement| is_such(measurement.kind))
}

fn ns(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use onesided_sim::{Config, Races, Sim, Simulation};
    use serde_json::Value;

    use super::super::super::lab::endless;
    use super::*;

    /// Makes the calls as the API does, and notes who did.
    struct Noted<'a> {
        name: char,
        /// By PE.
        log: &'a RefCell<[String; 2]>,
    }

    impl Loops<Sim> for Noted<'_> {
        fn issue(&self, pe: &Pe<Sim>, stream: &Stream<Sim>, calls: Calls<'_, Sim>, operations: u32) -> Result<()> {
            self.log.borrow_mut()[pe.my_pe()].push(self.name);
            Api.issue(pe, stream, calls, operations)
        }
    }

    /// Makes no call.
    struct Idle;

    impl Loops<Sim> for Idle {
        fn issue(&self, _: &Pe<Sim>, _: &Stream<Sim>, _: Calls<'_, Sim>, _: u32) -> Result<()> {
            Ok(())
        }
    }

    /// What PE 0 says when two simulated PEs measure; `pair` is what ours are compared with.
    fn simulated(plan: &[&str], ours: &dyn Loops<Sim>, pair: Option<&dyn Loops<Sim>>) -> Result<Vec<Value>> {
        let plan: Vec<Measurement> = plan.iter().map(|text| text.parse().unwrap()).collect();
        let lines = RefCell::new(Vec::new());
        let program = |pe: &Pe<_>| {
            measure(pe, &plan, ours, Pairs { cpp: pair, headers: pair }, |line| {
                lines.borrow_mut().push(line);
                Ok(())
            })
        };
        // loops of calls whose data nobody looks at
        let config = Config { races: Races::Note, ..endless(2) };
        Simulation::new(config).unwrap().run(program).unwrap().into_results()?;
        let lines = lines.into_inner();
        for (line, measurement) in lines.iter().zip(&plan) {
            assert_eq!(line["measured"], measurement.to_string());
        }
        Ok(lines)
    }

    fn count(line: &Value, field: &str) -> Option<usize> {
        line[field].as_array().map(Vec::len)
    }

    /// The simulator runs the same calls: they finish, move the data, and give as many samples as asked for.
    #[test]
    fn the_measurements_are_right_programs() {
        let plan = [
            "put:0:3:2",
            "put:8:3:2",
            "put:5000:2:1",
            "ping_pong:8:4:3",
            "ping_pong:16:1:1",
            "barrier:0:3:2",
            "reduce:4:2:2",
            "reduce:4096:1:1",
            "launch:0:3:2",
            "cooperative:0:3:2",
            "device_p:8:3:2",
            "device_g:8:3:2",
            "device_put:64:3:2",
            "device_signal:8:3:2",
            "device_fence:0:3:2",
            "device_quiet:0:3:2",
        ];
        let lines = simulated(&plan, &Api, None).unwrap();
        assert_eq!(lines.len(), plan.len());
        for (line, samples) in lines.iter().zip([2, 2, 1, 3, 1, 2, 2, 1].into_iter().chain([2; 8])) {
            assert_eq!([count(line, "issue_ns"), count(line, "done_ns")], [Some(samples); 2], "{line}");
            assert_eq!([count(line, "cpp_issue_ns"), count(line, "cpp_done_ns")], [None; 2], "{line}");
        }
    }

    /// Two samples are kept of three, then each side makes one call that is checked, where there is something to check.
    #[test]
    fn both_sides_measure_in_turn_and_all_pes_in_the_same_order() {
        for (text, orders) in [
            ("put:8:3:2", ["abbaabab", ""]),
            ("ping_pong:8:4:2", ["abbaab"; 2]),
            ("barrier:0:3:2", ["abbaab"; 2]),
            ("reduce:8:2:2", ["abbaabab"; 2]),
            ("launch:0:3:2", ["abbaab", ""]),
            ("device_p:8:3:2", ["abbaabab", ""]),
        ] {
            let log = RefCell::default();
            let [ours, cpp] = ['a', 'b'].map(|name| Noted { name, log: &log });
            let lines = simulated(&[text], &ours, Some(&cpp)).unwrap();
            for field in ["issue_ns", "done_ns", "cpp_issue_ns", "cpp_done_ns"] {
                assert_eq!(count(&lines[0], field), Some(2), "{lines:?}");
            }
            assert_eq!(log.into_inner(), orders, "{text}");
        }
    }

    #[test]
    fn a_put_of_nothing_is_ours_alone() {
        let log = RefCell::default();
        let cpp = Noted { name: 'b', log: &log };
        let lines = simulated(&["put:0:3:2"], &Api, Some(&cpp)).unwrap();
        assert_eq!([count(&lines[0], "issue_ns"), count(&lines[0], "cpp_issue_ns")], [Some(2), None]);
        assert_eq!(log.into_inner(), ["", ""]);
    }

    #[test]
    fn a_side_that_makes_no_calls_is_found_out() {
        let left = "what the kernel left";
        for (text, what) in [
            ("put:8:3:2", "the data"),
            ("reduce:8:2:2", "the last sum"),
            ("device_p:8:3:2", left),
            ("device_g:8:3:2", left),
            ("device_put:8:3:2", left),
            ("device_signal:8:3:2", left),
        ] {
            let sides: [[&dyn Loops<Sim>; 2]; 2] = [[&Idle, &Api], [&Api, &Idle]];
            for [ours, cpp] in sides {
                let why = simulated(&[text], ours, Some(cpp)).unwrap_err().to_string();
                assert!(why.contains(&format!("{text}: {what}")), "{why}");
            }
        }
    }

    /// The kernels without the API between: a module of its own, as the one with NVSHMEM's headers is.
    #[test]
    fn the_inlined_kernels_make_the_same_calls() {
        let program = |pe: &Pe<Sim>| {
            let module = pe.module(&kernels())?;
            let (plan, pairs) =
                (["device_p:8:3:2".parse().unwrap()], Pairs { cpp: None, headers: Some(&Inlined(&module)) });
            let say = |line: Value| expect_eq(count(&line, "cpp_done_ns"), Some(2), "samples of the inlined kernel");
            measure(pe, &plan, &Api, pairs, say)
        };
        let config = Config { races: Races::Note, ..endless(2) };
        Simulation::new(config).unwrap().run(program).unwrap().into_results().unwrap();
    }

    #[test]
    fn everybody_is_everybody() {
        for (yes, expected) in [([true, true], true), ([true, false], false), ([false, false], false)] {
            let program = |pe: &Pe<_>| expect_eq(everybody(pe, yes[pe.my_pe()])?, expected, "what they agree on");
            Simulation::new(endless(2)).unwrap().run(program).unwrap().into_results().unwrap();
        }
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        assert_eq!(run(&["put:8".to_string()], None), ExitCode::from(2));
    }
}
