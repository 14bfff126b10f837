use super::*;

/// PE 1 of 4. Symmetric memory begins at 0x1000 (buf1) and has 256 bytes; other memory at 0x9000. Shared memory begins at 0x5000 and has 4,096. Team 7 has PEs 1 and 3.
struct World;

impl Resolve for World {
    fn my_pe(&self) -> usize {
        1
    }

    fn n_pes(&self) -> usize {
        4
    }

    fn span(&self, address: u64, bytes: usize) -> Result<Span, String> {
        let (alloc, base) = match address {
            0x1000..0x1100 => (AllocId(1), 0x1000),
            0x9000..0x9100 => (AllocId::new_external(0), 0x9000),
            _ => return Err(format!("{address:#x} lies in no memory of NVSHMEM")),
        };
        let start = (address - base) as usize;
        if bytes > 256 - start {
            return Err(format!("{bytes} bytes from {start} on end behind {alloc}, which has 256"));
        }
        Ok(Span { alloc, start, len: bytes })
    }

    fn has_own(&self, address: u64, bytes: usize) -> bool {
        (0x5000..0x6000).contains(&address) && bytes <= (0x6000 - address) as usize
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        Ok((0..bytes).map(|byte| (address as usize + byte) as u8).collect())
    }

    fn team(&self, handle: i32) -> Result<TeamId, String> {
        match handle {
            0 => Ok(TeamId(0)),
            7 => Ok(TeamId(7)),
            other => Err(format!("{other} is no team of this PE")),
        }
    }

    fn members(&self, team: TeamId) -> Members {
        match team {
            TeamId(0) => Members::Strided { start: 0, stride: 1, size: 4 },
            _ => Members::Strided { start: 1, stride: 2, size: 2 },
        }
    }
}

fn request(name: &str, values: &[u64]) -> Result<Request, String> {
    Function::of_name(name).unwrap().request(values, &World)
}

fn op(name: &str, values: &[u64]) -> Op {
    match request(name, values) {
        Ok(Request::Op(op, held)) => {
            assert!(held.borrow().is_empty());
            op
        }
        other => panic!("{name} gives {other:?}"),
    }
}

fn span(start: usize, len: usize) -> Span {
    Span { alloc: AllocId(1), start, len }
}

const MINUS_ONE: u64 = 0xffff_ffff;

#[test]
fn puts_and_gets() {
    let external = Span { alloc: AllocId::new_external(0), start: 8, len: 12 };
    let (dst, dtype) = (span(16, 12), DType::I32);
    let put = Op::Put { dst, src: external, dtype, pe: 3, nbi: true, signal: None };
    assert_eq!(op("nvshmemx_int_put_nbi_block", &[0x1010, 0x9008, 3, 3]), put);
    assert_eq!(op("nvshmemx_qp_int_put_nbi", &[0x1010, 0x9008, 3, 3, 5]), put);

    let signal = Some(SignalUpdate { word: span(0, 8), value: 9, op: SignalOp::Add });
    let put = Op::Put { dst: span(32, 32), src: span(64, 32), dtype: DType::U64, pe: 0, nbi: false, signal };
    assert_eq!(op("nvshmem_put128_signal", &[0x1020, 0x1040, 2, 0x1000, 9, 10, 0]), put);

    let get = Op::Get { dst: Span { len: 3, ..external }, src: span(1, 3), dtype: DType::U8, pe: 2, nbi: false };
    assert_eq!(op("nvshmem_getmem", &[0x9008, 0x1001, 3, 2]), get);

    let iput = Op::IPut {
        dst: span(0, 18),
        src: span(64, 10),
        dst_stride: 4,
        src_stride: 2,
        count: 3,
        dtype: DType::U16,
        pe: 0,
    };
    assert_eq!(op("nvshmem_iput16", &[0x1000, 0x1040, 4, 2, 3, 0]), iput);
    let iget = Op::IGet {
        dst: span(0, 4),
        src: span(64, 4),
        dst_stride: 2,
        src_stride: 1,
        count: 1,
        dtype: DType::F32,
        pe: 0,
    };
    assert_eq!(op("nvshmem_float_iget", &[0x1000, 0x1040, 2, 1, 1, 0]), iget);

    assert_eq!(
        op("nvshmem_short_p", &[0x1002, 0xfffe, 1]),
        Op::P { dst: span(2, 2), dtype: DType::I16, value: 0xfffe, pe: 1 }
    );
    assert_eq!(op("nvshmem_double_g", &[0x1008, 1]), Op::G { src: span(8, 8), dtype: DType::F64, pe: 1 });
}

