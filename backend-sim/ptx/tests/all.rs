//! The interpreter's tests, one file a subject. They are one program, so that tests of all subjects run at the same time. `mutations.rs` stands
//! apart: it can be told to go on for hours.

mod calls;
mod clusters;
mod copies;
mod faults;
mod forms;
mod groups;
mod kernels;
mod known;
mod matrices;
mod products;
mod refused;
mod spins;
mod tensors;
mod undefined;
mod warps;
mod wide;
mod worlds;
