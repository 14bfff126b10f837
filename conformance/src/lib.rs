#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod case;
pub mod harness;
pub mod suite;
