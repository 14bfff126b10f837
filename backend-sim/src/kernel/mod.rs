//! What kernels ask of NVSHMEM: calls of device functions, by name and raw arguments, become requests of the model.
//!
//! ```text
//! External ── name.rs ──► Function ── signature.rs: roles, sizes ──► raw values ── operands.rs ──► Request
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `code.rs` | [`Code`]: a module, compiled and decoded |
//! | `name.rs` | [`Function`]: what a name means |
//! | `types.rs` | the element types in names, and which operations each has |
//! | `signature.rs` | what each argument of a function is, with its size; how front ends pass arguments |
//! | `operands.rs` | [`Request`]: what one call asks for, with its arguments checked |
//! | `region.rs` | [`Regions`]: the hints of NVSHMEM 3.8 |
//! | `select.rs` | [`Select`]: tests, and waits for any or some of several variables |
//!
//! Tests: `declared.rs` holds the rules against the declaring headers, `in_order.rs` runs kernels without the machine.

mod code;
mod name;
mod operands;
mod region;
mod select;
mod signature;
mod types;

#[cfg(test)]
mod declared;
#[cfg(test)]
mod in_order;

pub use code::kernel_text;
pub(crate) use code::{ChangeAt, Code};
pub(crate) use name::{Form, Function};
pub(crate) use operands::{Request, Resolve};
pub(crate) use region::Regions;
pub(crate) use select::{NO_INDEX, Select, Wanted};
pub(crate) use signature::Convention;