#[test]
fn without_elements_nothing_moves_but_the_signal() {
    assert_eq!(request("nvshmem_int_put", &[0, 0, 0, 3]), Ok(Request::Nothing));
    assert_eq!(request("nvshmem_int_iput", &[0, 0, 1, 1, 0, 3]), Ok(Request::Nothing));
    let update = SignalUpdate { word: span(8, 8), value: 1, op: SignalOp::Set };
    assert_eq!(op("nvshmem_int_put_signal", &[0, 0, 0, 0x1008, 1, 9, 3]), Op::Signal { update, pe: 3 });
    assert_eq!(request("nvshmem_int_wait_until_all", &[0, 0, 0, 0, 1]), Ok(Request::Nothing));
}

#[test]
fn signals_and_waits() {
    let update = SignalUpdate { word: span(8, 8), value: 7, op: SignalOp::Set };
    assert_eq!(op("nvshmemx_signal_op", &[0x1008, 7, 9, 0]), Op::Signal { update, pe: 0 });
    assert_eq!(op("nvshmem_signal_fetch", &[0x1008]), Op::SignalFetch { word: span(8, 8) });
    let wait = |vars, dtype, cmp, value, signal| Op::Wait { vars, dtype, cmp, against: Against::One(value), signal };
    assert_eq!(op("nvshmem_signal_wait_until", &[0x1008, 5, 7]), wait(span(8, 8), DType::U64, Cmp::Ge, 7, true));
    assert_eq!(
        op("nvshmem_int_wait_until", &[0x1004, 1, MINUS_ONE]),
        wait(span(4, 4), DType::I32, Cmp::Ne, MINUS_ONE, false)
    );

    // Flags and values are read when the call is made.
    let Ok(Request::Op(all, held)) = request("nvshmem_short_wait_until_all_vector", &[0x1000, 2, 0x2000, 0, 0x2010])
    else {
        panic!("an operation")
    };
    let (vars, dtype) = (span(0, 4), DType::I16);
    assert_eq!(all, Op::Wait { vars, dtype, cmp: Cmp::Eq, against: Against::Each, signal: false });
    assert_eq!(held.borrow(), Values { bytes: &[0x10, 0x11, 0x12, 0x13], skip: &[true, true] });

    let some = Select {
        vars: span(0, 8),
        dtype: DType::I32,
        cmp: Cmp::Gt,
        wanted: Wanted::One(3),
        skip: vec![],
        form: Form::Some,
        test: false,
        indices: Some(0x3000),
    };
    let found = request("nvshmem_int_wait_until_some", &[0x1000, 2, 0x3000, 0, 2, 3]);
    assert_eq!(found, Ok(Request::Select(some.clone())));
    let any = Select {
        form: Form::Any,
        test: true,
        indices: None,
        wanted: Wanted::Each(vec![0x0302_0100, 0x0706_0504]),
        ..some.clone()
    };
    assert_eq!(request("nvshmem_int_test_any_vector", &[0x1000, 2, 0, 2, 0x4000]), Ok(Request::Select(any)));
    let one = Select { form: Form::One, test: true, indices: None, vars: span(0, 4), ..some };
    assert_eq!(request("nvshmem_int_test", &[0x1000, 2, 3]), Ok(Request::Select(one)));
}

