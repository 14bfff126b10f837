//! [`example`]: runs the examples of the API's documentation.

use std::ops::ControlFlow;

use onesided::{Pe, Result};

use crate::config::Config;
use crate::pe::Sim;
use crate::search::Explore;
use crate::simulation::{Run, Simulation};

/// Random schedules that each example is run in, after the one in order.
const SCHEDULES: u64 = 20;

/// Runs an example on `pes` PEs: in order, then in random schedules.
///
/// # Panics
/// When a schedule ends in a finding: the panic is the verdict.
#[doc(hidden)]
#[track_caller]
pub fn example(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) {
    let mut simulation = Simulation::new(Config::pes(pes)).expect("a cluster");
    let check = |run: &Run<()>| assert!(run.is_ok(), "{}\nschedule {}", run.verdict, run.schedule);
    check(&simulation.run(&program).expect("a run"));
    let random = Explore::random(SCHEDULES, 0);
    let explored = simulation.explore(random, &program, |run| {
        check(run);
        ControlFlow::Continue(())
    });
    assert_eq!(explored.expect("an exploration").schedules, SCHEDULES);
}

/// A kernel for the examples of the API's documentation: each PE puts its rank to the next one.
#[doc(hidden)]
pub const RING_PTX: &str = "
.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) nvshmem_my_pe ();
.extern .func (.param .b32 result) nvshmem_n_pes ();
.extern .func nvshmem_int_p (.param .b64 dest, .param .b32 value, .param .b32 pe);
.visible .entry ring(.param .u64 next) {
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [next];
    { .param .b32 result; call.uni (result), nvshmem_my_pe, (); ld.param.b32 %r1, [result]; }
    { .param .b32 result; call.uni (result), nvshmem_n_pes, (); ld.param.b32 %r2, [result]; }
    add.s32 %r3, %r1, 1;
    rem.s32 %r4, %r3, %r2;
    {
        .param .b64 dest; .param .b32 value; .param .b32 pe;
        st.param.b64 [dest], %rd1; st.param.b32 [value], %r1; st.param.b32 [pe], %r4;
        call.uni nvshmem_int_p, (dest, value, pe);
    }
    ret;
}";

/// A kernel for the example of tensor maps: it fills a tile of 8 × 4 words with a value.
#[doc(hidden)]
pub const FILL_TILE_PTX: &str = "
.version 9.0
.target sm_90
.address_size 64
.visible .entry fill(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u32 value) {
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<2>;
    .shared .align 128 .b8 tile[128];
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u32 %r1, [x];
    ld.param.u32 %r2, [y];
    ld.param.u32 %r3, [value];
    mov.u32 %r4, tile;
    add.s32 %r5, %r4, 128;
next:
    st.shared.u32 [%r4], %r3;
    add.s32 %r4, %r4, 4;
    setp.lt.u32 %p1, %r4, %r5;
    @%p1 bra next;
    fence.proxy.async.shared::cta;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r1, %r2}], [tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}";
