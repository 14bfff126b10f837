//! `ring_put.cu`, `ring_reduce.cu`, `report.cu` and the spins of `ordered.cu`: calls, printing, waiting.

use std::sync::Arc;

use onesided_ptx::{Block, FaultKind, Group, Stop};

use super::load;

#[test]
fn calls_by_one_thread() {
    let mut loaded = load("ring_put");
    let to = loaded.array(&[0_i32], i32::to_le_bytes);
    let launch = Arc::new(loaded.launch(1, 1).parameter(&to.to_le_bytes()));
    let mut block = Block::new(&loaded.module, "ring_p", &launch, [0; 3]).unwrap();
    let mut calls = Vec::new();
    loop {
        match block.run(&mut loaded.memory) {
            Stop::Call(call) => {
                let arguments: Vec<u64> = (0..call.layout.len()).map(|index| call.argument(index)).collect();
                calls.push((call.name.clone(), arguments, loaded.module.describe(call.place)));
                let result = if call.name == "nvshmem_n_pes" { 4 } else { 3 };
                block.reply(&call, result, Some(&[]));
            }
            Stop::Finished => break,
            other => panic!("{other:?}"),
        }
    }
    let put = calls.pop().unwrap();
    assert_eq!(put, ("nvshmem_int_p".to_owned(), vec![to, 3, 0], "ring_put.cu:7".to_owned()));
    assert!(calls.iter().all(|(name, arguments, _)| name.starts_with("nvshmem_") && arguments.is_empty()));
}

#[test]
fn calls_by_the_block() {
    let mut loaded = load("ring_put");
    let (to, from) = (loaded.array(&[0.0_f32; 64], f32::to_le_bytes), loaded.array(&[0.0_f32; 64], f32::to_le_bytes));
    let launch = loaded.launch(1, 32).parameter(&to.to_le_bytes()).parameter(&from.to_le_bytes());
    let launch = Arc::new(launch.parameter(&64_i32.to_le_bytes()));
    let mut block = Block::new(&loaded.module, "ring_put_block", &launch, [0; 3]).unwrap();
    let mut groups = Vec::new();
    loop {
        match block.run(&mut loaded.memory) {
            Stop::Call(call) if call.group == Group::Thread => block.reply(&call, 2, Some(&[])),
            Stop::Call(call) => {
                groups.push((call.name.clone(), call.threads.len()));
                if call.name == "nvshmemx_float_put_block" {
                    assert_eq!([0, 1, 2, 3].map(|index| call.argument(index)), [to, from, 64, 1]); // (2 + 1) % 2
                    assert_eq!(loaded.read(from, f32::from_le_bytes)[63], 2063.0);
                }
                block.reply(&call, 0, None);
            }
            Stop::Finished => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(groups, [("nvshmemx_float_put_block".to_owned(), 32), ("nvshmemx_barrier_all_block".to_owned(), 32)]);
}

#[test]
fn what_the_module_calls() {
    let module = load("ring_reduce").module;
    let kernel = module.kernel("ring_reduce").unwrap();
    let mut names: Vec<(&str, &[u32], u32)> = kernel
        .calls
        .iter()
        .map(|&index| &module.externals()[index])
        .map(|external| (&external.name[..], &external.parameters[..], external.result))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            ("nvshmem_my_pe", &[][..], 4),
            ("nvshmem_n_pes", &[], 4),
            ("nvshmem_signal_wait_until", &[8, 4, 8], 8),
            ("nvshmemx_int_put_signal_nbi_block", &[8, 8, 8, 8, 8, 4, 4], 0),
        ]
    );
}

