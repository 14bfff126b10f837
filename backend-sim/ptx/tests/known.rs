//! Instructions with known answers: those that few kernels have, by PTX's own formulas.

use std::sync::Arc;

use onesided_ptx::{Access, Block, FlatMemory, Launch, Module, Refusal, Scope, Stop, World};

fn module(body: &str) -> Arc<Module> {
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 words)\n{{\n.reg .pred %p<4>;\n.reg .b16 %h<6>;\n\
         .reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<4>;\n.reg .b128 %q<2>;\n.shared .align 16 .b8 room[256];\nld.param.u64 %rd1, [words];\nmov.u32 %r1, %tid.x;\n\
         {body}\nret;\n}}\n"
    );
    Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// The first words of global memory behind a run of one thread.
fn run(body: &str) -> [u32; 4] {
    let mut memory = FlatMemory::new();
    let words = memory.allocate(&[0; 256]);
    let launch = Arc::new(Launch::new(1, 1).parameter(&words.to_le_bytes()));
    let stop = Block::new(&module(body), "k", &launch, [0; 3]).unwrap().run(&mut memory);
    assert_eq!(stop, Stop::Finished, "{body}");
    let bytes = memory.bytes(words);
    [0, 4, 8, 12].map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()))
}

/// What an instruction leaves in `%r5`, of the words in `%r2`, `%r3` and `%r4`.
fn of_words(instruction: &str, [a, b, c]: [u32; 3]) -> u32 {
    let body = format!(
        "mov.u32 %r2, {a};\nmov.u32 %r3, {b};\nmov.u32 %r4, {c};\nmov.u32 %r5, 99;\n{instruction}\nst.global.u32 [%rd1], %r5;"
    );
    run(&body)[0]
}

