//! [`Batch`]: many changes in one commit.

use bytes::Bytes;

use crate::checksum::checksum;
use crate::data::{Written, write_values};
use crate::engine::{Condition, Draft, Engine, Step};
use crate::error::Result;
use crate::object::{Body, INLINE_BYTES};
use crate::options::{Durability, PutOptions};
use crate::store::{RIDING_BYTES, check_key, encode_metadata};

/// Values of a durable batch come along in the journal if they have no more
/// bytes together.
const RIDING_BATCH_BYTES: usize = 256 << 10;

/// Changes that are done together, in their order, or not at all.
#[derive(Debug, Default)]
pub struct Batch {
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Put { key: Vec<u8>, value: Bytes, condition: Condition, metadata: Vec<(String, Vec<u8>)> },
    Delete { key: Vec<u8>, condition: Condition },
    Rename { from: Vec<u8>, to: Vec<u8>, condition: Condition },
}

impl Batch {
    /// Nothing to do yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Gives a key an object.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Bytes>) -> &mut Self {
        self.put_with(key, value, &PutOptions::new())
    }

    /// Gives a key an object, with a condition or metadata. The durability is
    /// that of the whole batch.
    pub fn put_with(
        &mut self,
        key: impl Into<Vec<u8>>,
        value: impl Into<Bytes>,
        options: &PutOptions,
    ) -> &mut Self {
        let (condition, metadata) = (options.condition, options.metadata.clone());
        let (key, value) = (key.into(), value.into());
        self.changes.push(Change::Put { key, value, condition, metadata });
        self
    }

    /// Takes a key's object, if it has one.
    pub fn delete(&mut self, key: impl Into<Vec<u8>>) -> &mut Self {
        self.delete_with(key, &PutOptions::new())
    }

    /// Takes a key's object, with a condition.
    pub fn delete_with(&mut self, key: impl Into<Vec<u8>>, options: &PutOptions) -> &mut Self {
        self.changes.push(Change::Delete { key: key.into(), condition: options.condition });
        self
    }

    /// Gives the object of `from`, which must have one, to `to`.
    pub fn rename(&mut self, from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) -> &mut Self {
        self.rename_with(from, to, &PutOptions::new())
    }

    /// Gives the object of `from` to `to`, with a condition on `to`.
    pub fn rename_with(
        &mut self,
        from: impl Into<Vec<u8>>,
        to: impl Into<Vec<u8>>,
        options: &PutOptions,
    ) -> &mut Self {
        let (from, to) = (from.into(), to.into());
        self.changes.push(Change::Rename { from, to, condition: options.condition });
        self
    }

    /// The steps of a commit, with the values that are long in sectors.
    pub(crate) fn into_steps(self, engine: &Engine, durability: Durability) -> Result<Vec<Step>> {
        engine.journal()?.check()?;
        let value_of = |change: &Change| match change {
            Change::Put { value, .. } => Some(value.len()),
            Change::Delete { .. } | Change::Rename { .. } => None,
        };
        let all: usize = self.changes.iter().filter_map(value_of).sum();
        let riding = if durability != Durability::Buffered && all <= RIDING_BATCH_BYTES {
            RIDING_BYTES
        } else {
            INLINE_BYTES
        };
        // First what can fail without a trace.
        let mut encoded = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            match change {
                Change::Put { key, metadata, .. } => {
                    check_key(key)?;
                    encoded.push(encode_metadata(metadata)?);
                }
                Change::Delete { key, .. } => check_key(key)?,
                Change::Rename { from, to, .. } => check_key(from).and_then(|()| check_key(to))?,
            }
        }
        let long: Vec<&[u8]> = self
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::Put { value, .. } if value.len() > riding => Some(&value[..]),
                _ => None,
            })
            .collect();
        let written = write_values(&engine.space, &long, &|| engine.flush_all())?;
        let (mut written, mut encoded) = (written.into_iter(), encoded.into_iter());
        let step = |change: &Change| match change {
            Change::Put { key, value, condition, .. } => {
                let Written { body, crc } = if value.len() > riding {
                    written.next().expect("one for each long value")
                } else {
                    let body = Body::Inline(Bytes::copy_from_slice(value));
                    Written { body, crc: checksum(value) }
                };
                let metadata = encoded.next().expect("one for each put");
                let draft = Draft { len: value.len() as u64, crc, body, metadata };
                Step::Put { key: key[..].into(), draft, condition: *condition }
            }
            Change::Delete { key, condition } => {
                Step::Delete { key: key[..].into(), condition: *condition }
            }
            Change::Rename { from, to, condition } => {
                let (from, to) = (from[..].into(), to[..].into());
                Step::Rename { from, to, condition: *condition }
            }
        };
        Ok(self.changes.iter().map(step).collect())
    }
}
