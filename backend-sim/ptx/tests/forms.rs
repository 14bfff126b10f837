//! Every opcode with its modifiers that 74 kernels of public NVSHMEM programs use decodes, and so do the obvious completions.

use onesided_ptx::Module;

fn module(lines: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func nvshmem_quiet;\n.global .u32 variable;\n.func helper(.param .b32 a) {{ ret; }}\n\
         .visible .entry k(.param .u64 out, .param .align 8 .b8 structure[32])\n{{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<8>;\n\
         .reg .b64 %rd<8>;\n.reg .f32 %f<8>;\n.reg .f64 %d<8>;\n.param .b32 slot;\n.param .b64 wide;\n.local .align 16 .b8 stack[64];\n\
         .shared .align 16 .b8 room[64];\n{lines}\ndone:\nret;\n}}\n"
    )
}

/// One form a line.
fn decode(lines: &str) {
    let wrong: Vec<String> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .filter_map(|line| Module::parse(&module(line)).err().map(|error| format!("{line}\n    {error}")))
        .collect();
    assert!(wrong.is_empty(), "{} are refused:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn forms_of_multicast_and_of_clusters() {
    decode(
        "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
        multimem.ld_reduce.global.add.v4.bf16x2 {%r1, %r2, %r3, %r4}, [%rd1];
        multimem.ld_reduce.weak.global.add.acc::f32.v4.f16x2 {%r1, %r2, %r3, %r4}, [%rd1+16];
        multimem.ld_reduce.acquire.gpu.global.min.u32 %r1, [%rd1];
        multimem.ld_reduce.relaxed.sys.global.and.b64 %rd2, [%rd1];
        multimem.st.relaxed.sys.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
        multimem.st.global.v4.f32 [%rd1], {%r1, %r2, %r3, %r4};
        multimem.st.release.sys.global.u64 [%rd1], %rd2;
        multimem.red.release.sys.global.add.u32 [%rd1], %r1;
        multimem.red.global.add.v2.f32 [%rd1], {%f1, %f2};
        barrier.cluster.arrive.aligned;
        barrier.cluster.arrive.release;
        barrier.cluster.wait.acquire.aligned;
        mapa.shared::cluster.u32 %r1, %r2, %r3;
        mapa.u64 %rd1, %rd2, %r3;
        getctarank.u64 %r1, %rd2;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], %r2, [%r3], %h1;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%rd1], %r2, [%r3], %h1, %rd2;
        cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2, %r2}], [%r3], %h1;
        cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r1], [%rd1, {%r2}], [%r3], 3, %rd2;
        red.global.add.v2.f32 [%rd1], {%f1, %f2};
        red.relaxed.gpu.global.v4.bf16x2.add.noftz [%rd1], {%r1, %r2, %r3, %r4};
        atom.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4};
        atom.release.gpu.global.v2.f16x2.add.noftz {%r1, _}, [%rd1+8], {%r1, %r2};
        ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];
        st.mmio.relaxed.sys.global.u32 [%rd1], %r1;
        cp.async.bulk.prefetch.L2.global [%rd1], 128;",
    );
}

#[test]
fn forms_of_tensors() {
    decode(
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];
        cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [room], [%rd1+64, {%r2, -1}], [%r3];
        cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1, {%r2, %r2, 0, %r2, %r2}], [%r3+8], %rd2;
        cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r2, %r2}], [%r3];
        cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [structure, {%r2, %r2, %r2, %r2}], [%r3], %rd2;
        cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd1, {%r2}], [%r3];
        cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group.L2::cache_hint [%rd1, {%r2, %r2}], [%r3], %rd2;
        cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r2, %r2}];
        cp.async.bulk.prefetch.tensor.1d.L2.global.L2::cache_hint [%rd1, {%r2}], %rd2;
        prefetch.tensormap [%rd1];
        prefetch.param.tensormap [%rd1];
        prefetch.const.tensormap [%rd1];
        fence.proxy.tensormap::generic.release.gpu;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [room], 128;
        fence.proxy.tensormap::generic.acquire.sys [%rd1], 128;",
    );
}