/// Random ones, of all kinds. A program of its own that follows the manual's pseudo-code gave the results.
#[test]
fn bytes_and_halves() {
    for (instruction, words, result) in [
        ("vadd4.u32.s32.s32 %r5.b210, %r2.b0215, %r3, %r4;", [0xbb2edb20, 0x377b9aa2, 0x687c966c], 0x68a9753c),
        ("vadd4.s32.s32.u32.add %r5.b1, %r2, %r3, %r4;", [0x4a0fe75d, 0x4a0fe7a2, 0xf6236bf2], 0xf6236cc0),
        ("vsub4.u32.u32.u32 %r5.b30, %r2, %r3, %r4;", [0x98921396, 0xad8d194a, 0xb52a43ab], 0xeb2a434c),
        ("vsub4.s32.s32.u32.add %r5.b30, %r2.b7527, %r3.b2040, %r4;", [0xd84a1d3a, 0x584a9d3a, 0x04a012e8], 0x04a01314),
        ("vavrg4.u32.s32.s32 %r5.b21, %r2.b1375, %r3.b4715, %r4;", [0x0960afe9, 0x6ed78f5d, 0xf21ff5eb], 0xf23c0feb),
        ("vavrg4.s32.u32.u32.sat %r5.b2, %r2.b5414, %r3.b4212, %r4;", [0xff297d0e, 0xff297d0e, 0x2959fea3], 0x291cfea3),
        ("vabsdiff4.u32.u32.s32.add %r5.b310, %r2, %r3, %r4;", [0xfb368220, 0xbb4e5c11, 0x90656c8f], 0x90656e04),
        ("vabsdiff4.u32.u32.s32.add %r5.b310, %r2, %r3.b7277, %r4;", [0x7aa286ac, 0xfaa206ac, 0x4a807546], 0x4a807704),
        ("vmin4.u32.s32.u32.add %r5.b20, %r2.b7521, %r3, %r4;", [0xc277af32, 0x4e424b92, 0x5d09dd29], 0x5d09dd1a),
        ("vmin4.s32.s32.s32 %r5.b30, %r2.b5207, %r3.b5474, %r4;", [0x590ef594, 0x59f1f56b, 0xa4e15158], 0xf5e15159),
        ("vmax4.u32.s32.s32 %r5.b310, %r2.b5223, %r3, %r4;", [0x9de552dd, 0xc7c66f53, 0xefac6de6], 0x6fac6f53),
        ("vmax4.s32.s32.s32.sat %r5.b20, %r2, %r3, %r4;", [0x1c5f4755, 0x1c5f47aa, 0xf7cd9231], 0xf75f9255),
        ("vset4.s32.u32.eq %r5.b310, %r2.b6133, %r3.b0564, %r4;", [0xddcc78de, 0x1d7584ad, 0xb058d2ee], 0x00580000),
        ("vset4.s32.u32.eq.add %r5.b31, %r2.b4526, %r3.b5722, %r4;", [0x9059129e, 0x90591261, 0xf50be271], 0xf50be272),
        ("vset4.u32.u32.ne %r5, %r2.b6152, %r3.b6663, %r4;", [0x4a9f6396, 0x7ac56992, 0xf8f2c944], 0x00010101),
        ("vset4.s32.s32.ne %r5.b3, %r2, %r3, %r4;", [0x7a18755f, 0xfa18f55f, 0x1f33ebee], 0x0133ebee),
        ("vset4.u32.s32.lt %r5.b32, %r2.b0743, %r3, %r4;", [0xb8b15bf4, 0xfd23a604, 0x492582c0], 0x000082c0),
        ("vset4.s32.s32.lt %r5.b10, %r2.b0244, %r3.b4075, %r4;", [0xae87eb6f, 0xae87eb90, 0xd0090a86], 0xd0090101),
        ("vset4.u32.u32.le %r5.b10, %r2.b3066, %r3.b6763, %r4;", [0x770fc9de, 0xd47c6c29, 0xc2192e41], 0xc2190100),
        ("vset4.u32.s32.le %r5.b320, %r2, %r3.b7752, %r4;", [0x95fa699b, 0x95fa699b, 0xcfd3a28f], 0x0000a200),
        ("vset4.u32.u32.gt %r5.b1, %r2.b0561, %r3, %r4;", [0x9d53827c, 0xa54f0c36, 0xd3089014], 0xd3080114),
        ("vset4.u32.u32.gt %r5.b321, %r2, %r3.b1301, %r4;", [0xbedacbe9, 0xbedacbe9, 0x47a5968c], 0x0001008c),
        ("vset4.u32.s32.ge.add %r5.b1, %r2.b5775, %r3.b0242, %r4;", [0xe911738d, 0xf12501d9, 0x8e0d53f3], 0x8e0d53f4),
        ("vset4.u32.s32.ge %r5.b3, %r2.b4235, %r3.b6220, %r4;", [0x15d2822e, 0x15d2822e, 0xaafefb73], 0x01fefb73),
        ("vadd2.s32.u32.u32.add %r5.h10, %r2, %r3, %r4;", [0xd926779f, 0x269ae5fc, 0xf1d2957b], 0xf1d4f2d6),
        ("vadd2.u32.s32.u32.add %r5.h10, %r2.h11, %r3.h21, %r4;", [0x5550dc2d, 0x55afdcd2, 0x9d1f33f5], 0x9d2110b7),
        ("vsub2.u32.s32.s32.sat %r5.h1, %r2, %r3.h11, %r4;", [0x103336b2, 0x18d4e90d, 0x097f87cf], 0x000087cf),
        ("vsub2.u32.u32.u32.add %r5.h10, %r2, %r3.h33, %r4;", [0xe3c86ae4, 0x63c8eae4, 0x9e954868], 0x9e95cf84),
        ("vavrg2.s32.s32.s32.add %r5.h0, %r2.h10, %r3, %r4;", [0x8d540165, 0x410a8aab, 0x1c387b1f], 0x1c384127),
        ("vavrg2.s32.s32.u32.sat %r5, %r2.h22, %r3.h00, %r4;", [0x78c3694b, 0x78c369b4, 0xf2060574], 0x69806980),
        ("vabsdiff2.s32.u32.s32.sat %r5.h0, %r2, %r3.h10, %r4;", [0xe963674e, 0xf93d7730, 0xb4eb1afa], 0xb4eb0000),
        ("vabsdiff2.u32.s32.s32.sat %r5.h10, %r2, %r3.h10, %r4;", [0xb9f6cf07, 0xb9f6cf07, 0x454d554f], 0x00000000),
        ("vmin2.s32.s32.u32.sat %r5, %r2, %r3.h01, %r4;", [0x1789d0f0, 0xef8c68ae, 0x78a4d2c9], 0x1789d0f0),
        ("vmin2.u32.u32.u32 %r5, %r2.h23, %r3, %r4;", [0xf33c17de, 0xf33c1721, 0x31ca918b], 0x17211721),
        ("vmax2.u32.s32.u32.add %r5.h1, %r2, %r3, %r4;", [0x70f33d90, 0x8a2564da, 0x5b8c95fe], 0x5b8d2023),
        ("vmax2.s32.s32.s32.sat %r5, %r2, %r3.h01, %r4;", [0x7bb47f94, 0x7b4b7f6b, 0xc7a7e44f], 0x7f947f94),
        ("vset2.s32.s32.eq.add %r5, %r2, %r3.h31, %r4;", [0x0fbaaf42, 0x7e1efbc0, 0xb35aadb7], 0xb35aadb7),
        ("vset2.u32.u32.eq %r5.h1, %r2.h00, %r3, %r4;", [0xe5662732, 0xe56627cd, 0xa772f941], 0x0000f941),
        ("vset2.u32.s32.ne %r5, %r2.h03, %r3, %r4;", [0x523f482c, 0x10e0b715, 0x4e732814], 0x00010001),
        ("vset2.u32.u32.ne %r5.h1, %r2, %r3, %r4;", [0x0cf61ff6, 0x0c091f09, 0x214f6d25], 0x00016d25),
        ("vset2.s32.s32.lt.add %r5.h10, %r2, %r3, %r4;", [0x29cdb60b, 0x959c8352, 0x9e84879d], 0x9e84879d),
        ("vset2.u32.u32.lt %r5.h0, %r2.h13, %r3.h30, %r4;", [0x512bd129, 0x512bd1d6, 0xea3ce349], 0xea3c0001),
        ("vset2.s32.s32.le %r5.h0, %r2, %r3.h01, %r4;", [0xaf7ccef6, 0x0d6445d9, 0x352279ab], 0x35220000),
        ("vset2.u32.u32.le %r5.h1, %r2, %r3, %r4;", [0x4da0411b, 0x4d5f41e4, 0x840d0f21], 0x00000f21),
        ("vset2.u32.s32.gt %r5, %r2.h33, %r3, %r4;", [0x7d780bce, 0x61aec345, 0x09a99777], 0x00000001),
        ("vset2.u32.u32.gt.add %r5.h1, %r2.h12, %r3, %r4;", [0x605e111c, 0x605e111c, 0x0294be10], 0x0294be10),
        ("vset2.u32.s32.ge.add %r5, %r2.h23, %r3, %r4;", [0x8966624f, 0x25893ed5, 0xcc766954], 0xcc766955),
        ("vset2.s32.s32.ge %r5.h0, %r2, %r3.h00, %r4;", [0x9c55cc81, 0x1c554c81, 0xdce8d258], 0xdce80001),
    ] {
        assert_eq!(
            of_words(instruction, words),
            result,
            "{instruction} of {words:x?}: {:#x}",
            of_words(instruction, words)
        );
    }
}

