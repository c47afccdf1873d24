//! What [MS-CFB] 2.6.4 asks of the sibling tree below one storage.

use std::cmp::Ordering;

use super::{NOTHING, colour, entry, name_order};

/// A slot as the tree check needs it.
pub(crate) struct Node {
    pub(crate) name: Vec<u16>,
    pub(crate) colour: u8,
    pub(crate) left: u32,
    pub(crate) right: u32,
}

impl Node {
    pub(crate) fn of(slot: &[u8]) -> Self {
        let u16_at = |at: usize| u16::from_le_bytes(slot[at..at + 2].try_into().unwrap());
        let u32_at = |at: usize| u32::from_le_bytes(slot[at..at + 4].try_into().unwrap());
        let len = usize::from(u16_at(entry::NAME_LEN)).clamp(2, 64) / 2 - 1;
        Self {
            name: (0..len).map(|nth| u16_at(entry::NAME + 2 * nth)).collect(),
            colour: slot[entry::COLOUR],
            left: u32_at(entry::LEFT),
            right: u32_at(entry::RIGHT),
        }
    }
}

/// A sibling tree: its slots in order, how deep it is, what is wrong with it.
pub(crate) struct Siblings {
    pub(crate) in_order: Vec<u32>,
    pub(crate) depth: usize,
    pub(crate) complaints: Vec<String>,
}

/// Walks the tree with this root. `visited` holds the slots met so far, in any tree.
pub(crate) fn siblings(nodes: &[Node], root: u32, visited: &mut [bool]) -> Siblings {
    let mut found = Siblings { in_order: Vec::new(), depth: 0, complaints: Vec::new() };
    if root != NOTHING {
        if nodes.get(root as usize).is_some_and(|node| node.colour != colour::BLACK) {
            found.complaints.push(format!("slot {root} is the red root of a sibling tree"));
        }
        found.black_height(nodes, root, 1, visited);
    }
    for pair in found.in_order.windows(2) {
        let (a, b) = (&nodes[pair[0] as usize].name, &nodes[pair[1] as usize].name);
        if name_order(a, b) != Ordering::Less {
            found
                .complaints
                .push(format!("slot {} does not come before slot {}", pair[0], pair[1]));
        }
    }
    found
}

impl Siblings {
    /// Black nodes on each way down from `slot`, this one included.
    fn black_height(
        &mut self,
        nodes: &[Node],
        slot: u32,
        level: usize,
        visited: &mut [bool],
    ) -> usize {
        if slot == NOTHING {
            return 0;
        }
        let Some(node) = nodes.get(slot as usize) else {
            self.complaints.push(format!("a link leads to slot {slot} of {}", nodes.len()));
            return 0;
        };
        if std::mem::replace(&mut visited[slot as usize], true) {
            self.complaints.push(format!("slot {slot} is linked twice"));
            return 0;
        }
        self.depth = self.depth.max(level);
        let left = self.black_height(nodes, node.left, level + 1, visited);
        self.in_order.push(slot);
        let right = self.black_height(nodes, node.right, level + 1, visited);
        if left != right {
            self.complaints.push(format!(
                "slot {slot} has {left} black nodes to its left, {right} to its right"
            ));
        }
        match node.colour {
            colour::BLACK => left + 1,
            colour::RED => {
                for below in [node.left, node.right] {
                    if nodes.get(below as usize).is_some_and(|node| node.colour == colour::RED) {
                        self.complaints
                            .push(format!("slots {slot} and {below} are red and adjacent"));
                    }
                }
                left
            }
            other => {
                self.complaints.push(format!("slot {slot} has colour {other}"));
                left
            }
        }
    }
}