#[test]
fn forms_of_matrices() {
    decode(
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];
        ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r1, %r2}, [%r2+16];
        ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [room];
        ldmatrix.sync.aligned.m8n8.x4.b16 {%r1, %r2, %r3, %r4}, [%rd1];
        stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r5], {%r1, %r2, %r3, %r4};
        stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r1};
        movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, 0};
        mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {0f00000000, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};
        mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r1}, {%r5}, {%r1, %r2};
        mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
        mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d1}, {%d2}, {%d1, %d2};
        mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64 {%d1, %d2}, {%d1}, {%d2}, {%d1, %d2};
        cvt.rna.tf32.f32 %r1, %f1;
        cvt.rn.relu.satfinite.tf32.f32 %r1, %f1;",
    );
}

#[test]
fn forms_of_public_kernels() {
    decode(
        "add.s32 %r1, %r2, %r3;
        ld.param.u64 %rd1, [out];
        mov.u32 %r1, %ntid.x;
        mov.b64 {%r1, %r2}, %rd1;
        bra done;
        bra.uni done;
        setp.ne.s32 %p1, %r1, 0;
        setp.eq.s64 %p1, %rd1, 0;
        setp.lt.u32 %p1, %r1, %r2;
        setp.ge.u64 %p1, %rd1, %rd2;
        setp.gt.s16 %p1, %h1, %h2;
        setp.le.u16 %p1, %h1, %h2;
        setp.ltu.f32 %p1, %f1, %f2;
        call.uni nvshmem_quiet, ();
        st.param.b32 [slot+0], %r1;
        sub.s64 %rd1, %rd2, %rd3;
        cvta.to.global.u64 %rd1, %rd2;
        cvta.local.u64 %rd1, %rd2;
        cvta.param.u64 %rd1, %rd2;
        cvta.shared.u64 %rd1, %rd2;
        mul.wide.s32 %rd1, %r1, 4;
        mul.lo.s64 %rd1, %rd2, %rd3;
        mul.hi.u32 %r1, %r2, %r3;
        mul.rn.f64 %d1, %d2, %d3;
        mul.f32 %f1, %f2, 0f3F800000;
        cvt.u64.u32 %rd1, %r1;
        cvt.rn.f32.s32 %f1, %r1;
        cvt.rn.f32.f64 %f1, %d1;
        cvt.rni.s64.f64 %rd1, %d1;
        st.global.u32 [%rd1], %r1;
        selp.b32 %r1, 1, 0, %p1;
        and.b32 %r1, %r2, %r3;
        or.b64 %rd1, %rd2, %rd3;
        xor.pred %p1, %p2, %p3;
        not.b32 %r1, %r2;
        neg.s64 %rd1, %rd2;
        abs.s32 %r1, %r2;
        bar.sync 0;
        bar.sync 1, 64;
        barrier.sync 0;
        barrier.sync 2, 128;
        ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
        shl.b32 %r1, %r2, 2;
        shr.s64 %rd1, %rd2, 63;
        mad.lo.s32 %r1, %r2, %r3, %r4;
        rem.s32 %r1, %r2, %r3;
        div.u64 %rd1, %rd2, %rd3;
        div.rn.f64 %d1, %d2, %d3;
        min.s32 %r1, %r2, %r3;
        max.u64 %rd1, %rd2, %rd3;
        st.shared.v2.u32 [%rd1], {%r1, %r2};
        ld.volatile.global.u64 %rd1, [%rd2];
        ld.shared.u16 %h1, [room+2];
        trap;
        st.local.u8 [%rd1], %h1;
        ld.local.s8 %h1, [%rd1];
        ld.u32 %r1, [%rd1];
        ld.global.nc.u32 %r1, [%rd1];
        st.u64 [%rd1], %rd2;
        membar.gl;
        membar.sys;
        atom.global.add.u32 %r1, [%rd1], 1;
        atom.global.inc.u32 %r1, [%rd1], 7;
        atom.global.exch.b32 %r1, [%rd1], 7;
        atom.add.release.gpu.u32 %r1, [%rd1], 1;
        atom.add.release.gpu.global.u32 %r1, [%rd1], 1;
        atom.sys.add.u64 %rd1, [%rd2], 1;
        atom.acquire.cta.shared::cta.cas.b32 %r1, [%r2], 0, 1;
        atom.release.cta.shared::cta.exch.b32 %r1, [%r2], 0;
        shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;
        shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;
        shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;
        shfl.sync.down.b32 %r1|%p1, %r2, 1, 31, -1;
        st.volatile.global.u32 [%rd1], %r1;
        st.volatile.shared.u32 [room], %r1;
        ld.volatile.shared.u32 %r1, [room];
        st.volatile.u32 [%rd1], 1;
        fma.rn.f32 %f1, %f2, %f3, %f4;
        ld.acquire.gpu.u32 %r1, [%rd1];
        ld.acquire.gpu.global.u32 %r1, [%rd1];
        ld.global.acquire.gpu.u32 %r1, [%rd1];
        ld.acquire.sys.global.u64 %rd1, [%rd2];
        ld.acquire.cta.u32 %r1, [%rd1];
        ld.global.relaxed.sys.u32 %r1, [%rd1];
        st.release.sys.global.u64 [%rd1], %rd2;
        st.release.cta.u32 [%rd1], %r1;
        st.relaxed.sys.global.u64 [%rd1], %rd2;
        bfi.b64 %rd1, %rd2, %rd3, 32, 32;
        ld.global.nc.L1::no_allocate.L2::256B.v4.s32 {%r1, %r2, %r3, %r4}, [%rd1];
        st.global.L1::no_allocate.v4.s32 [%rd1], {%r1, %r2, %r3, %r4};
        bar.warp.sync -1;
        elect.sync %r1|%p1, -1;
        elect.sync _|%p1, -1;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd1], %r2, [%r3], %rd2;
        cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%rd1], [%r1], %r2, %rd2;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        cp.async.bulk.wait_group.read 0;
        mbarrier.init.shared::cta.b64 [%r1], 1;
        mbarrier.inval.shared::cta.b64 [%r1];
        mbarrier.arrive.shared::cta.b64 %rd1, [%r1];
        mbarrier.arrive.shared::cta.b64 _, [%r1];
        mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r1], %r2;
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
        mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2, %r3;
        fence.proxy.async.shared::cta;
        fence.mbarrier_init.release.cluster;
        fence.acq_rel.sys;
        vote.sync.all.pred %p1, %p2, -1;
        vote.sync.any.pred %p1, !%p2, -1;
        add.cc.u32 %r1, %r2, %r3;
        addc.u32 %r1, %r2, %r3;
        addc.cc.u32 %r1, %r2, %r3;
        sub.cc.s64 %rd1, %rd2, %rd3;
        subc.s64 %rd1, %rd2, %rd3;
        subc.cc.u32 %r1, %r2, %r3;
        mad.lo.cc.u32 %r1, %r2, %r3, %r4;
        madc.hi.u32 %r1, %r2, %r3, %r4;
        madc.hi.cc.u32 %r1, %r2, %r3, %r4;
        madc.lo.cc.u32 %r1, %r2, %r3, %r4;
        nanosleep.u32 100;
        brev.b32 %r1, %r2;
        bfind.shiftamt.u32 %r1, %r2;
        clz.b64 %r1, %rd1;
        mov.u64 %rd1, %clock64;
        mov.u32 %r1, %envreg1;
        mov.u32 %r1, WARP_SZ;
        mov.u32 %r1, %laneid;",
    );
}

