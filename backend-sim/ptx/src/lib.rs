#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod alu;
mod block;
mod bytes;
mod call;
mod change;
mod count;
mod decode;
mod demangle;
mod error;
mod lexer;
mod memory;
mod module;
mod op;
mod operand;
mod parser;
mod source;
mod syntax;
mod tensor;
mod types;
mod world;

pub use block::{
    Block, COPIES, Call, Checks, Fault, FaultKind, Idle, InVain, Launch, LaunchError, Phase, Spare, Stop, Sync,
    ToldInBlock, Unordered, Waiting, Who, each_lane,
};
pub use bytes::{gather, gather_row, in_a_row, scatter, scatter_row};
pub use change::{Beside, Change, DeviceCall};
pub use demangle::demangle;
pub use error::Error;
pub use memory::FlatMemory;
pub use module::{External, Global, Group, Kernel, Module, Parameter, Place};
pub use source::Location;
pub use tensor::TensorMap;
pub use types::{Order, Scope, Type};
pub use world::{
    Access, AccessKind, Asks, AtomicOp, Compare, LookBeside, Looks, Refusal, Then, Until, View, Within, World, Written,
    is_shared,
};