/// A result may be an operand, and one that is named in parts counts as used.
#[test]
fn registers_of_bytes() {
    assert_eq!(
        of_words("vadd4.u32.u32.u32 %r2.b0, %r2.b3333, %r3, %r2;\nmov.u32 %r5, %r2;", [0x0403_0201, 0x10, 0]),
        0x0403_0214
    );
    let body = "st.global.u32 [%rd1], 0x01020304;\natom.global.add.u32 %r2, [%rd1], 1;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n\
                vadd4.u32.u32.u32 %r5, %r2.b0123, %r3, %r4;\nst.global.u32 [%rd1+4], %r5;";
    assert_eq!(run(body)[..2], [0x0102_0305, 0x0403_0201]);
}

#[test]
fn the_nth_bit() {
    for (mask, base, offset, place) in [
        (0xaaaa_aaaa, 3, 1, 3),
        (0xaaaa_aaaa, 3, -1, 3),
        (0xaaaa_aaaa, 2, 1, 3),
        (0xaaaa_aaaa, 2, -1, 1),
        (0xaaaa_aaaa, 3, 0, 3),
        (0xaaaa_aaaa, 2, 0, -1),
        (0xaaaa_aaaa, 0, 16, 31),
        (0xaaaa_aaaa, 0, 17, -1),
        (0xaaaa_aaaa, 31, -16, 1),
        (0xaaaa_aaaa, 31, -17, -1),
        (u32::MAX, 5, 3, 7),
        (u32::MAX, 5, -3, 3),
        (u32::MAX, 0, i32::MIN, -1),
        (0, 0, 1, -1),
    ] {
        let words = [mask, base, i32::cast_unsigned(offset)];
        assert_eq!(of_words("fns.b32 %r5, %r2, %r3, %r4;", words).cast_signed(), place, "{words:x?}");
    }
}

