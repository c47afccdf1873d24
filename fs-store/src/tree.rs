//! The index: key to object, in order, as a tree of nodes that are never changed.
//!
//! A fold makes a new tree out of the old one and a sorted batch of changes:
//! nodes that a change falls into are written anew, elsewhere, and so are those
//! above them; all others belong to both trees. So a reader of the old tree sees
//! nothing of it, a crash before the superblock names the new root leaves the
//! old one, and every node is checked against the checksum that the node above
//! it holds.

mod cursor;
mod fold;
mod node;

pub(crate) use self::cursor::Cursor;
pub(crate) use self::fold::{Change, Folded, fold};
use self::node::Node;

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::checksum::checksum;
use crate::codec::Decoder;
use crate::error::{Error, Result};
use crate::layout::Blob;
use crate::object::Object;
use crate::space::Space;

/// Nodes have about so many bytes; one with a long entry has more.
pub(crate) const NODE_BYTES: usize = 8 << 10;

/// One state of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The topmost node; none if there are no objects.
    pub(crate) blob: Option<Blob>,
    /// 1 if that node is a leaf.
    pub(crate) levels: u8,
    /// Counts the states.
    pub(crate) generation: u64,
}

/// Reads nodes, and keeps some.
pub(crate) struct Nodes {
    pub(crate) space: Arc<Space>,
    cache: Cache<Blob, Arc<Node>, ByBytes>,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Blob, Arc<Node>> for ByBytes {
    fn weight(&self, blob: &Blob, _: &Arc<Node>) -> u64 {
        u64::from(blob.len) + 200
    }
}

impl Nodes {
    /// Keeps nodes of about so many bytes in memory.
    pub(crate) fn new(space: Arc<Space>, cache_bytes: u64) -> Self {
        let items = usize::try_from(cache_bytes / NODE_BYTES as u64).unwrap_or(1 << 20).max(16);
        Self { space, cache: Cache::with_weighter(items, cache_bytes, ByBytes) }
    }

    fn get(&self, blob: Blob, level: u8) -> Result<Arc<Node>> {
        if let Some(node) = self.cache.get(&blob) {
            return Ok(node);
        }
        let node = Arc::new(self.read(blob, level)?);
        self.cache.insert(blob, Arc::clone(&node));
        Ok(node)
    }

    /// Reads a node that is not to be kept.
    fn peek(&self, blob: Blob, level: u8) -> Result<Arc<Node>> {
        match self.cache.get(&blob) {
            Some(node) => Ok(node),
            None => self.read(blob, level).map(Arc::new),
        }
    }

    fn read(&self, blob: Blob, level: u8) -> Result<Node> {
        let bytes = read_blob(&self.space, blob, "a node of the index")?;
        Node::new(bytes.into(), level).ok_or_else(|| self.damaged(blob, "it is not of its level"))
    }

    /// The index is not what was written.
    fn damaged(&self, blob: Blob, why: &'static str) -> Error {
        self.space.damaged("a node of the index", blob.extent, 0, why)
    }

    /// The object of an entry that a cursor was on.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`].
    pub(crate) fn decode(&self, value: &[u8]) -> Result<Object> {
        let object = Object::decode(&mut Decoder::new(value), self.space.sector_bytes);
        object.ok_or_else(|| Error::damaged("the index", "", 0, "an entry is no object"))
    }

    /// The object of a key.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub(crate) fn find(&self, root: &Root, key: &[u8]) -> Result<Option<Object>> {
        let Some(mut blob) = root.blob else { return Ok(None) };
        for level in (1..=root.levels).rev() {
            let node = self.get(blob, level)?;
            let found =
                node.search(key).ok_or_else(|| self.damaged(blob, "an entry is cut off"))?;
            if level == 1 {
                let Ok(index) = found else { return Ok(None) };
                return self.object(blob, &node, index).map(Some);
            }
            // The child whose lowest key is not above the key; what is below all belongs to the first.
            let index = found.unwrap_or_else(|index| index.saturating_sub(1));
            blob = self.child(blob, &node, index)?;
        }
        Ok(None)
    }

    fn child(&self, blob: Blob, node: &Node, index: usize) -> Result<Blob> {
        let child = node
            .value(index)
            .and_then(|value| Blob::decode(&mut Decoder::new(value), self.space.sector_bytes));
        child.ok_or_else(|| self.damaged(blob, "an entry is no node"))
    }

    fn object(&self, blob: Blob, node: &Node, index: usize) -> Result<Object> {
        let object = node
            .value(index)
            .and_then(|value| Object::decode(&mut Decoder::new(value), self.space.sector_bytes));
        object.ok_or_else(|| self.damaged(blob, "an entry is no object"))
    }

    /// Calls `seen` for every node of the index.
    ///
    /// # Errors
    ///
    /// Those of reading, and of `seen`.
    pub(crate) fn for_each_node(
        &self,
        root: &Root,
        seen: &mut dyn FnMut(Blob) -> Result<()>,
    ) -> Result<()> {
        let Some(blob) = root.blob else { return Ok(()) };
        self.walk(blob, root.levels, seen)
    }

    fn walk(&self, blob: Blob, level: u8, seen: &mut dyn FnMut(Blob) -> Result<()>) -> Result<()> {
        seen(blob)?;
        if level <= 1 {
            return Ok(());
        }
        let node = self.get(blob, level)?;
        (0..node.count())
            .try_for_each(|index| self.walk(self.child(blob, &node, index)?, level - 1, seen))
    }
}

/// Reads something of the store's own.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Damaged`] if it is not what was written.
pub(crate) fn read_blob(space: &Space, blob: Blob, what: &'static str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    space.read_onto(&[blob.extent], 0, blob.len as usize, &mut bytes)?;
    if checksum(&bytes) != blob.crc {
        return Err(space.damaged(what, blob.extent, 0, "its checksum is another one"));
    }
    Ok(bytes)
}
