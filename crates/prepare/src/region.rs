//! Regions: the parts of a model in which nodes are evaluated, as a tree. The top region is always evaluated. A lazy
//! conditional has two regions, one per branch, inside of the region of the conditional, and a loop has one. A node
//! belongs to the innermost region that contains all its uses, so a node that two branches share is computed before
//! both. The nodes in a branch are exactly those that Arolla's dominator rule puts there.
//!
//! The lowest common ancestor of two regions is found in logarithmic time by jump pointers, so that conditionals nested
//! a hundred thousand deep cost no more than flat ones.

/// The id of a region (a branch, a loop body or the top) in a [`RegionTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionId(u32);

impl RegionId {
    /// The top region, whose nodes every evaluation computes.
    pub const TOP: RegionId = RegionId(0);

    /// Returns the id of the region with this index.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        RegionId(index as u32)
    }

    /// The index of the region in its tree.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A region as it is stored: its parent, its depth in the tree, and `jump`, a further ancestor, for finding common
/// ancestors quickly.
#[derive(Clone, Debug)]
struct Region {
    parent: u32,
    jump: u32,
    depth: u32,
}

/// The tree of a model's regions (branches, loop bodies and the top). Parents come before children.
#[derive(Clone, Debug)]
pub struct RegionTree {
    regions: Vec<Region>,
}

impl Default for RegionTree {
    fn default() -> Self {
        RegionTree { regions: vec![Region { parent: 0, jump: 0, depth: 0 }] }
    }
}

impl RegionTree {
    /// The number of regions in the tree, at least 1 for the top region.
    #[must_use]
    pub fn count(&self) -> usize {
        self.regions.len()
    }

    /// The region that directly encloses `region`. The top region is its own parent.
    #[must_use]
    pub fn parent(&self, region: RegionId) -> RegionId {
        RegionId(self.regions[region.index()].parent)
    }

    /// Opens a new region (a branch or a loop body) inside of `parent`, and returns its id.
    pub fn open(&mut self, parent: RegionId) -> RegionId {
        let up = &self.regions[parent.index()];
        let over = &self.regions[up.jump as usize];
        // Jump as far again as the last two jumps went together (skew-binary numbers), else to the parent.
        let jump = if up.depth - over.depth == over.depth - self.regions[over.jump as usize].depth {
            over.jump
        } else {
            parent.0
        };
        self.regions.push(Region { parent: parent.0, jump, depth: up.depth + 1 });
        RegionId(self.regions.len() as u32 - 1)
    }

    /// The innermost region of the tree that contains both `a` and `b`.
    #[must_use]
    pub fn common(&self, a: RegionId, b: RegionId) -> RegionId {
        let (mut a, mut b) = (a.0, b.0);
        let at = |r: u32| &self.regions[r as usize];
        if at(a).depth < at(b).depth {
            (a, b) = (b, a);
        }
        while at(a).depth > at(b).depth {
            a = if at(at(a).jump).depth >= at(b).depth { at(a).jump } else { at(a).parent };
        }
        while a != b {
            (a, b) = if at(a).jump == at(b).jump { (at(a).parent, at(b).parent) } else { (at(a).jump, at(b).jump) };
        }
        RegionId(a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_regions_agree_with_walking_up() {
        let mut tree = RegionTree::default();
        let mut all = vec![RegionId::TOP];
        let mut seed = 7_u64;
        for step in 0..400 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            // A long chain with twigs, so that jumps are long.
            let parent = if step % 3 == 0 { all[(seed >> 33) as usize % all.len()] } else { all[all.len() - 1] };
            all.push(tree.open(parent));
        }
        let chain = |mut r: RegionId| {
            let mut up = vec![r];
            while r != RegionId::TOP {
                r = tree.parent(r);
                up.push(r);
            }
            up
        };
        for a in all.iter().step_by(3) {
            for b in all.iter().step_by(5) {
                let ups = chain(*a);
                let expected = chain(*b).into_iter().find(|r| ups.contains(r)).expect("the top");
                assert_eq!(tree.common(*a, *b), expected);
            }
        }
    }

    #[test]
    fn deep_nesting_is_cheap() {
        let mut tree = RegionTree::default();
        let mut deep = RegionId::TOP;
        for _ in 0..1_000_000 {
            deep = tree.open(deep);
        }
        let side = tree.open(RegionId::TOP);
        for _ in 0..100_000 {
            assert_eq!(tree.common(deep, side), RegionId::TOP);
        }
    }
}