#[test]
fn logic_of_three_with_a_predicate() {
    let of = |op: &str, q: u32, a: u32, d: &str| {
        let body = format!(
            "mov.u32 %r2, {a};\nmov.u32 %r3, {q};\nmov.u32 %r5, 7;\nsetp.ne.u32 %p1, %r3, 0;\nlop3.{op}.b32 {d}|%p1, %r2, 0xf0, 0xff, 0x80, %p1;\n\
             selp.u32 %r4, 1, 0, %p1;\nst.global.v2.u32 [%rd1], {{%r5, %r4}};"
        );
        let [d, p, ..] = run(&body);
        (d, p)
    };
    assert_eq!([of("or", 0, 0x1f, "%r5"), of("or", 1, 0x1f, "%r5")], [(0x10, 1), (0x10, 1)]);
    assert_eq!([of("or", 0, 0x0f, "%r5"), of("or", 1, 0x0f, "%r5")], [(0, 0), (0, 1)]);
    assert_eq!([of("and", 0, 0x1f, "%r5"), of("and", 1, 0x1f, "%r5")], [(0x10, 0), (0x10, 1)]);
    assert_eq!([of("and", 0, 0x0f, "_"), of("and", 1, 0x1f, "_")], [(7, 0), (7, 1)]);
}

