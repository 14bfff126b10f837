//! What explains a finding ends: runs that go round in circles are given up early, and a kernel that computes is ended from outside.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use onesided::{Grid, Pe, Result, SignalOp, Source, args, expect_eq};
use onesided_sim::{Config, Effort, Explore, Run, Sim, Simulation, VerdictKind};

/// What PE 1 has looked at the word: in the run, and the most in one run.
#[derive(Default)]
struct Looks {
    now: AtomicU64,
    most: AtomicU64,
}

impl Looks {
    fn begin(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    fn again(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }
}

/// PE 1 looks for the last of two signals. It looks for ever if that comes first: each look is a step. `expected`: what it finds of a third one.
fn looks_for_ever(looks: &Looks, expected: u64) -> impl Fn(&Pe<Sim>) -> Result<()> + Sync {
    move |pe| {
        let (word, other) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?;
            pe.host().signal_op(other.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            looks.begin();
            let found = pe.host().signal_fetch(other.signal(0))?;
            while pe.host().signal_fetch(word.signal(0))? != 2 {
                looks.again();
            }
            expect_eq(found, expected, "the third signal")?;
        }
        pe.free(other)?;
        pe.free(word)
    }
}

/// The first random run that fails.
fn failing<T>(simulation: &mut Simulation, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Run<T> {
    let mut found = None;
    let visit = |run: &Run<T>| {
        let is_one = matches!(run.verdict.kind, VerdictKind::Failed { .. });
        found = is_one.then(|| run.without_results());
        if is_one { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    simulation.explore(Explore::random(1000, 0), program, visit).unwrap();
    found.expect("it fails on some schedule")
}

#[test]
fn a_run_that_takes_far_more_steps_than_the_finding_is_given_up() {
    for expected in [1, 0] {
        let looks = Looks::default();
        let program = looks_for_ever(&looks, expected);
        let mut simulation = Simulation::new(Config { max_steps: Some(100_000), ..Config::pes(2) }).unwrap();
        let found = failing(&mut simulation, &program);
        assert!(found.steps < 100, "{}", found.steps);
        looks.most.store(0, Ordering::Relaxed);
        simulation.minimize(&found, Effort::LITTLE, &program).unwrap();
        let most = looks.most.swap(0, Ordering::Relaxed);
        assert!(most < 5000, "minimize: {most}");
        simulation.critical(&found, Effort::LITTLE, &program).unwrap();
        let most = looks.most.swap(0, Ordering::Relaxed);
        assert!((1000..5000).contains(&most), "critical: {most}");
        simulation.fix(&found, Effort::LITTLE, &program).unwrap();
        let most = looks.most.swap(0, Ordering::Relaxed);
        assert!(most < 5000, "fix: {most}");
    }
}

/// Every round stores another value, so no look at the threads shows that nothing can end the loop.
const COUNT: &str = ".version 8.0\n.target sm_90\n.address_size 64
.visible .entry count(.param .u64 count_param_0, .param .u64 count_param_1)
{
.reg .b64 %rd<4>;
.reg .pred %p<2>;
ld.param.u64 %rd1, [count_param_0];
ld.param.u64 %rd2, [count_param_1];
$L:
sub.u64 %rd2, %rd2, 1;
st.global.u64 [%rd1], %rd2;
setp.ne.u64 %p1, %rd2, 0;
@%p1 bra $L;
ret;
}
";

/// A kernel counts so many rounds. When these are many, somebody wants an end. Then PE 0 says that it failed.
fn computes(rounds: &AtomicU64, flag: &AtomicBool) -> impl Fn(&Pe<Sim>) -> Result<()> + Sync {
    move |pe| {
        let (word, rounds) = (pe.alloc_zeroed::<u64>(1)?, rounds.load(Ordering::Relaxed));
        flag.store(rounds == u64::MAX, Ordering::Relaxed);
        let module = pe.module(&Source::ptx("count.ptx", COUNT))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes a pointer to a word, and a number.
        unsafe { pe.on(&stream).launch(&module.kernel("count")?, &Grid::new(1, 1), args![&word, rounds])? };
        pe.host().put(&word, &word, 1 - pe.my_pe())?; // races with the other's kernel
        pe.synchronize(&stream)?;
        pe.free(word)
    }
}

#[test]
fn a_flag_ends_an_explanation_while_a_kernel_computes() {
    let (rounds, flag) = (AtomicU64::new(9), Arc::new(AtomicBool::new(false)));
    let program = computes(&rounds, &flag);
    let mut simulation = Simulation::new(Config { max_instructions: u64::MAX, ..Config::pes(2) }).unwrap();
    let found = simulation.run(&program).unwrap();
    assert_eq!(found.verdict.kind.outcome(), "race", "{}", found.verdict);
    let (mut random, explored) = (None, Explore::random(1, 0));
    let visit = |run: &Run<()>| {
        random = Some(run.without_results());
        ControlFlow::Continue(())
    };
    simulation.explore(explored, &program, visit).unwrap();
    simulation.stop_when(Arc::clone(&flag));
    rounds.store(u64::MAX, Ordering::Relaxed);
    let begins = || flag.store(false, Ordering::Relaxed);
    begins();
    assert!(simulation.minimize(&random.unwrap(), Effort::LITTLE, &program).unwrap().is_none());
    begins();
    assert_eq!(simulation.critical(&found, Effort::LITTLE, &program).unwrap(), None);
    begins();
    assert_eq!(simulation.fix(&found, Effort::LITTLE, &program).unwrap().fix, None);
    begins();
    let witness = simulation.witness(&found.verdict.races[0], Effort::LITTLE, &program).unwrap();
    assert!(witness.run.is_none() && witness.other.is_none());
}
