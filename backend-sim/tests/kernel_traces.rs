//! Accesses of kernels in a trace: a flag that one sets and another loads.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Event, EventKind, Races, Schedule, Sim, Simulation};

/// The trace of one run.
fn trace(schedule: &str, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Vec<Event> {
    let schedule: Schedule = schedule.parse().unwrap();
    let config = schedule.configure(&Config { races: Races::Find, ..Config::default() });
    let run = Simulation::new(config).unwrap().replay(&schedule, program).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
    run.trace.unwrap()
}

/// PE 0 stores a number and a flag to PE 1, whose kernel loads the flag until it is set.
const FLAG: &str = ".version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) nvshmem_my_pe;
.extern .func (.param .b64 r) nvshmem_ptr(.param .b64 a, .param .b32 b);
.visible .entry k(.param .u64 k_param_0)
{
.reg .b64 %rd<5>; .reg .b32 %r<4>; .reg .pred %p<2>;
ld.param.u64 %rd1, [k_param_0];
{ .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }
setp.eq.u32 %p1, %r1, 1;
@%p1 bra $POLL;
{ .param .b64 a; .param .b32 b; .param .b64 result; st.param.b64 [a], %rd1; st.param.b32 [b], 1;
call.uni (result), nvshmem_ptr, (a, b); ld.param.b64 %rd2, [result]; }
st.global.u64 [%rd2+8], 42;
st.release.sys.global.u64 [%rd2], 1;
ret;
$POLL: ld.acquire.sys.global.u64 %rd3, [%rd1];
setp.eq.u64 %p1, %rd3, 0;
@%p1 bra $POLL;
ld.global.u64 %rd4, [%rd1+8];
st.global.u64 [%rd1+16], %rd4;
mov.u32 %r2, 0;
$AGAIN: ld.global.u64 %rd4, [%rd1+8];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 20;
@%p1 bra $AGAIN;
ret;
}
";

fn with_flag(pe: &Pe<Sim>) -> Result<()> {
    run(pe, FLAG)
}

fn run(pe: &Pe<Sim>, text: &str) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (module, stream) = (pe.module(&Source::ptx("flag.ptx", text))?, pe.stream()?);
    // SAFETY: the kernel takes one pointer.
    unsafe { pe.on(&stream).launch(&module.kernel("k")?, &Grid::new(1, 1), args![&words])? };
    pe.synchronize(&stream)?;
    pe.host().barrier_all()?;
    assert_eq!(pe.read(&words)?[2], if pe.my_pe() == 1 { 42 } else { 0 });
    pe.free(words)
}

#[test]
fn a_flag_of_a_kernel_can_be_followed_from_the_store_to_the_load_that_it_ends() {
    for schedule in ["os2.2x1.spec.p4.o.none", "os2.2x1.spec.p4.r7.none"] {
        let trace = trace(schedule, with_flag);
        let accesses: Vec<(usize, &Event)> =
            trace.iter().enumerate().filter(|(_, event)| matches!(event.kind, EventKind::Access { .. })).collect();
        let number_of = |name: &str| {
            accesses
                .iter()
                .filter(|(_, event)| event.to_json()["op"] == name)
                .map(|(number, _)| *number)
                .collect::<Vec<_>>()
        };
        let [store] = number_of("release store")[..] else { panic!("{accesses:?}") };
        let loads = number_of("acquire load");
        let last = &trace[*loads.last().unwrap()];
        let EventKind::Access { by, of: 1, strong: true, writes: false, .. } = last.kind else { panic!("{last:?}") };
        let arrival = by.filter(|by| *by != store).map(|by| &trace[by]); // in order, the store arrives at once
        assert!(arrival.is_none_or(|arrival| arrival.of == Some(store)), "{arrival:?}");
        assert_eq!(arrival.is_some(), schedule.contains(".r7."), "{arrival:?}");
        assert_eq!(last.moved.as_ref().unwrap().to_string(), "[1]");
        assert_eq!(last.to_json()["text"], "acquire load buf0+0..8 on PE 1 (block 0, thread 0)");
        assert!(accesses.iter().all(|(_, event)| event.stream == Some(0) && event.thread.is_some() && event.implied));

        let seen = number_of("load").into_iter().map(|number| &trace[number]).collect::<Vec<_>>();
        assert!(seen.iter().all(|event| event.moved.as_ref().unwrap().to_string() == "[42]"));
        assert_eq!(seen.len(), 1 + 8, "of a line, the first few plain accesses");
        assert!(loads.len() <= 2, "a look that finds what the last one found is no event: {accesses:?}");
    }
}

#[test]
fn accesses_of_kernels_are_no_part_of_a_fingerprint() {
    let fingerprint = |program: fn(&Pe<Sim>) -> Result<()>| {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        simulation.run(program).unwrap().schedule.to_string()
    };
    let with_fewer_loads = |pe: &Pe<Sim>| run(pe, &FLAG.replace("%r2, 20;", "%r2, 2;"));
    assert_eq!(fingerprint(with_flag), fingerprint(with_fewer_loads));
}
