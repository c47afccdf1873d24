//! `SQLite`: one table in one file, with a write-ahead log that is flushed.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use rusqlite::blob::ZeroBlob;
use rusqlite::{Connection, MAIN_DB, params};

use super::{Contestant, Item, Listed};

/// A connection is for one thread at a time; so is writing.
struct Sqlite(Mutex<Connection>);

/// A store in `dir`.
pub(super) fn open(dir: &Path) -> Box<dyn Contestant> {
    let connection = Connection::open(dir.join("objects.sqlite")).expect("SQLite opens");
    // A cache of 256 MiB, and reads through a map.
    let set_up = "
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA cache_size = -262144;
        PRAGMA mmap_size = 4294967296;
        CREATE TABLE IF NOT EXISTS objects
            (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL);";
    connection.execute_batch(set_up).expect("the table opens");
    Box::new(Sqlite(Mutex::new(connection)))
}

const PUT: &str = "INSERT INTO objects (key, value) VALUES (?1, ?2)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value";

impl Sqlite {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().expect("no thread panics")
    }
}

fn id_of(connection: &Connection, key: &str) -> i64 {
    let mut find = connection.prepare_cached("SELECT id FROM objects WHERE key = ?1");
    let find = find.as_mut().expect("the statement is right");
    find.query_row([key], |row| row.get(0)).expect("the object is there")
}

impl Contestant for Sqlite {
    fn put_batch(&self, items: &[Item]) {
        let mut connection = self.lock();
        let batch = connection.transaction().expect("writing begins");
        {
            let mut put = batch.prepare_cached(PUT).expect("the statement is right");
            for (key, value) in items {
                put.execute(params![key, value]).expect("inserting works");
            }
        }
        batch.commit().expect("committing works");
    }

    fn put_durable(&self, key: &str, value: &'static [u8]) {
        let connection = self.lock();
        let mut put = connection.prepare_cached(PUT).expect("the statement is right");
        put.execute(params![key, value]).expect("inserting works");
    }

    fn put_streamed(
        &self,
        key: &str,
        len_bytes: usize,
        pieces: &mut dyn Iterator<Item = &'static [u8]>,
    ) {
        let mut connection = self.lock();
        let batch = connection.transaction().expect("writing begins");
        batch.execute(PUT, params![key, ZeroBlob(len_bytes as u64)]).expect("inserting works");
        let id = id_of(&batch, key);
        {
            let blob = batch.blob_open(MAIN_DB, c"objects", c"value", id, false);
            let mut blob = blob.expect("the value opens");
            let mut at = 0;
            for piece in pieces {
                blob.write_at(piece, at).expect("writing works");
                at += piece.len();
            }
        }
        batch.commit().expect("committing works");
    }

    fn sync(&self) {
        // Each commit has flushed the log.
    }

    fn get(&self, key: &str, see: &mut dyn FnMut(&[u8])) {
        let connection = self.lock();
        let mut get = connection.prepare_cached("SELECT value FROM objects WHERE key = ?1");
        let get = get.as_mut().expect("the statement is right");
        get.query_row([key], |row| {
            see(row.get_ref(0)?.as_blob()?);
            Ok(())
        })
        .expect("the object is there");
    }

    fn read_range(&self, key: &str, offset: u64, buf: &mut [u8]) {
        let connection = self.lock();
        let id = id_of(&connection, key);
        let blob = connection.blob_open(MAIN_DB, c"objects", c"value", id, true);
        let offset = usize::try_from(offset).expect("below 2 GiB");
        blob.expect("the value opens").read_at_exact(buf, offset).expect("reading works");
    }

    fn delete_batch(&self, keys: &[String]) {
        let mut connection = self.lock();
        let batch = connection.transaction().expect("writing begins");
        {
            let delete = "DELETE FROM objects WHERE key = ?1";
            let mut delete = batch.prepare_cached(delete).expect("the statement is right");
            for key in keys {
                assert_eq!(delete.execute([key]).expect("removing works"), 1, "{key} is there");
            }
        }
        batch.commit().expect("committing works");
    }

    fn list(&self, prefix: &str) -> Listed {
        let connection = self.lock();
        let list = "SELECT key FROM objects WHERE key >= ?1 AND key < ?2 ORDER BY key";
        let mut list = connection.prepare_cached(list).expect("the statement is right");
        let after = format!("{prefix}\u{10ffff}");
        let mut rows = list.query([prefix, &after]).expect("listing works");
        let mut listed = Listed::default();
        while let Some(row) = rows.next().expect("listing works") {
            listed.add(row.get_ref(0).and_then(|key| Ok(key.as_bytes()?)).expect("a key"));
        }
        listed
    }
}