/// The signs are taken from the operands before their magnitudes are compared. What is no number has none.
#[test]
fn minima_of_magnitudes() {
    let (one, two, nan) = (0x3f80_0000, 0x4000_0000, 0x7fc0_0000);
    let minus = |word: u32| word | 1 << 31;
    for (name, a, b, result) in [
        ("max.xorsign.abs.f32", minus(two), one, minus(two)),
        ("max.xorsign.abs.f32", minus(two), minus(one), two),
        ("min.xorsign.abs.f32", minus(two), one, minus(one)),
        ("min.xorsign.abs.f32", two, one, one),
        ("min.xorsign.abs.f32", minus(0), one, minus(0)),
        ("max.xorsign.abs.f32", minus(nan), one, minus(one)),
        ("max.xorsign.abs.f32", minus(nan), nan, 0x7fff_ffff),
        ("max.NaN.xorsign.abs.f32", minus(nan), one, 0x7fff_ffff),
        ("max.ftz.xorsign.abs.f32", minus(1), 0, minus(0)),
        ("max.xorsign.abs.f32", minus(1), 0, minus(1)),
        ("max.xorsign.abs.f16x2", 0xc000_4000, 0x3c00_bc00, 0xc000_c000),
        ("min.xorsign.abs.f16x2", 0xc000_c000, 0x3c00_bc00, 0xbc00_3c00),
        ("max.NaN.xorsign.abs.f16x2", 0x7e00_c000, 0xbc00_bc00, 0x7fff_4000),
        ("max.xorsign.abs.bf16x2", 0xc000_4000, 0x3f80_bf80, 0xc000_c000),
        ("min.xorsign.abs.bf16x2", 0x7fc0_c000, 0xbf80_bf80, 0xbf80_3f80),
        ("min.NaN.xorsign.abs.bf16x2", 0x7fc0_c000, 0xbf80_bf80, 0x7fff_3f80),
    ] {
        let found = of_words(&format!("{name} %r5, %r2, %r3;"), [a, b, 0]);
        assert_eq!(found, result, "{name} {a:#x} {b:#x}: {found:#x}");
    }
    for ty in ["f16", "bf16"] {
        let instruction = format!(
            "cvt.u16.u32 %h1, %r2;\ncvt.u16.u32 %h2, %r3;\nmin.xorsign.abs.{ty} %h3, %h1, %h2;\ncvt.u32.u16 %r5, %h3;"
        );
        assert_eq!(of_words(&instruction, [0xc000, 0x3c01, 0]), 0xbc01);
    }
}

/// What a kernel asks of its surroundings, which are simple here.
#[test]
fn clusters_caches_and_reserved_memory() {
    let body = "mov.u64 %rd2, room;\ncvta.shared.u64 %rd3, %rd2;\nmov.u32 %r2, 7;\nmov.u32 %r3, 7;\nmov.u32 %r4, 7;\nmov.u32 %r5, 7;\n\
                getctarank.shared::cluster.u64 %r2, %rd2;\ngetctarank.u64 %r3, %rd3;\ngetctarank.shared::cluster.u32 %r4, room+8;\n\
                mov.b32 %r5, %reserved_smem_offset_begin;\nmov.b32 %r6, %reserved_smem_offset_end;\nmov.b32 %r7, %reserved_smem_offset_cap;\n\
                mov.b32 %r8, %reserved_smem_offset_1;\nor.b32 %r5, %r5, %r6;\nor.b32 %r5, %r5, %r7;\nor.b32 %r5, %r5, %r8;\n\
                createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd4, [%rd1], 64, 256;\n\
                createpolicy.range.L2::evict_last.b64 %rd5, [%rd1+8], %r2, %r3;\ncreatepolicy.cvt.L2.b64 %rd6, %rd5;\n\
                createpolicy.fractional.L2::evict_unchanged.b64 %rd7;\nst.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};\n\
                ld.global.L2::cache_hint.u32 %r2, [%rd1], %rd6;";
    assert_eq!(run(body), [0; 4]);
}

#[test]
fn pending_arrivals() {
    let body = "mbarrier.init.shared.b64 [room], 5;\nmbarrier.arrive.noComplete.shared.b64 %rd2, [room], 3;\n\
                mbarrier.pending_count.b64 %r2, %rd2;\nmbarrier.arrive.noComplete.shared.b64 %rd2, [room], 1;\nmbarrier.pending_count.b64 %r3, %rd2;\n\
                mbarrier.arrive_drop.shared.b64 %rd3, [room];\nmbarrier.arrive.noComplete.shared.b64 %rd2, [room], 1;\n\
                mbarrier.pending_count.b64 %r4, %rd2;\nst.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r1};";
    assert_eq!(run(body), [5, 2, 4, 0]);
}

/// Stops before strong accesses, and counts fences.
#[derive(Default)]
struct Counting(FlatMemory, Vec<Scope>);

