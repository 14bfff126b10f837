//! What cannot be run is refused when a module is loaded, with opcode, line of the PTX, and line of the source.

use onesided_ptx::Module;

/// The error of a kernel with this line, which stands in line 12 of the PTX and in line 7 of the source.
fn refused(line: &str) -> String {
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n\
         .reg .b128 %q<2>; .reg .f32 %f<4>;\n.param .b32 slot;\n.loc 1 7 1\n{line}\nret;\n}}\n.file 1 \"k.cu\"\n"
    );
    match Module::parse(&text) {
        Ok(_) => format!("accepted: {line}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn instructions() {
    let lines = [
        "tcgen05.fence::before_thread_sync;",
        "add.frobnicate.s32 %r1, %r2, %r3;",
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %r2, %r9;",
        "mov.b32 {}, %r1;",
        "wait: ld.volatile.global.u32 %r1, [%rd1]; ld.global.u32; setp.ne.s32 %p1, %r1, 1; @%p1 bra wait;",
        "wait: ld.volatile.global.u32 %r1, [%rd1]; mov.b32 {}, %r1; setp.ne.s32 %p1, %r1, 1; @%p1 bra wait;",
        "add.s32 %undeclared, %r2, %r3;",
        "add.b8 %r1, %r2, %r3;",
        "mov.u32 %r1, %pm0;",
        "mov.u32 %r1, missing;",
        "bra nowhere;",
        "@%r1 bra out;",
        "@%p9 ret;",
        "ld.acquire.global.u32 %r1, [%rd1];",
        "ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];",
        "ld.volatile.global.nc.u32 %r1, [%rd1];",
        "ld.shared.nc.u32 %r1, [%r2];",
        "ld.param.u64 %rd1, [out+4];",
        "st.param.b64 [slot], %rd1;",
        "st.param.b64 [out], %rd1;",
        "atom.global.inc.u64 %rd1, [%rd2], %rd3;",
        "call.uni helper, ();",
        "call %rd1, ();",
        "setp.lt.and.s32 %p1, %r1, %r2;",
        "cvt.rn.e4m3x2.f32 %r1, %f1, %f2;",
        "add.f32 %f1, %f2, 1.5e;",
        "cp.async.bulk.tensor.1d.shared::cluster.global [%r1], [%rd1, {%r2}], [%r3];",
        "cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2, %r2, %r2, %r2, %r2}], [%r3];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r3];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, %r2], [%r3];",
        "cp.async.bulk.tensor.1d.global.shared::cta.mbarrier::complete_tx::bytes [%rd1, {%r2}], [%r1];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2}], [%r3], %h1;",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2, %r2}], [%r3], {%h1};",
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd1, {%r2, %r2, %r2}], [%r3];",
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2, %r2, %r2, %r2}], [%r3];",
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r2}], [%r3];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1];",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.exch.bulk_group [%rd1, {%r2}], [%r1];",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1], 16;",
        "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;",
        "ld.global.u32 %r1, [%rd1, {%r2}];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3];",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];",
        "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {%r1}, [%r3];",
        "ldmatrix.aligned.m8n8.x1.shared.b16 {%r1}, [%r3];",
        "stmatrix.sync.aligned.m8n8.x3.shared.b16 [%r3], {%r1};",
        "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1}, {%r1, %r1}, {%r1, %r1}, {%r1};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%f1, %f1, %f1, %f1}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};",
        "mma.sync.aligned.m16n8k8.row.row.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};",
        "mma.sync.aligned.m16n8k8.row.col.satfinite.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {%r1, %r1}, {%r1}, {%f1, %f1, %f1, %f1};",
        "mma.sync.aligned.m16n8k8.row.col.f16.bf16.bf16.f16 {%r1, %r1}, {%r1, %r1}, {%r1}, {%r1, %r1};",
        "mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32 {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%r1}, {%r1, %r1, %r1, %r1};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f1, %f1, %f1}, {%r1}, {%r1}, {%f1, %f1, %f1, %f1};",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r1}, {%r1, %r1}, {%r1, %r1}, {%r1, %r1}, %r1, 0;",
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r1, %r1, %r1}, [%rd1], %r1;",
        "wmma.load.a.sync.aligned.row.m16n16k16.const.f16 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1], %r1;",
        "wmma.load.a.sync.aligned.m16n16k16.global.f16 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1], %r1;",
        "wmma.load.a.sync.row.m16n16k16.global.f16 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1], %r1;",
        "wmma.load.b.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%rd1];",
        "wmma.load.c.sync.aligned.row.m16n16k16.global.bf16 {%r1, %r1, %r1, %r1}, [%rd1], %r1;",
        "wmma.store.d.sync.aligned.row.m16n16k8.global.s32 [%rd1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};",
        "wmma.store.a.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};",
        "wmma.mma.sync.aligned.row.col.m8n8k4.rn.f64.f64.f64.f32 {%rd1, %rd1}, {%rd1}, {%rd1}, {%rd1, %rd1};",
        "wmma.mma.sync.aligned.row.m8n8k4.f64.f64.f64.f64 {%rd1, %rd1}, {%rd1}, {%rd1}, {%rd1, %rd1};",
        "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32.satfinite {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}, {%r1, %r1, %r1, %r1}, {%r1, %r1, %r1, %r1}, {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1};",
        "wgmma.fence.sync;",
        "wgmma.commit_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned %r1;",
        "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f1, %f1, %f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n264k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r1, %r1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, {%r1, %r1, %r1, %r1}, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, {%r1, %r1}, %rd2, %p1, 1, 1, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 2, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, -1;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %r1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%r1, %r1}, %rd1, %rd2, %p1;",
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r1, %r1, %r1}, %rd1, %rd2, %p1, 1, 1;",
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.satfinite.e4m3.e4m3 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %p1, 1, 1;",
        "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r1, %r1, %r1, %r1}, %rd1, %rd2, %p1;",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1, %f1, %f1, %f1}, %rd1, %rd2, %r1, 0, %p1, 1, 1, 0, 0;",
        "cvt.rp.tf32.f32 %r1, %f1;",
        "red.async.release.global.gpu.add.u32 [%rd1], %r1;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.u64 [%r1], %rd1, [%r2];",
        "st.async.mbarrier::complete_tx::bytes.u32 [%rd1], %r1, [%rd2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%rd1, %rd1, %rd1, %rd1}, [%r2];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r1], %r1, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1], [%r2], 16, [%r3];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%rd1], [%r1], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%rd1], [%r1], 16;",
        "cp.async.wait_group %r1;",
        "cp.async.mbarrier.arrive.noinc.shared::cluster.b64 [%r1];",
        "ld.global.b128 %rd1, [%rd2];",
        "ld.global.v2.b128 {%q1, %q1}, [%rd2];",
        "st.global.b128 [%rd2], 0;",
        "mov.b128 %q1, {%rd1, %rd1, %rd1, %rd1};",
        "mov.b128 {%rd1, %rd2}, {%rd2, %rd1};",
        "mov.b64 %rd1, %q1;",
        "add.u64 %q1, %rd1, %rd2;",
        "atom.global.exch.b128 %rd1, [%rd2], %rd3;",
        "atom.global.and.b128 %q1, [%rd2], %q1;",
        "red.global.exch.b128 [%rd2], %q1;",
        "cvt.rn.satfinite.e2m1x2.f32 %r1, %f1, %f2;",
        "cvt.rp.satfinite.ue8m0x2.f32 %r1, %f1, %f2;",
        "multimem.st.sys.relaxed.global.v4.f64 [%rd1], {%rd1, %rd1, %rd1, %rd1};",
        "multimem.red.global.add.v2.u32 [%rd1], {%r1, %r2};",
        "st.mmio.global.u32 [%rd1], %r1;",
        "add.s32 %r1, %r2, 99999999999999999999;",
        ".reg .b32 %many<70000>;",
        ".local .b8 huge[999999999];",
    ];
    let all: Vec<String> = lines.iter().map(|line| format!("{line}\n    {}", refused(line))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn texts() {
    let header = ".version 9.0\n.target sm_90\n.address_size 64\n";
    let texts = [
        String::new(),
        "int main() {}".to_owned(),
        ".version 99.0\n.target sm_90\n".to_owned(),
        ".version nine\n".to_owned(),
        ".version 9.0\n.target sm_90\n.address_size 32\n".to_owned(),
        format!("{header}.visible .entry k("),
        format!("{header}.visible .entry k() {{ ret"),
        format!("{header}.visible .entry k() {{ ret; }} .visible .entry k() {{ ret; }}"),
        format!("{header}.func f(.param .b32 a);"),
        format!("{header}.visible .entry k() {{ .surf s; }}"),
        format!("{header}.tex .u64 t;"),
        format!("{header}.global .u32 a[2] = {{1, 2, 3}};"),
        format!("{header}.global .u64 a = nothing;"),
        format!("{header}.const .b8 big[70000];"),
        format!("{header}.extern .const .b8 c[4];"),
        format!("{header}.global .u32 a;\n.global .u32 a;"),
        format!("{header}.visible .entry k() {{ .reg .b32 %r<2>; /* no end"),
        format!("{header}\u{1F980}"),
    ];
    let all: Vec<String> = texts
        .iter()
        .map(|text| match Module::parse(text) {
            Ok(_) => format!("accepted: {text}"),
            Err(error) => format!("{:?}\n    {error}", text.strip_prefix(header).unwrap_or(text)),
        })
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}
