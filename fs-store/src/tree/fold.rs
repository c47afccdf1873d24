//! A new index out of the old one and a sorted batch of changes.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashSet;

use super::node::{Node, encode_entry, entry_bytes, key_of, value_of};
use super::{NODE_BYTES, Nodes, Root};
use crate::checksum::checksum;
use crate::codec::Decoder;
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::frame::Key;
use crate::layout::Blob;
use crate::object::Object;
use crate::space::{Purpose, Space};

/// A node that would have fewer bytes takes its neighbour in.
const LEAST_BYTES: usize = NODE_BYTES / 3;

/// Nodes that are not leaves have so many entries, however long the keys are: levels with one each would never end.
const LEAST_CHILDREN: usize = 4;

/// Entries of so many bytes are made into nodes without waiting for more.
const MOST_BYTES: usize = 64 * NODE_BYTES;

/// Room for nodes is taken in pieces of so many bytes, and written in one call each.
const ZONE_BYTES: u64 = 512 << 10;

/// Most levels that an index can have: each holds several times the one above.
const MOST_LEVELS: u8 = 32;

/// What a key has from now on: an object, or none.
pub(crate) type Change = (Key, Option<Arc<Object>>);

/// What a fold has made.
pub(crate) struct Folded {
    pub(crate) blob: Option<Blob>,
    pub(crate) levels: u8,
    /// Extents of nodes that the new index has and the old one has not.
    pub(crate) taken: Vec<Extent>,
    /// Extents of nodes that only the old index has.
    pub(crate) left: Vec<Extent>,
    /// Extents of objects that only the old index has.
    pub(crate) dropped: Vec<Extent>,
}

/// An entry as it lies in a node.
type Entry = Bytes;

/// Makes a new index. `changes` are sorted by key, each key once.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Full`], [`Error::Damaged`]: the sectors that were
/// taken are free again then.
pub(crate) fn fold(nodes: &Nodes, root: &Root, changes: &[Change]) -> Result<Folded> {
    let mut fold =
        Fold { nodes, zone: Zone::new(&nodes.space), left: Vec::new(), dropped: Vec::new() };
    match fold.run(root, changes) {
        Ok((blob, levels)) => {
            let Fold { zone, left, dropped, .. } = fold;
            Ok(Folded { blob, levels, taken: zone.taken.into_iter().collect(), left, dropped })
        }
        Err(error) => {
            fold.zone.release();
            Err(error)
        }
    }
}

struct Fold<'a> {
    nodes: &'a Nodes,
    zone: Zone<'a>,
    left: Vec<Extent>,
    dropped: Vec<Extent>,
}