#[test]
fn printing() {
    let mut loaded = load("report");
    let values = loaded.array(&[-17_i32, 4242], i32::to_le_bytes);
    let launch = loaded.launch(1, 2).parameter(&values.to_le_bytes()).parameter(&1234.5678_f64.to_le_bytes());
    loaded.finishes("report", launch);
    insta::assert_snapshot!(loaded.memory.printed, @r"
    thread 0 of block 0:   -17|7     |0000beef|-1099511627776|x|text
    1234.567800 1.235e+03 1234.57  99.5%
    thread 1 of block 0:  4242|7     |0000beef|-1099511627776|x|text
    1234.567800 1.235e+03 1234.57  99.5%
    ");
}

#[test]
fn an_assertion_names_its_line() {
    let mut loaded = load("report");
    let values = loaded.array(&[1_i32, 2, 30, 4], i32::to_le_bytes);
    let launch = loaded.launch(1, 4).parameter(&values.to_le_bytes()).parameter(&10_i32.to_le_bytes());
    let Stop::Fault(fault) = loaded.run("checked", launch) else { panic!("the assertion holds") };
    assert_eq!(fault.kind, FaultKind::Assert);
    insta::assert_snapshot!(fault);
}

#[test]
fn a_spin_waits_for_its_word() {
    for (kernel, parameters) in [("poll_acquire", 4), ("poll_volatile", 4), ("poll_with_clock", 2)] {
        let mut loaded = load("ordered");
        let (out, data) = (loaded.array(&[0_i32; 2], i32::to_le_bytes), loaded.array(&[5_i32, 6], i32::to_le_bytes));
        let flag = loaded.array(&[0_i32], i32::to_le_bytes);
        let launch = loaded.launch(1, 1).parameter(&out.to_le_bytes());
        let launch = if parameters == 2 {
            launch.parameter(&flag.to_le_bytes())
        } else {
            launch.parameter(&data.to_le_bytes()).parameter(&flag.to_le_bytes()).parameter(&2_i32.to_le_bytes())
        };
        let launch = Arc::new(launch);
        let mut block = Block::new(&loaded.module, kernel, &launch, [0; 3]).unwrap();
        assert_eq!(block.run(&mut loaded.memory), Stop::Idle, "{kernel}");
        let idle = block.idle();
        assert_eq!(idle.parked.len(), 1, "{kernel}");
        assert_eq!(idle.parked[0].reads, [(flag, 4)], "{kernel}");
        let at = loaded.module.describe(idle.parked[0].place);
        assert!(at.starts_with("ordered.cu:"), "{kernel} at {at}");

        // Something else changes: still nothing to do.
        block.wake(data, 8, 0);
        assert_eq!(block.run(&mut loaded.memory), Stop::Idle, "{kernel}");
        // It looks again, and nothing has changed.
        block.wake(flag, 4, 0);
        assert_eq!(block.run(&mut loaded.memory), Stop::Idle, "{kernel}");

        let set = onesided_ptx::Module::parse(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry set(.param .u64 p) {\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 1;\nret;\n}",
        );
        let setter = Arc::new(onesided_ptx::Launch::new(1, 1).parameter(&flag.to_le_bytes()));
        let mut other = Block::new(&Arc::new(set.unwrap()), "set", &setter, [0; 3]).unwrap();
        assert_eq!(other.run(&mut loaded.memory), Stop::Finished);
        block.wake(flag, 4, 0);
        assert_eq!(block.run(&mut loaded.memory), Stop::Finished, "{kernel}");
        assert_eq!(loaded.read(out, i32::from_le_bytes)[0], if parameters == 2 { 1 } else { 5 }, "{kernel}");
    }
}

#[test]
fn structures_are_arguments_and_results() {
    let mut loaded = load("types");
    let half = loaded.array(&[0x3c00_u16; 2], u16::to_le_bytes); // 1.0
    let words = loaded.array(&[0_u64; 4], u64::to_le_bytes);
    let launch =
        [half, half, words, words].iter().fold(loaded.launch(1, 1), |launch, p| launch.parameter(&p.to_le_bytes()));
    let mut block = Block::new(&loaded.module, "types", &Arc::new(launch), [0; 3]).unwrap();
    let mut calls = Vec::new();
    loop {
        match block.run(&mut loaded.memory) {
            Stop::Call(call) => {
                let arguments: Vec<u64> = (0..call.layout.len()).map(|index| call.argument(index)).collect();
                if call.name == "nvshmem_uint64_wait_until_some" {
                    assert_eq!(block.read_own(&call, arguments[0], 8), None); // global
                    assert!(block.write_own(&mut loaded.memory, &call, arguments[2], &1_u64.to_le_bytes()).unwrap());
                    assert_eq!(block.read_own(&call, arguments[2], 8), Some(&1_u64.to_le_bytes()[..]));
                    assert!(!block.write_own(&mut loaded.memory, &call, arguments[2] + 16, &[0]).unwrap()); // behind the array
                }
                let result = if call.name == "nvshmem_half_g" { 0x4000 } else { 2 }; // 2.0
                block.reply(&call, result, None);
                calls.push((call.name, arguments));
            }
            Stop::Finished => break,
            other => panic!("{other:?}"),
        }
    }
    let names: Vec<&str> = calls.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(
        names,
        [
            "nvshmem_half_g",
            "nvshmem_half_p",
            "nvshmemx_bfloat16_sum_reduce_block",
            "nvshmemx_qp_uint64_p",
            "nvshmemx_double2_maxloc_reduce_block",
            "nvshmem_uint64_wait_until_some",
        ]
    );
    assert_eq!(calls[1].1, [half, 0x4200, 0]); // 3.0 by value
    let local = calls[5].1[2]; // an array of the thread: no address of global memory
    assert_eq!(calls[5].1, [words, 2, local, 0, 5, 1]);
    assert!(local >> 56 != 0);
    assert_eq!(loaded.read(words, u64::from_le_bytes)[2], 2);
}
