#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `pe.rs` | [`Pe`]: what a program holds; queries, finalize, the ledger of what is alive |
//! | `life.rs` | versions, unique ids, initialization methods, status |
//! | `memory.rs`, `arena.rs` | allocation, local access, registration (verbs of [`Pe`]); memory that is freed together |
//! | `issue.rs` | [`Issue`] and [`Host`]: who issues; fence, quiet, flush |
//! | `intended.rs` | races that a program means |
//! | `rma.rs` | put and get in all forms |
//! | `signal.rs`, `atomic.rs`, `collective.rs` | further verbs of the same two types |
//! | `peer.rs` | loads and stores to other PEs' memory, multicast |
//! | `buffer.rs`, `operand.rs` | handles to memory; which of them may be which argument |
//! | `kernel.rs`, `launch.rs`, `tensor.rs` | modules of kernels; launching one; tensors as arguments |
//! | `stream.rs`, `team.rs`, `members.rs` | streams and events; teams; who is in them |
//! | `element.rs`, `operator.rs` | element types; comparisons, signal updates, reductions, atomics |
//! | `call.rs`, `brand.rs` | what a verb checks of its arguments; which `Pe` made a handle |
//! | `capability.rs` | [`Capabilities`]: which optional families of calls a backend has |
//! | `error.rs`, `expect.rs`, `at.rs` | [`Error`] and its kinds; [`expect_eq`]; [`At`], a place in the source |
//! | `backend.rs`, `placed.rs` | [`backend`]: for writers of backends, of tools and of bindings for other languages |
//! | `op.rs`, `values.rs`, `span.rs` | [`Op`](backend::Op): every operation as plain data, and what it carries |
//! | `effect.rs` | [`Effect`](backend::Effect): what each operation does, described once |

mod arena;
mod at;
mod atomic;
pub mod backend;
mod brand;
mod buffer;
mod call;
mod capability;
mod collective;
mod count;
mod effect;
mod element;
mod error;
mod expect;
mod intended;
mod issue;
mod kernel;
mod launch;
mod life;
mod members;
mod memory;
mod op;
mod operand;
mod operator;
mod pe;
mod peer;
mod placed;
mod rma;
mod signal;
mod span;
mod stream;
mod team;
mod tensor;
mod values;

pub use arena::Arena;
pub use at::At;
#[doc(hidden)]
pub use at::{Foreign, Place};
pub use backend::Backend;
pub use buffer::{
    Buf, ExternalBuf, ExternalSlice, RegisteredLocal, RegisteredSlice, RegisteredSymmetric, Signal, Slice,
    SymmetricBuf, SymmetricSlice, kind,
};
pub use capability::{Capabilities, Support};
#[doc(hidden)]
pub use count::count;
pub use element::{Atomic, AtomicBits, AtomicSwap, DType, Element, Waitable};
pub use error::{Error, ErrorKind, Result};
pub use expect::expect_eq;
pub use half::{bf16, f16};
pub use issue::{Host, Issue};
pub use kernel::{Kernel, Module, Source};
pub use launch::{Argument, Dims, Grid, Together};
pub use life::{Bootstrap, InitMethod, InitStatus, ThreadSupport, UniqueId, VERSION, Version};
pub use members::{Members, Predefined};
pub use operand::{Local, Own, Symmetric};
pub use operator::{Cmp, ReduceOp, SignalOp};
pub use pe::Pe;
pub use peer::{Multicast, Peer};
pub use stream::{Event, Stream};
pub use team::{Team, TeamConfig, TeamUniqueId};
pub use tensor::{Fill, Swizzle, TensorLayout, TensorMap};