impl Fold<'_> {
    fn run(&mut self, root: &Root, changes: &[Change]) -> Result<(Option<Blob>, u8)> {
        let (mut entries, mut level) = match root.blob {
            Some(blob) => (self.rewrite(blob, root.levels, changes)?, root.levels),
            None => (self.merge(None, changes)?, 1),
        };
        loop {
            // A root with one child is not needed.
            if level > 1 && entries.len() == 1 {
                let blob = self.child(&entries[0])?;
                self.zone.write_out()?;
                let (blob, level) = self.collapse(blob, level - 1)?;
                self.zone.finish()?;
                return Ok((Some(blob), level));
            }
            if entries.is_empty() {
                self.zone.finish()?;
                return Ok((None, 0));
            }
            let mut above = Vec::new();
            self.pack(&mut entries, level, &mut above)?;
            (entries, level) = (above, level + 1);
            assert!(level < MOST_LEVELS, "each level holds several times the one above");
        }
    }

    /// The lowest node that all others are below.
    fn collapse(&mut self, mut blob: Blob, mut level: u8) -> Result<(Blob, u8)> {
        while level > 1 {
            let node = self.nodes.peek(blob, level)?;
            if node.count() > 1 {
                break;
            }
            let child = self.nodes.child(blob, &node, 0)?;
            self.give_up(blob);
            (blob, level) = (child, level - 1);
        }
        Ok((blob, level))
    }

    /// A node that the new index does not have.
    fn give_up(&mut self, blob: Blob) {
        // One that this fold has made itself goes at once.
        if !self.zone.take_back(blob.extent) {
            self.left.push(blob.extent);
        }
    }

    fn child(&self, entry: &Entry) -> Result<Blob> {
        let value = &mut Decoder::new(value_of(entry));
        let blob = Blob::decode(value, self.nodes.space.sector_bytes);
        blob.ok_or_else(|| Error::damaged("the index", "", 0, "an entry is no node"))
    }

    /// The entries of a node after the changes, which all fall into it.
    fn rewrite(&mut self, blob: Blob, level: u8, changes: &[Change]) -> Result<Vec<Entry>> {
        let node = self.nodes.peek(blob, level)?;
        self.give_up(blob);
        if level == 1 {
            return self.merge(Some((&node, blob)), changes);
        }
        let mut out = Vec::with_capacity(node.count());
        let mut below: Vec<Entry> = Vec::new();
        let mut rest = changes;
        for index in 0..node.count() {
            let mine;
            (mine, rest) = if index + 1 < node.count() {
                let bound = node.key(index + 1);
                let bound = bound.ok_or_else(|| self.nodes.damaged(blob, "an entry is cut off"))?;
                rest.split_at(rest.partition_point(|(key, _)| &key[..] < bound))
            } else {
                (rest, &[][..])
            };
            let is_small = !below.is_empty() && bytes_of(&below) < LEAST_BYTES;
            if mine.is_empty() && !is_small {
                self.pack(&mut below, level - 1, &mut out)?;
                let entry = node.raw(index).filter(|_| node.key(index).is_some());
                out.push(entry.ok_or_else(|| self.nodes.damaged(blob, "an entry is cut off"))?);
                continue;
            }
            let child = self.nodes.child(blob, &node, index)?;
            below.append(&mut self.rewrite(child, level - 1, mine)?);
            if bytes_of(&below) >= MOST_BYTES {
                self.pack(&mut below, level - 1, &mut out)?;
            }
        }
        if !below.is_empty()
            && bytes_of(&below) < LEAST_BYTES
            && let Some(before) = out.pop()
        {
            let before = self.child(&before)?;
            self.zone.write_out()?;
            let mut entries = self.rewrite(before, level - 1, &[])?;
            entries.append(&mut below);
            below = entries;
        }
        self.pack(&mut below, level - 1, &mut out)?;
        Ok(out)
    }

    /// The entries of a leaf after the changes.
    fn merge(&mut self, leaf: Option<(&Node, Blob)>, changes: &[Change]) -> Result<Vec<Entry>> {
        let count = leaf.map_or(0, |(node, _)| node.count());
        let mut out = Vec::with_capacity(count + changes.len());
        let mut changes = changes.iter().peekable();
        for index in 0..count {
            let (node, blob) = leaf.expect("it has entries");
            let entry = node.raw(index).filter(|_| node.key(index).is_some());
            let entry = entry.ok_or_else(|| self.nodes.damaged(blob, "an entry is cut off"))?;
            while let Some((key, object)) = changes.next_if(|(key, _)| key[..] < *key_of(&entry)) {
                out.extend(object.as_ref().map(|object| new_entry(key, object)));
            }
            match changes.next_if(|(key, _)| key[..] == *key_of(&entry)) {
                None => out.push(entry),
                Some((key, object)) => {
                    self.dropped.extend(self.nodes.object(blob, node, index)?.extents());
                    out.extend(object.as_ref().map(|object| new_entry(key, object)));
                }
            }
        }
        for (key, object) in changes {
            out.extend(object.as_ref().map(|object| new_entry(key, object)));
        }
        Ok(out)
    }

    /// Makes entries into nodes of a level, and adds an entry for each to `above`.
    fn pack(&mut self, entries: &mut Vec<Entry>, level: u8, above: &mut Vec<Entry>) -> Result<()> {
        let least = if level > 1 { LEAST_CHILDREN } else { 1 };
        let mut left = bytes_of(entries);
        let mut nodes = left.div_ceil(NODE_BYTES);
        let mut rest = &entries[..];
        while !rest.is_empty() {
            // As even as can be, so that none is small.
            let share = left.div_ceil(nodes.max(1));
            let (mut count, mut bytes) = (0, 0);
            while count < rest.len()
                && (count < least || bytes + entry_bytes(&rest[count]) / 2 <= share)
            {
                bytes += entry_bytes(&rest[count]);
                count += 1;
            }
            let (mine, after) = rest.split_at(count);
            let blob = self.zone.add(Node::encode(level, mine))?;
            above.push(encode_entry(key_of(&mine[0]), |out| blob.encode(out)));
            (rest, left, nodes) = (after, left - bytes, nodes.saturating_sub(1));
        }
        entries.clear();
        Ok(())
    }
}

