//! [`Sharing`] and [`Services`]: how PEs that share a GPU use it at once, on one node and on several.

use std::fmt;

use clap::ValueEnum;

use super::{Job, Mps, Node};

/// Which CUDA multi-process services are started for the PEs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each is started by code of its own")]
pub enum Sharing {
    /// One for each node, in that node
    #[default]
    Node,
    /// One for all nodes, outside of them
    One,
    /// No service: PEs of different nodes take turns on a GPU
    None,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sharing::Node => "node",
            Sharing::One => "one",
            Sharing::None => "none",
        })
    }
}

/// Services for jobs on the same nodes. Dropping them ends them.
#[derive(Debug, Default)]
pub struct Services {
    /// One for each node, or one for all.
    services: Vec<Mps>,
    is_each: bool,
}

impl Services {
    /// Starts services for PEs on these nodes, or on this host if there are none, and on these GPUs.
    ///
    /// # Errors
    /// Why one did not start.
    pub fn start(how: Sharing, nodes: &[Node], gpus: &[u32]) -> Result<Services, String> {
        let is_each = how == Sharing::Node && !nodes.is_empty();
        let services = match how {
            Sharing::None => Vec::new(),
            _ if is_each => nodes
                .iter()
                .map(|node| Mps::start_in(node, gpus).map_err(|why| format!("{}: {why}", node.name())))
                .collect::<Result<_, _>>()?,
            _ => vec![Mps::start(gpus)?],
        };
        Ok(Services { services, is_each })
    }

    /// Tells the PEs of a job about the services. A job on fewer nodes uses those of the first ones.
    pub fn equip(&self, job: &mut Job) {
        let on_each = job.pes / job.nodes.len().max(1);
        if self.is_each {
            for (at, (node, mps)) in job.nodes.iter_mut().zip(&self.services).enumerate() {
                let devices = job.devices.get(at * on_each..(at + 1) * on_each).unwrap_or_default();
                node.environment.extend(mps.environment(most_on_one(devices)));
            }
        } else if let Some(mps) = self.services.first() {
            job.environment.extend(mps.environment(most_on_one(&job.devices)));
        }
    }

    /// Whether there are any.
    pub fn are_there(&self) -> bool {
        !self.services.is_empty()
    }
}

/// The number of PEs on the GPU with the most PEs.
pub fn most_on_one(devices: &[u32]) -> usize {
    let on = |device| devices.iter().filter(|other| *other == device).count();
    devices.iter().map(on).max().unwrap_or(1)
}

/// The GPU of each PE, with the PEs spread over nodes in blocks. Each node has GPUs of its own if there are enough;
/// otherwise all nodes share all of them. Empty where there are no GPUs.
///
/// ```
/// use onesided_harness::launch::devices_on;
/// assert_eq!(devices_on(2, 4, &[0, 1, 2, 3]), [0, 1, 2, 3]);
/// assert_eq!(devices_on(2, 4, &[0, 1]), [0, 0, 1, 1]);
/// assert_eq!(devices_on(2, 4, &[7]), [7, 7, 7, 7]);
/// assert_eq!(devices_on(2, 6, &[0, 1, 2]), [0, 0, 0, 1, 1, 1]); // the third GPU is left over
/// assert_eq!(devices_on(1, 4, &[0, 1]), [0, 1, 0, 1]);
/// ```
pub fn devices_on(nodes: usize, pes: usize, gpus: &[u32]) -> Vec<u32> {
    let (nodes, own) = (nodes.max(1), gpus.len() / nodes.max(1));
    let of_node = |node: usize| if own == 0 { gpus } else { &gpus[node * own..(node + 1) * own] };
    (0..nodes).flat_map(|node| super::devices(pes / nodes, of_node(node))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_on_one_gpu_are_counted() {
        assert_eq!(most_on_one(&[0, 1, 0, 0]), 3);
        assert_eq!(most_on_one(&[]), 1);
    }
}