#[test]
fn completions() {
    decode(
        "add.rz.ftz.sat.f32 %f1, %f2, %f3;
        add.f16x2 %r1, %r2, %r3;
        add.rn.bf16x2 %r1, %r2, %r3;
        sub.ftz.f16 %h1, %h2, %h3;
        fma.rn.relu.bf16 %h1, %h2, %h3, %h4;
        fma.rp.f64 %d1, %d2, %d3, %d4;
        max.NaN.f32 %f1, %f2, %f3;
        min.f16x2 %r1, %r2, %r3;
        rcp.rn.f32 %f1, %f2;
        rcp.approx.ftz.f32 %f1, %f2;
        rcp.rn.f64 %d1, %d2;
        sqrt.rz.f32 %f1, %f2;
        sqrt.approx.f32 %f1, %f2;
        rsqrt.approx.ftz.f32 %f1, %f2;
        div.full.ftz.f32 %f1, %f2, %f3;
        ex2.approx.ftz.f32 %f1, %f2;
        ex2.approx.f16x2 %r1, %r2;
        ex2.approx.ftz.bf16 %h1, %h2;
        rcp.approx.ftz.f64 %d1, %d2;
        rsqrt.approx.f64 %d1, %d2;
        lg2.approx.f32 %f1, %f2;
        tanh.approx.bf16x2 %r1, %r2;
        neg.f16x2 %r1, %r2;
        abs.ftz.f32 %f1, %f2;
        copysign.f64 %d1, %d2, %d3;
        testp.notanumber.f32 %p1, %f1;
        setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;
        setp.gt.f16x2 %p1|%p2, %r1, %r2;
        setp.eq.bf16 %p1, %h1, %h2;
        setp.lo.u32 %p1, %r1, %r2;
        set.gt.u32.s32 %r1, %r2, %r3;
        set.eq.f32.f32 %f1, %f2, %f3;
        slct.f32.s32 %f1, %f2, %f3, %r1;
        cvt.rn.bf16x2.f32 %r1, %f1, %f2;
        cvt.rn.relu.f16x2.f32 %r1, %f1, %f2;
        cvt.rn.satfinite.f16.f32 %h1, %f1;
        cvt.f32.bf16 %f1, %h1;
        cvt.sat.u8.s32 %h1, %r1;
        cvt.rzi.ftz.u32.f32 %r1, %f1;
        cvt.rmi.f16.f16 %h1, %h2;
        cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
        cvt.rn.satfinite.relu.e5m2x2.f32 %h1, %f1, %f2;
        cvt.rn.satfinite.e5m2x2.f16x2 %h1, %r1;
        cvt.rn.f16x2.e4m3x2 %r1, %h1;
        cvt.rn.relu.f16x2.e5m2x2 %r1, %h1;
        mov.b32 {%h1, %h2}, %r1;
        mov.b64 {%h1, %h2, %h3, %h4}, %rd1;
        mov.b32 %r1, {%h1, %h2};
        mov.f32 %f1, 1.5;
        mov.f64 %d1, -2.5e-3;
        mov.u64 %rd1, variable+4;
        mov.u64 %rd1, structure+8;
        ld.param.v2.u32 {%r1, %r2}, [structure+8];
        ld.const.u32 %r1, [%rd1];
        ld.weak.global.ca.u32 %r1, [%rd1];
        ld.shared::cta.v4.b32 {%r1, %r2, %r3, %r4}, [room];
        ld.global.u32 %r1, [variable];
        ld.global.u32 {%r1}, [%rd1];
        st.shared.u32 [room], {%r1};
        mov.b32 %r1, %f1;
        cvt.rn.f16.f32 %r1, %f1;
        st.global.cs.u32 [%rd1+-4], %r1;
        st.release.gpu.shared.u32 [room], %r1;
        atom.global.acq_rel.sys.cas.b64 %rd1, [%rd2], %rd3, %rd4;
        atom.shared.min.s64 %rd1, [room], %rd2;
        atom.add.noftz.f16x2 %r1, [%rd1], %r2;
        atom.global.add.f64 %d1, [%rd1], %d2;
        red.relaxed.gpu.global.max.u32 [%rd1], %r1;
        red.shared.add.u32 [room], 1;
        bar.arrive 1, 64;
        bar.red.popc.u32 %r1, 0, %p1;
        bar.red.and.pred %p1, 0, 64, !%p2;
        barrier.cta.sync.aligned 0;
        barrier.red.or.pred %p1, 0, %p2;
        match.any.sync.b64 %r1, %rd1, -1;
        match.all.sync.b32 %r1|%p1, %r2, -1;
        redux.sync.max.s32 %r1, %r2, -1;
        vote.sync.ballot.b32 %r1, %p1, -1;
        vote.sync.uni.pred %p1, %p2, -1;
        activemask.b32 %r1;
        fence.sc.gpu;
        fence.acq_rel.cluster;
        fence.proxy.async;
        fence.proxy.async.global;
        mbarrier.test_wait.shared.b64 %p1, [room], %rd1;
        mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], %r2;
        mbarrier.complete_tx.shared.b64 [%r1], %r2;
        mbarrier.arrive.release.cta.shared::cta.b64 _, [%r1], 2;
        mbarrier.arrive_drop.shared.b64 %rd1, [%r1];
        cp.async.ca.shared.global [%r1], [%rd1], 4;
        cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;
        cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;
        bmsk.clamp.b32 %r1, %r2, %r3;
        szext.wrap.s32 %r1, %r2, %r3;
        cp.async.commit_group;
        cp.async.wait_group 1;
        cp.async.wait_all;
        cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];
        cp.async.mbarrier.arrive.shared::cta.b64 [room];
        cp.async.mbarrier.arrive.b64 [%rd1];
        cp.async.ca.shared.global [%r1], [%rd1], 4, %p1;
        cp.async.bulk.wait_group.read 1;
        cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r2], 16, [%r3];
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%r1+16], {%f1, %f2, %f3, %f4}, [%r3];
        st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%r1], {%rd1, %rd2}, [room];
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r3];
        red.async.shared::cluster.mbarrier::complete_tx::bytes.relaxed.cluster.add.s64 [%r1], %rd2, [%r3];
        cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.noftz.bf16 [%rd1], [%r1], %r2, %rd2;
        cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [%rd1], [room], 16;
        prefetch.global.L2 [%rd1];
        prefetch.global.L2::evict_last [%rd1];
        ld.global.L2::evict_first.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];
        st.global.L1::evict_last.L2::evict_last.v4.f64 [%rd1], {%d1, %d2, %d3, %d4};
        createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;
        isspacep.shared %p1, %rd1;
        cvta.to.shared.u64 %rd1, %rd2;
        prmt.b32.rc8 %r1, %r2, %r3, %r4;
        prmt.b32 %r1, %r2, %r3, 0x5410;
        shf.r.wrap.b32 %r1, %r2, %r3, %r4;
        lop3.b32 %r1, %r2, %r3, %r4, 0x96;
        dp2a.lo.s32.u32 %r1, %r2, %r3, %r4;
        lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x96, %p2;
        lop3.and.b32 _|%p1, %r2, %r3, %r4, 1, !%p2;
        fns.b32 %r1, %r2, 3, -1;
        max.NaN.xorsign.abs.bf16x2 %r1, %r2, %r3;
        min.ftz.xorsign.abs.f32 %f1, %f2, %f3;
        vadd4.u32.s32.u32.sat %r1.b0, %r2.b3210, %r3.b7654, %r4;
        vset2.u32.u32.ne.add %r1, %r2.h32, %r3, %r4;
        mbarrier.pending_count.b64 %r1, %rd1;
        fence.acquire.sync_restrict::shared::cluster.cluster;
        fence.release.sync_restrict::shared::cta.cluster;
        fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
        getctarank.u64 %r1, %rd1;
        createpolicy.range.L2::evict_last.b64 %rd1, [%rd2], 64, %r1;
        createpolicy.cvt.L2.b64 %rd1, %rd2;
        mov.u32 %r1, %reserved_smem_offset_begin;
        sad.s16 %h1, %h2, %h3, %h4;
        cnot.b32 %r1, %r2;
        mad.wide.u16 %r1, %h1, %h2, %r2;
        mad.hi.sat.s32 %r1, %r2, %r3, %r4;
        min.s16x2 %r1, %r2, %r3;
        exit;
        brkpt;
        griddepcontrol.wait;
        mov.u32 %r1, %lanemask_lt;
        mov.u32 %r1, %nclusterid.x;
        mov.u32 %r1, %cluster_ctarank;
        mov.u64 %rd1, %globaltimer;
        @!%p1 add.s32 %r1, %r1, 1;
        { .reg .b32 %r1; .reg .pred q; mov.u32 %r1, 1; }
        targets: .branchtargets done, done;
        { here: .branchtargets done, done; brx.idx %r1, here; }
        { .param .b32 argument; st.param.b32 [argument+0], %r1; call.uni helper, (argument); }",
    );
}
