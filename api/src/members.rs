//! [`Members`]: which PEs are in a team; the teams that exist from the start.

use std::fmt;
use std::rc::Rc;

/// Names a team on this PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamId(pub u32);

/// The teams that exist from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a backend must know the members of each")]
pub enum Predefined {
    /// All PEs.
    World,
    /// PEs that reach each other's memory by loads and stores.
    Shared,
    /// PEs of the same node.
    Node,
    /// PEs with the same rank within their node, one on each node.
    SameMypeNode,
    /// PEs on the same GPU.
    SameGpu,
    /// The first PE of each GPU. The other PEs are not members.
    GpuLeaders,
}

impl Predefined {
    /// Every predefined team, in the order of NVSHMEM's handles.
    pub const ALL: [Predefined; 6] = [
        Predefined::World,
        Predefined::Shared,
        Predefined::Node,
        Predefined::SameMypeNode,
        Predefined::SameGpu,
        Predefined::GpuLeaders,
    ];

    /// The handle, as in NVSHMEM: 0 to 5.
    pub const fn id(self) -> TeamId {
        TeamId(self as u32)
    }

    /// NVSHMEM's name.
    pub fn name(self) -> &'static str {
        match self {
            Predefined::World => "TEAM_WORLD",
            Predefined::Shared => "TEAM_SHARED",
            Predefined::Node => "TEAM_NODE",
            Predefined::SameMypeNode => "TEAM_SAME_MYPE_NODE",
            Predefined::SameGpu => "TEAM_SAME_GPU",
            Predefined::GpuLeaders => "TEAM_GPU_LEADERS",
        }
    }
}

/// The world ranks of a team's members, in team order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Members {
    /// `start`, `start + stride`, … (`size` of them).
    Strided {
        /// World rank of the first member.
        start: u32,
        /// Distance of members.
        stride: u32,
        /// Number of members.
        size: u32,
    },
    /// Any list.
    List(Rc<[u32]>),
}

impl Members {
    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Members::Strided { size, .. } => *size as usize,
            Members::List(list) => list.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// World rank of member `index`.
    ///
    /// # Panics
    /// When there is no such member.
    #[inline]
    pub fn get(&self, index: usize) -> usize {
        assert!(index < self.len(), "member {index} of a team of {}", self.len());
        match self {
            Members::Strided { start, stride, .. } => *start as usize + index * *stride as usize,
            Members::List(list) => list[index] as usize,
        }
    }

    /// The rank in the team of the PE with this world rank; `None` if that PE is not a member.
    #[inline]
    pub fn position(&self, world: usize) -> Option<usize> {
        match self {
            Members::Strided { start, stride, size } => {
                let offset = world.checked_sub(*start as usize)?;
                if *stride == 1 {
                    return (offset < *size as usize).then_some(offset); // the world, most often: no division
                }
                let index = offset / (*stride).max(1) as usize;
                (index < *size as usize && index * *stride as usize == offset).then_some(index)
            }
            Members::List(list) => list.iter().position(|&pe| pe as usize == world),
        }
    }

    /// World ranks in team order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The team of `size` members of this team: `start`, `start + stride`, and so on. If `size` is 1, `stride` does not matter.
    pub fn strided(&self, start: usize, stride: usize, size: usize) -> Members {
        let stride = if size > 1 { stride } else { 1 };
        match self {
            Members::Strided { start: base, stride: step, .. } => {
                Members::Strided { start: base + start as u32 * step, stride: step * stride as u32, size: size as u32 }
            }
            Members::List(list) => Members::List((0..size).map(|i| list[start + i * stride]).collect()),
        }
    }
}

impl fmt::Display for TeamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Predefined::ALL.iter().find(|predefined| predefined.id() == *self) {
            Some(predefined) => f.write_str(predefined.name()),
            None => write!(f, "team {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_members() {
        let odd = Members::Strided { start: 1, stride: 2, size: 3 };
        assert_eq!(odd.iter().collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!((odd.position(3), odd.position(2), odd.position(7), odd.position(0)), (Some(1), None, None, None));
        assert_eq!(odd.strided(1, 1, 2).iter().collect::<Vec<_>>(), [3, 5]);
        assert_eq!(odd.strided(1, 1 << 31, 1).iter().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn listed_members() {
        let list = Members::List(Rc::from([4, 0, 2]));
        assert_eq!((list.get(0), list.position(2), list.position(1)), (4, Some(2), None));
        assert_eq!(list.strided(0, 2, 2).iter().collect::<Vec<_>>(), [4, 2]);
    }
}