#[test]
fn atomics() {
    let amo = |op, value, cond, fetch| Op::Amo { dst: span(8, 4), dtype: DType::U32, op, value, cond, fetch, pe: 2 };
    assert_eq!(op("nvshmem_uint32_atomic_fetch", &[0x1008, 2]), amo(AmoOp::Fetch, 0, 0, true));
    assert_eq!(op("nvshmem_uint32_atomic_inc", &[0x1008, 2]), amo(AmoOp::Add, 1, 0, false));
    assert_eq!(op("nvshmem_uint32_atomic_swap", &[0x1008, 5, 2]), amo(AmoOp::Set, 5, 0, true));
    assert_eq!(op("nvshmem_uint32_atomic_compare_swap", &[0x1008, 4, 5, 2]), amo(AmoOp::CompareSwap, 5, 4, true));
    assert_eq!(op("nvshmem_uint32_atomic_xor", &[0x1008, 5, 2]), amo(AmoOp::Xor, 5, 0, false));
}

#[test]
fn collectives() {
    let team = TeamId(7);
    assert_eq!(op("nvshmemx_barrier_all_block", &[]), Op::Barrier { team: TeamId(0) });
    assert_eq!(op("nvshmem_team_sync", &[7]), Op::Sync { team });
    let (src, dtype) = (span(0, 8), DType::F32);
    let reduce = Op::Reduce { team, dst: src, src, dtype, op: onesided::ReduceOp::Sum };
    assert_eq!(op("nvshmemx_float_sum_reduce_warp", &[7, 0x1000, 0x1000, 2]), reduce);
    let fcollect = Op::Fcollect { team, dst: span(64, 16), src, dtype };
    assert_eq!(op("nvshmem_float_fcollect", &[7, 0x1040, 0x1000, 2]), fcollect);
    let alltoall = Op::Alltoall { team: TeamId(0), dst: span(64, 32), src: span(0, 32), dtype };
    assert_eq!(op("nvshmem_float_alltoall", &[0, 0x1040, 0x1000, 2]), alltoall);
    let scatter = Op::ReduceScatter { team, dst: span(64, 8), src: span(0, 16), dtype, op: onesided::ReduceOp::Max };
    assert_eq!(op("nvshmem_float_max_reducescatter", &[7, 0x1040, 0x1000, 2]), scatter);
    let broadcast = Op::Broadcast { team, dst: span(64, 3), src: span(0, 3), dtype: DType::U8, root: 1 };
    assert_eq!(op("nvshmem_broadcastmem", &[7, 0x1040, 0x1000, 3, 1]), broadcast);
}

#[test]
fn queries() {
    let query = |name, values: &[u64]| match request(name, values) {
        Ok(Request::Query(value)) => value,
        other => panic!("{other:?}"),
    };
    assert_eq!((query("nvshmem_my_pe", &[]), query("nvshmem_n_pes", &[])), (1, 4));
    assert_eq!((query("nvshmem_team_my_pe", &[7]), query("nvshmem_team_n_pes", &[7])), (0, 2));
    assert_eq!(query("nvshmem_team_my_pe", &[MINUS_ONE]), MINUS_ONE, "NVSHMEM_TEAM_INVALID");
    assert_eq!(query("nvshmem_team_translate_pe", &[7, 1, 0]), 3);
    assert_eq!(query("nvshmem_team_translate_pe", &[0, 2, 7]), MINUS_ONE, "PE 2 is not in the team");
    assert_eq!(query("nvshmem_team_translate_pe", &[0, 4, 7]), MINUS_ONE);
    assert_eq!(request("nvshmem_ptr", &[0x1000, 3]), Ok(Request::Ptr { address: 0x1000, pe: 3 }));
    let version = Request::Write(vec![(0x10, vec![1, 0, 0, 0]), (0x20, vec![3, 0, 0, 0])]);
    assert_eq!(request("nvshmem_info_get_version", &[0x10, 0x20]), Ok(version));
}

