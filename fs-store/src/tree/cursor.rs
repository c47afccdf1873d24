//! A place in the index, that moves in the order of keys.

use std::sync::Arc;

use bytes::Bytes;

use super::node::Node;
use super::{Nodes, Root};
use crate::error::Result;
use crate::layout::Blob;

/// Stands before, on or behind an entry of one state of the index.
pub(crate) struct Cursor {
    /// From the root down: a node, and which of its entries leads on. Empty if
    /// the cursor is past either end.
    path: Vec<(Blob, Arc<Node>, usize)>,
}

impl Cursor {
    /// A cursor on the first entry that is not below `key`.
    pub(crate) fn at_or_above(nodes: &Nodes, root: &Root, key: &[u8]) -> Result<Self> {
        let mut cursor = Self::descend(nodes, root, Some(key))?;
        if let Some((_, node, index)) = cursor.path.last()
            && *index == node.count()
        {
            cursor.step_up(nodes, true)?;
        }
        Ok(cursor)
    }

    /// A cursor on the last entry below `key`, or on the last of all.
    pub(crate) fn below(nodes: &Nodes, root: &Root, key: Option<&[u8]>) -> Result<Self> {
        let mut cursor = Self::descend(nodes, root, key)?;
        cursor.back(nodes)?;
        Ok(cursor)
    }

    /// Down to the leaf where `key` belongs, to the index of the first entry not
    /// below it; without a key behind the last entry.
    fn descend(nodes: &Nodes, root: &Root, key: Option<&[u8]>) -> Result<Self> {
        let mut path = Vec::new();
        let mut next = root.blob;
        for level in (1..=root.levels).rev() {
            let Some(blob) = next else { break };
            let node = if level > 1 { nodes.get(blob, level)? } else { nodes.peek(blob, level)? };
            let index = match key {
                None if level == 1 => node.count(),
                None => node.count() - 1,
                Some(key) => {
                    let found = node.search(key);
                    let found = found.ok_or_else(|| nodes.damaged(blob, "an entry is cut off"))?;
                    match found {
                        Ok(index) => index,
                        Err(index) if level == 1 => index,
                        Err(index) => index.saturating_sub(1),
                    }
                }
            };
            next = if level > 1 { Some(nodes.child(blob, &node, index)?) } else { None };
            path.push((blob, node, index));
        }
        Ok(Self { path })
    }

    /// The entry that the cursor is on: key and encoded object, which is empty
    /// unless it is wanted.
    pub(crate) fn entry(&self, nodes: &Nodes, with_value: bool) -> Result<Option<(Bytes, Bytes)>> {
        let Some((blob, node, index)) = self.path.last() else { return Ok(None) };
        node.shared(*index, with_value)
            .ok_or_else(|| nodes.damaged(*blob, "an entry is cut off"))
            .map(Some)
    }

    /// To the next entry.
    pub(crate) fn forward(&mut self, nodes: &Nodes) -> Result<()> {
        let Some((_, node, index)) = self.path.last_mut() else { return Ok(()) };
        *index += 1;
        if *index < node.count() { Ok(()) } else { self.step_up(nodes, true) }
    }

    /// To the entry before.
    pub(crate) fn back(&mut self, nodes: &Nodes) -> Result<()> {
        match self.path.last_mut() {
            None => Ok(()),
            Some((_, _, 0)) => self.step_up(nodes, false),
            Some((_, _, index)) => {
                *index -= 1;
                Ok(())
            }
        }
    }

    /// Up until there is a neighbour, and down to its first or last entry.
    fn step_up(&mut self, nodes: &Nodes, forward: bool) -> Result<()> {
        let leaf = self.path.len();
        self.path.pop();
        loop {
            let Some((_, node, index)) = self.path.last_mut() else { return Ok(()) };
            if forward && *index + 1 < node.count() {
                *index += 1;
                break;
            }
            if !forward && *index > 0 {
                *index -= 1;
                break;
            }
            self.path.pop();
        }
        while self.path.len() < leaf {
            let (blob, node, index) = self.path.last().expect("just seen");
            let child = nodes.child(*blob, node, *index)?;
            let level = u8::try_from(leaf - self.path.len()).expect("few levels");
            let node =
                if level > 1 { nodes.get(child, level)? } else { nodes.peek(child, level)? };
            let index = if forward { 0 } else { node.count() - 1 };
            self.path.push((child, node, index));
        }
        Ok(())
    }
}
