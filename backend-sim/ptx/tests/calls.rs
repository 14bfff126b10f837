//! Functions that a kernel calls: what their frames take.

use std::sync::Arc;

use onesided_ptx::{Block, FaultKind, FlatMemory, Launch, Module, Stop};

/// Each call takes registers; the limit comes before the memory is gone.
#[test]
fn recursion_with_many_registers() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.func f()\n{\n.reg .b64 %rd<9000>;\ncall f;\nret;\n}\n.visible .entry k()\n{\ncall f;\nret;\n}\n";
    let module = Arc::new(Module::parse(text).unwrap());
    let mut block = Block::new(&module, "k", &Arc::new(Launch::new(1, 32)), [0; 3]).unwrap();
    let Stop::Fault(found) = block.run(&mut FlatMemory::new()) else { panic!("it goes on") };
    assert_eq!(found.kind, FaultKind::StackOverflow);
    assert!(block.steps() < 32 * 100, "{}", block.steps());
}

/// Local memory of a function is aligned as its variables ask for, wherever its caller's ends.
#[test]
fn local_memory_of_functions_is_aligned() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.func (.param .b64 r) f()\n{\n.local .align 64 .b8 b[64];\n.reg .b64 %rd<3>;\n\
                mov.u64 %rd1, b;\ncvta.local.u64 %rd1, %rd1;\nst.param.b64 [r], %rd1;\nret;\n}\n.visible .entry k()\n{\n.local .align 16 .b8 own[16];\n\
                .reg .pred %p1;\n.reg .b64 %rd<3>;\n{\n.param .b64 x;\ncall (x), f;\nld.param.b64 %rd1, [x];\n}\nand.b64 %rd2, %rd1, 63;\n\
                setp.ne.u64 %p1, %rd2, 0;\n@%p1 trap;\nret;\n}\n";
    let module = Arc::new(Module::parse(text).unwrap());
    let mut block = Block::new(&module, "k", &Arc::new(Launch::new(1, 1)), [0; 3]).unwrap();
    assert_eq!(block.run(&mut FlatMemory::new()), Stop::Finished);
}