#[test]
fn mistakes_name_the_argument() {
    let why = |name: &str, values: &[u64]| request(name, values).unwrap_err();
    let all = [
        why("nvshmem_int_p", &[0x1000, 1, 4]),
        why("nvshmem_int_p", &[0x1000, 1, MINUS_ONE]),
        why("nvshmem_int_p", &[0x1002, 1, 0]),
        why("nvshmem_int_p", &[0x9000, 1, 0]),
        why("nvshmem_int_put", &[0x1000, 0x500, 4, 0]),
        why("nvshmem_int_put", &[0x10f0, 0x1000, 5, 0]),
        why("nvshmem_int_put", &[0x1000, 0x1080, u64::MAX, 0]),
        why("nvshmem_int_iput", &[0x1000, 0x1080, 0, 1, 2, 0]),
        why("nvshmem_int_iput", &[0x1000, 0x1080, 1, u64::MAX, 2, 0]),
        why("nvshmem_int_put_signal", &[0x1000, 0x1080, 4, 0x1008, 1, 9, 0]),
        why("nvshmem_int_put_signal", &[0x1000, 0x1080, 4, 0x1020, 1, 1, 0]),
        why("nvshmem_signal_wait_until", &[0x1004, 0, 1]),
        why("nvshmem_signal_wait_until", &[0x1000, 6, 1]),
        why("nvshmem_float_broadcast", &[7, 0x1040, 0x1000, 2, 2]),
        why("nvshmem_float_broadcast", &[5, 0x1040, 0x1000, 2, 0]),
        why("nvshmem_float_sum_reduce", &[0, 0x1004, 0x1000, 2]),
        why("nvshmem_float_sum_reduce", &[0, 0x1040, 0x1000, 0]),
        why("nvshmem_float_alltoall", &[0, 0x1080, 0x1000, 9]),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_transfer_to_oneself_that_overlaps_is_refused() {
    // PE 1 is the caller; both operands have 8 bytes
    for name in ["nvshmem_putmem", "nvshmem_getmem_nbi", "nvshmemx_putmem_block"] {
        let at = |source: u64, pe: u64| request(name, &[0x1010, source, 8, pe]);
        let why = at(0x1014, 1).expect_err("they overlap");
        assert!(why.contains("overlap, and both are of the calling PE"), "{why}");
        assert!(at(0x1014, 2).is_ok() && at(0x1018, 1).is_ok() && at(0x1010, 1).is_ok(), "{name}");
    }
}

#[test]
fn shared_memory_is_asked_for_and_given() {
    let amount = |flag: i32| request("nvshmemx_ask_smem", &[flag as u32 as u64]);
    assert_eq!(
        [amount(0), amount(1), amount(2), amount(9)],
        [65536, 32768, 1136, 65536].map(|bytes| Ok(Request::Query(bytes)))
    );
    let give = |address: u64, bytes: u64| request("nvshmemx_give_smem", &[address, bytes]);
    for (address, bytes) in [(0x5000, 4096), (0x5010, 16), (0, 4096), (0x5000, 0)] {
        assert_eq!(give(address, bytes), Ok(Request::Nothing), "{address:#x} {bytes}");
    }
    assert_eq!(request("nvshmemx_release_smem", &[]), Ok(Request::Nothing));
    let wrong = [give(0x5008, 64), give(0x5000, 4097), give(0x1000, 64)].map(Result::unwrap_err);
    insta::assert_snapshot!(wrong.join("\n"), @r"
    nvshmemx_give_smem: smem is not aligned to 16 bytes
    nvshmemx_give_smem: smem is not shared memory of 4097 bytes; give the launch as much (Grid::shared)
    nvshmemx_give_smem: smem is not shared memory of 64 bytes; give the launch as much (Grid::shared)
    ");
}
