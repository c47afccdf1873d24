//! [`Snapshot`]: the store as it was at one moment.

use std::sync::Arc;

use bytes::Bytes;

use crate::data::read_all;
use crate::engine::{Engine, View};
use crate::error::Result;
use crate::list::{List, ListOptions};
use crate::object::Object;
use crate::reader::Reader;
use crate::store::Stat;

/// The store as it was at one moment: to list and to read from while others
/// write. Clones are the same snapshot.
///
/// ```
/// use fs_store::{MemDisk, OpenOptions};
///
/// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
/// store.put("a", b"before")?;
/// let snapshot = store.snapshot();
/// store.put("a", b"after")?;
/// assert_eq!(snapshot.get("a")?.as_deref(), Some(&b"before"[..]));
/// # Ok::<(), fs_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    engine: Arc<Engine>,
    view: Arc<View>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("objects", &self.len()).finish_non_exhaustive()
    }
}

impl Snapshot {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let view = Arc::new(engine.view());
        Self { engine, view }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// How many objects there were.
    pub fn len(&self) -> u64 {
        self.view.counts.objects
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lookup(&self, key: &[u8]) -> Result<Option<Arc<Object>>> {
        let view = &*self.view;
        match view.active.get(key).or_else(|| view.frozen.get(key)) {
            Some(object) => Ok(object.clone()),
            None => Ok(self.engine.nodes.find(&view.root, key)?.map(Arc::new)),
        }
    }

    /// The bytes of a key's object, checked; `None` if it had none.
    ///
    /// # Errors
    ///
    /// As [`Store::get`](crate::Store::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        let key = key.as_ref();
        let Some(object) = self.lookup(key)? else { return Ok(None) };
        let bytes = read_all(&self.engine.space, &object);
        bytes.map(Some).map_err(|error| error.of(key))
    }

    /// What was known of a key's object besides its bytes.
    ///
    /// # Errors
    ///
    /// As [`Store::stat`](crate::Store::stat).
    pub fn stat(&self, key: impl AsRef<[u8]>) -> Result<Option<Stat>> {
        Ok(self.lookup(key.as_ref())?.map(|object| Stat::of(&object)))
    }

    /// A reader of a key's object.
    ///
    /// # Errors
    ///
    /// As [`Store::reader`](crate::Store::reader).
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<Reader>> {
        let object = self.lookup(key.as_ref())?;
        let space = &self.engine.space;
        let pin = self.view.pin_again(space);
        Ok(object.map(|object| Reader::new(Arc::clone(space), key.as_ref().into(), object, pin)))
    }

    /// Goes through keys in order.
    ///
    /// # Errors
    ///
    /// As [`Store::list`](crate::Store::list).
    pub fn list(&self, options: &ListOptions) -> Result<List> {
        List::new(self.clone(), options)
    }
}
