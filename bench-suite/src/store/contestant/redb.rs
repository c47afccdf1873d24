//! redb: a copy-on-write B-tree in one file. Values are whole runs of pages.

use std::path::Path;

use redb::{Database, Durability, ReadTransaction, ReadableDatabase, TableDefinition, TableError};

use super::{Contestant, Item, Listed};

const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");

struct Redb {
    db: Database,
}

/// A store in `dir`.
pub(super) fn open(dir: &Path) -> Box<dyn Contestant> {
    Box::new(Redb { db: Database::create(dir.join("objects.redb")).expect("redb opens") })
}

impl Redb {
    fn read(&self) -> ReadTransaction {
        self.db.begin_read().expect("reading begins")
    }
}

impl Contestant for Redb {
    fn put_batch(&self, items: &[Item]) {
        let batch = self.db.begin_write().expect("writing begins");
        {
            let mut table = batch.open_table(OBJECTS).expect("the table opens");
            for (key, value) in items {
                table.insert(&**key, *value).expect("inserting works");
            }
        }
        batch.commit().expect("committing works");
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        let batch = self.db.begin_write().expect("writing begins");
        batch
            .open_table(OBJECTS)
            .expect("the table opens")
            .insert(key, value)
            .expect("inserting works");
        batch.commit().expect("committing works");
    }

    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut batch = self.db.begin_write().expect("writing begins");
        batch.set_durability(Durability::None).expect("there is no savepoint");
        {
            let mut table = batch.open_table(OBJECTS).expect("the table opens");
            let mut place = table.insert_reserve(key, len_bytes).expect("inserting works");
            let mut rest = place.as_mut();
            for piece in pieces {
                let (here, after) = rest.split_at_mut(piece.len());
                here.copy_from_slice(piece);
                rest = after;
            }
        }
        batch.commit().expect("committing works");
    }

    fn sync(&self) {
        // A commit makes those before it durable, too.
        self.db.begin_write().expect("writing begins").commit().expect("committing works");
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        let table = self.read().open_table(OBJECTS).expect("the table opens");
        let value = table.get(key).expect("reading works").expect("the object is there");
        see(value.value());
    }

    fn delete_batch(&self, keys: &[String]) {
        let batch = self.db.begin_write().expect("writing begins");
        {
            let mut table = batch.open_table(OBJECTS).expect("the table opens");
            for key in keys {
                table.remove(&**key).expect("removing works").expect("the object is there");
            }
        }
        batch.commit().expect("committing works");
    }

    fn list(&self, prefix: &str) -> Listed {
        let mut listed = Listed::default();
        let table = match self.read().open_table(OBJECTS) {
            Err(TableError::TableDoesNotExist(_)) => return listed,
            table => table.expect("the table opens"),
        };
        for item in table.range(prefix..).expect("listing works") {
            let (key, _) = item.expect("listing works");
            if !key.value().starts_with(prefix) {
                break;
            }
            listed.add(key.value().as_bytes());
        }
        listed
    }
}