impl World for Counting {
    fn load(&mut self, access: &Access) -> Result<u64, Refusal> {
        self.0.load(access)
    }

    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal> {
        self.0.store(access, value)
    }

    fn fence(&mut self, _: u32, scope: Scope, _: bool, _: onesided_ptx::Place) {
        self.1.push(scope);
    }
}

/// Arrivals commute, unless something looks at how many came before.
#[test]
fn arrivals_that_are_counted_do_not_commute() {
    for (count, commutes) in [("", true), ("mbarrier.pending_count.b64 %r2, %rd2;", false)] {
        let body = format!("mbarrier.init.shared.b64 [room], 5;\nmbarrier.arrive.shared.b64 %rd2, [room];\n{count}");
        let launch = Arc::new(Launch::new(1, 1).parameter(&[0; 8]));
        let mut block = Block::new(&module(&body), "k", &launch, [0; 3]).unwrap();
        match block.run(&mut Counting::default()) {
            Stop::Access(access) => assert_eq!(access.commutes, commutes, "{access:?}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A fence that is restricted to shared memory orders what the block's words of shared memory order, and is none for others.
#[test]
fn a_fence_of_shared_memory() {
    let of = |release: &str, acquire: &str| {
        let body = format!(
            "setp.ne.u32 %p1, %r1, 0;\n@!%p1 st.shared.u32 [room], 0;\nbar.sync 0;\n@%p1 bra reads;\nst.shared.u32 [room+4], 5;\n{release}\n\
             st.relaxed.cluster.shared.u32 [room], 1;\nret;\nreads:\nld.relaxed.cluster.shared.u32 %r2, [room];\nsetp.eq.u32 %p2, %r2, 0;\n\
             @%p2 bra reads;\n{acquire}\nld.shared.u32 %r3, [room+4];\nst.global.u32 [%rd1], %r3;"
        );
        let mut world = Counting::default();
        let words = world.0.allocate(&[0; 16]);
        let launch = Arc::new(Launch::new(1, 2).parameter(&words.to_le_bytes()));
        let mut block = Block::new(&module(&body), "k", &launch, [0; 3]).unwrap();
        let mut stopped = Vec::new();
        let end = loop {
            match block.run(&mut world) {
                Stop::Access(access) => stopped.push(access.thread as usize),
                // the writer goes first
                Stop::Idle if !stopped.is_empty() => {
                    stopped.sort_unstable();
                    block.go_on(stopped.remove(0));
                }
                other => break other,
            }
        };
        (matches!(end, Stop::Finished), world.1)
    };
    let (release, acquire) =
        ("fence.release.sync_restrict::shared::cta.cluster;", "fence.acquire.sync_restrict::shared::cluster.cluster;");
    assert_eq!(of(release, acquire), (true, vec![]));
    assert!(!of(release, "").0);
    assert!(!of("", acquire).0);
    assert_eq!(of("fence.release.cluster;", "fence.acquire.cluster;"), (true, vec![Scope::Cluster; 2]));
}

/// One thread of the warp copies what all of it have written. Those of another warp need not come.
#[test]
fn a_warp_copies_a_tensor_map() {
    let copy = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned";
    let of = |to: &str| {
        let body = format!(
            "shl.b32 %r2, %r1, 2;\nadd.u32 %r3, %r1, 100;\nmov.u32 %r4, room;\nadd.u32 %r4, %r4, %r2;\nsetp.gt.u32 %p1, %r1, 31;\n\
             @%p1 bra end;\nst.shared.u32 [%r4], %r3;\n{copy} [{to}], [room], 128;\nend:"
        );
        let mut memory = FlatMemory::new();
        let words = memory.allocate(&[0; 320]);
        let from = words.next_multiple_of(64);
        let launch = Arc::new(Launch::new(1, 64).parameter(&from.to_le_bytes()));
        let stop = Block::new(&module(&body), "k", &launch, [0; 3]).unwrap().run(&mut memory);
        let bytes = memory.bytes(words)[(from - words) as usize..].to_vec();
        let found = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        (stop, found.collect::<Vec<_>>())
    };
    let (stop, found) = of("%rd1+64");
    assert_eq!(stop, Stop::Finished);
    assert_eq!(found[16..48], (100..132).collect::<Vec<_>>());
    assert_eq!([found[15], found[48]], [0, 0]);
    assert!(matches!(of("%rd1+32").0, Stop::Fault(fault) if fault.kind == onesided_ptx::FaultKind::Misaligned));
}

/// An address of shared memory has 32 bits, so one that a register of 32 bits and an offset make wraps around. `room` begins at 0.
#[test]
fn addresses_of_shared_memory_wrap_around() {
    let far = "mov.b32 %r2, -16;\nmov.b32 %r3, 5;\nmov.b32 %r4, 6;\nmov.b64 %rd2, 7;\n";
    let read = "st.global.v2.u32 [%rd1], {%r5, %r6};";
    for (body, found) in [
        ("st.shared.u32 [%r2+16], %r3;\nld.shared.u32 %r5, [room];\nld.shared.u32 %r6, [%r2+16];", [5, 5]),
        ("st.shared.v2.u32 [%r2+16], {%r3, %r4};\nld.shared.v2.u32 {%r5, %r6}, [%r2+16];", [5, 6]),
        ("st.volatile.shared.u32 [%r2+20], %r3;\nld.volatile.shared.u32 %r5, [room+4];\nmov.b32 %r6, 0;", [5, 0]),
        (
            "st.shared.u32 [room], 1;\natom.shared.add.u32 %r5, [%r2+16], %r3;\nred.shared.add.u32 [%r2+16], %r3;\nld.shared.u32 %r6, [room];",
            [1, 11],
        ),
        (
            "mov.b128 %q1, {%rd2, %rd2};\nst.relaxed.cta.shared.b128 [%r2+16], %q1;\natom.shared.exch.b128 %q1, [%r2+16], %q1;\nld.shared.v2.u32 {%r5, %r6}, [%r2+24];",
            [7, 0],
        ),
        // where the address is one operand of several
        (
            "mbarrier.init.shared.b64 [%r2+16], 1;\nmbarrier.arrive.shared.b64 %rd3, [%r2+16];\nmbarrier.test_wait.shared.b64 %p1, [room], %rd3;\nselp.b32 %r5, 1, 0, %p1;\nmov.b32 %r6, 0;",
            [1, 0],
        ),
        (
            "st.global.v4.u32 [%rd1], {%r3, %r4, %r3, %r4};\nmbarrier.init.shared.b64 [room+64], 1;\nmbarrier.arrive.expect_tx.shared.b64 %rd3, [%r2+80], 16;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+32], [%rd1], 16, [%r2+80];\n\
             L:\nmbarrier.test_wait.shared.b64 %p1, [%r2+80], %rd3;\n@!%p1 bra L;\nld.shared.v2.u32 {%r5, %r6}, [room+16];",
            [5, 6],
        ),
    ] {
        assert_eq!(run(&format!("{far}{body}\n{read}"))[..2], found, "{body}");
    }
    // What wraps around may be out of bounds all the same, and a register of 64 bits with others above them holds no address of shared memory.
    for body in ["ld.shared.u32 %r5, [%r2+12];", "mov.b64 %rd2, 0x100000000;\nld.shared.u32 %r5, [%rd2];"] {
        let launch = Arc::new(Launch::new(1, 1).parameter(&[0; 8]));
        let stop =
            Block::new(&module(&format!("{far}{body}")), "k", &launch, [0; 3]).unwrap().run(&mut FlatMemory::new());
        assert!(matches!(stop, Stop::Fault(fault) if fault.kind == onesided_ptx::FaultKind::OutOfBounds), "{body}");
    }
}
