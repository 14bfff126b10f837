//! Locks of the handover. The model of it (`backend-sim/model`) puts loom's in their place.

pub(super) use std::sync::{Condvar, Mutex};
