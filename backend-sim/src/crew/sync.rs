//! Locks of the handover. Its model (`backend-sim/model`) replaces them with loom's.

pub(super) use std::sync::{Condvar, Mutex};