fn bytes_of(entries: &[Entry]) -> usize {
    entries.iter().map(entry_bytes).sum()
}

fn new_entry(key: &Key, object: &Object) -> Entry {
    encode_entry(key, |out| object.encode(out))
}

/// Room for new nodes, and those that are not written yet.
struct Zone<'a> {
    space: &'a Arc<Space>,
    /// What is left of the room.
    rest: Option<Extent>,
    /// Nodes that follow one another, from `start` on.
    bytes: Vec<u8>,
    start: Option<Extent>,
    taken: HashSet<Extent>,
}

impl<'a> Zone<'a> {
    fn new(space: &'a Arc<Space>) -> Self {
        Self { space, rest: None, bytes: Vec::new(), start: None, taken: HashSet::new() }
    }

    /// Gives a node its place.
    fn add(&mut self, mut node: Vec<u8>) -> Result<Blob> {
        let (len, crc) = (node.len(), checksum(&node));
        let count = self.space.sectors_for(len as u64);
        let mut extent = self.room_for(count)?;
        let rest = self.rest.as_mut().expect("just made");
        extent.count = u32::try_from(count).expect("a node is small");
        rest.start += extent.count;
        rest.count -= extent.count;
        if rest.count == 0 {
            self.rest = None;
        }
        let sector = self.space.sector_bytes as usize;
        node.resize(len.next_multiple_of(sector), 0);
        self.start.get_or_insert(extent);
        self.bytes.append(&mut node);
        self.taken.insert(extent);
        Ok(Blob { extent, len: u32::try_from(len).expect("a node is small"), crc })
    }

    /// Room for a node: what is left of it, or more.
    fn room_for(&mut self, count: u64) -> Result<Extent> {
        if let Some(rest) = self.rest
            && u64::from(rest.count) >= count
        {
            return Ok(rest);
        }
        self.write_out()?;
        if let Some(rest) = self.rest.take() {
            self.space.release([rest]);
        }
        let most = count.max(ZONE_BYTES / u64::from(self.space.sector_bytes));
        // What is free first, in shorter runs if need be.
        let mut wanted = most;
        let mut free = None;
        while free.is_none() && wanted >= count {
            free = self.space.try_run(wanted, Purpose::Own, None);
            wanted = if wanted == count { 0 } else { (wanted / 2).max(count) };
        }
        let take = |count| self.space.allocate(count, Purpose::Own, None, &|| Ok(()));
        let room = match free {
            Some(room) => room,
            None => match take(most) {
                Err(Error::Full { .. }) if most > count => take(count)?,
                room => room?,
            },
        };
        self.rest = Some(room[0]);
        Ok(room[0])
    }

    fn write_out(&mut self) -> Result<()> {
        if let Some(start) = self.start.take() {
            let sectors = self.bytes.len() / self.space.sector_bytes as usize;
            let count = u32::try_from(sectors).expect("a zone is small");
            let extent = Extent { count, ..start };
            self.space.write(&[extent], 0, &[IoSlice::new(&self.bytes)])?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// Gives the place of one of these nodes back; false if it is none of them.
    fn take_back(&mut self, extent: Extent) -> bool {
        let is_mine = self.taken.remove(&extent);
        if is_mine {
            self.space.release([extent]);
        }
        is_mine
    }

    fn finish(&mut self) -> Result<()> {
        self.write_out()?;
        if let Some(rest) = self.rest.take() {
            self.space.release([rest]);
        }
        Ok(())
    }

    fn release(&mut self) {
        self.space.release(self.rest.take());
        self.space.release(self.taken.drain());
    }
}
