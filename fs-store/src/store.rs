//! [`Store`]: the operations.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::Batch;
use crate::checksum::checksum;
use crate::codec::{Decoder, put_bytes, put_varint};
use crate::data::{ObjectReader, ReadError, Written, read_all, write_values};
use crate::disk::Disk;
use crate::engine::{Condition, Draft, Engine, Step};
use crate::error::{Error, Result};
use crate::frame::Key;
use crate::list::{List, ListOptions};
use crate::object::{Body, INLINE_BYTES, Object};
use crate::open;
use crate::options::{Durability, OpenOptions, PutOptions};
use crate::reader::Reader;
use crate::snapshot::Snapshot;
use crate::verify::{self, Report};
use crate::writer::Writer;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 4096;

/// The most metadata of an object, names and values together, in bytes.
pub const MAX_METADATA_BYTES: usize = 64 << 10;

/// Values up to so many bytes that are to be durable come along in the journal:
/// one write and one flush.
pub(crate) const RIDING_BYTES: usize = 32 << 10;

/// A store of blobs. Clones are the same store, and all calls may be made from
/// many threads.
///
/// ```
/// use fs_store::Store;
///
/// let dir = tempfile::tempdir()?;
/// let store = Store::create(dir.path())?;
/// store.put("photos/1", b"...")?;
/// store.put("photos/2", b"....")?;
/// store.delete("photos/1")?;
/// assert_eq!(store.get("photos/2")?.as_deref(), Some(&b"...."[..]));
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    engine: Arc<Engine>,
    disk: Arc<dyn Disk>,
    options: OpenOptions,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What is known of an object besides its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// Length in bytes.
    pub len: u64,
    /// Number of the commit that put it: another one for each object that a key ever has.
    pub version: u64,
    /// When the key got an object after it had none, in nanoseconds since 1970.
    pub created: u64,
    /// When this object was put, in nanoseconds since 1970.
    pub modified: u64,
    /// CRC-32C of its bytes.
    pub checksum: u32,
    /// What was given with it, by name, in the order of the names.
    pub metadata: Vec<(String, Vec<u8>)>,
}

impl Stat {
    pub(crate) fn of(object: &Object) -> Self {
        Self {
            len: object.len,
            version: object.version,
            created: object.created,
            modified: object.modified,
            checksum: object.crc,
            metadata: decode_metadata(&object.metadata),
        }
    }
}

/// Space that a store takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub object_bytes: u64,
    /// Bytes of the block files.
    pub file_bytes: u64,
    /// Bytes that the block files take on the medium: less where they have holes.
    pub allocated_bytes: u64,
    /// Bytes of them that are free, and used before the files grow.
    pub free_bytes: u64,
    /// Bytes that were given up, and become free when nobody can see them any
    /// more and a flush has made that safe.
    pub waiting_bytes: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Block files.
    pub files: u64,
}

/// Whether these bytes may be a key.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > MAX_KEY_BYTES {
        return Err(Error::Key { len: key.len(), max: MAX_KEY_BYTES });
    }
    Ok(())
}

fn to_key(key: impl AsRef<[u8]>) -> Result<Key> {
    check_key(key.as_ref())?;
    Ok(key.as_ref().into())
}

pub(crate) fn encode_metadata(metadata: &[(String, Vec<u8>)]) -> Result<Bytes> {
    if metadata.is_empty() {
        return Ok(Bytes::new());
    }
    let len = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if len > MAX_METADATA_BYTES {
        return Err(Error::Metadata { len, max: MAX_METADATA_BYTES });
    }
    let mut sorted: Vec<_> = metadata.iter().collect();
    sorted.sort();
    let mut out = Vec::with_capacity(len + 8);
    put_varint(&mut out, sorted.len() as u64);
    for (name, value) in sorted {
        put_bytes(&mut out, name.as_bytes());
        put_bytes(&mut out, value);
    }
    Ok(out.into())
}

/// What was encoded; metadata that was not encoded here ends where it makes no sense.
fn decode_metadata(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut from = Decoder::new(bytes);
    let count = from.count(2).unwrap_or(0);
    let mut pair = || {
        let name = String::from_utf8_lossy(from.bytes()?).into_owned();
        Some((name, from.bytes()?.to_vec()))
    };
    (0..count).map_while(|_| pair()).collect()
}

impl Store {
    pub(crate) fn new(engine: Engine, disk: Arc<dyn Disk>, options: OpenOptions) -> Self {
        Self { engine: Arc::new(engine), disk, options }
    }

    /// Opens the store in a directory.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Makes a new store in a directory, which is made too if it is not there.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`]; [`Error::Exists`] if there is a store already.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().create_new(true).open(path)
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    // ------------------------------------------------------------ writing

    /// Gives a key an object with these bytes, in place of the one it may have.
    ///
    /// # Errors
    ///
    /// [`Error::Key`], [`Error::Full`], [`Error::ReadOnly`], [`Error::Broken`],
    /// [`Error::Io`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Stat> {
        self.put_with(key, value, &PutOptions::new())
    }

    /// [`Store::put`], with conditions, metadata or another durability.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; [`Error::AlreadyExists`], [`Error::NotFound`],
    /// [`Error::Conflict`] if the condition does not hold, and [`Error::Metadata`].
    ///
    /// ```
    /// use fs_store::{Error, MemDisk, OpenOptions, PutOptions};
    ///
    /// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
    /// let first = store.put("counter", b"1")?;
    /// let swap = PutOptions::new().if_version(first.version);
    /// store.put_with("counter", b"2", &swap)?;
    /// // somebody was faster
    /// assert!(matches!(store.put_with("counter", b"2", &swap), Err(Error::Conflict { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: &PutOptions,
    ) -> Result<Stat> {
        let key = to_key(key)?;
        let durability = options.durability.unwrap_or(self.engine.durability);
        let metadata = encode_metadata(&options.metadata)?;
        let draft = self.draft(value.as_ref(), metadata, durability)?;
        self.put_draft(key, draft, options.condition, durability)
    }

    /// Gives a key an object with all bytes that `source` has, however many.
    /// They are never in memory all at once.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; [`Error::Source`] if `source` fails.
    pub fn put_reader(&self, key: impl AsRef<[u8]>, source: impl Read) -> Result<Stat> {
        self.put_reader_with(key, source, &PutOptions::new())
    }

    /// [`Store::put_reader`], with options.
    ///
    /// # Errors
    ///
    /// As [`Store::put_with`]; [`Error::Source`] if `source` fails.
    pub fn put_reader_with(
        &self,
        key: impl AsRef<[u8]>,
        mut source: impl Read,
        options: &PutOptions,
    ) -> Result<Stat> {
        let mut writer = self.writer_with(key, options)?;
        writer.fill_from(&mut source)?;
        writer.commit()
    }

    /// A writer for an object of any length. Nobody sees anything of it before
    /// [`Writer::commit`]; dropped without that, it leaves no trace.
    ///
    /// # Errors
    ///
    /// [`Error::Key`], [`Error::ReadOnly`], [`Error::Broken`].
    ///
    /// ```
    /// use std::io::Write;
    /// use fs_store::{MemDisk, OpenOptions};
    ///
    /// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
    /// let mut writer = store.writer("log")?;
    /// for line in 0..3 {
    ///     writeln!(writer, "line {line}")?;
    /// }
    /// assert_eq!(store.get("log")?, None);
    /// assert_eq!(writer.commit()?.len, 21);
    /// assert_eq!(store.get("log")?.as_deref(), Some(&b"line 0\nline 1\nline 2\n"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self, key: impl AsRef<[u8]>) -> Result<Writer> {
        self.writer_with(key, &PutOptions::new())
    }

    /// [`Store::writer`], with options; conditions are asked when it commits.
    ///
    /// # Errors
    ///
    /// As [`Store::writer`], and [`Error::Metadata`].
    pub fn writer_with(&self, key: impl AsRef<[u8]>, options: &PutOptions) -> Result<Writer> {
        let key = to_key(key)?;
        self.engine.journal()?.check()?;
        let metadata = encode_metadata(&options.metadata)?;
        Ok(Writer::new(self.clone(), key, metadata, options.clone()))
    }

    /// Gives a new key below `parent` an object: `parent`, a slash if it does not end
    /// with one, and 26 letters
    /// and digits that no other call gives. The key and its object.
    ///
    /// # Errors
    ///
    /// As [`Store::put`].
    pub fn put_new(
        &self,
        parent: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(Vec<u8>, Stat)> {
        loop {
            let mut key = parent.as_ref().to_vec();
            if key.last() != Some(&b'/') {
                key.push(b'/');
            }
            key.extend_from_slice(&self.engine.unique_name());
            match self.put_with(&key, value.as_ref(), &PutOptions::new().create_only()) {
                Err(Error::AlreadyExists { .. }) => {}
                put => return put.map(|stat| (key, stat)),
            }
        }
    }

    /// Takes a key's object; false if it has none.
    ///
    /// # Errors
    ///
    /// [`Error::Key`], [`Error::ReadOnly`], [`Error::Broken`], [`Error::Io`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.delete_with(key, &PutOptions::new())
    }

    /// [`Store::delete`] with a condition or another durability.
    ///
    /// # Errors
    ///
    /// As [`Store::delete`], and those of the condition.
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &PutOptions) -> Result<bool> {
        let key = to_key(key)?;
        let durability = options.durability.unwrap_or(self.engine.durability);
        let step = Step::Delete { key, condition: options.condition };
        let committed = self.engine.commit(&[step], durability)?;
        Ok(committed.objects[0].is_some())
    }

    /// Gives the object of `from` to `to`, in one step; what `to` had is gone.
    /// Its bytes stay where they are.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if `from` has none; otherwise as [`Store::delete`].
    pub fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        self.rename_with(from, to, &PutOptions::new())
    }

    /// [`Store::rename`]; the condition is on `to`.
    ///
    /// # Errors
    ///
    /// As [`Store::rename`], and those of the condition.
    pub fn rename_with(
        &self,
        from: impl AsRef<[u8]>,
        to: impl AsRef<[u8]>,
        options: &PutOptions,
    ) -> Result<()> {
        let (from, to) = (to_key(from)?, to_key(to)?);
        let durability = options.durability.unwrap_or(self.engine.durability);
        let step = Step::Rename { from, to, condition: options.condition };
        self.engine.commit(&[step], durability).map(drop)
    }

    /// Gives `to` an object with the bytes and metadata of that of `from`. The
    /// bytes are read and written: copies share no sectors, so that each can be
    /// deleted, and be damaged, by itself.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if `from` has none; [`Error::Corrupt`]; otherwise as [`Store::put`].
    pub fn copy(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<Stat> {
        let reader = self.reader(&from)?;
        let mut reader = reader.ok_or_else(|| Error::NotFound { key: from.as_ref().to_vec() })?;
        let options = PutOptions { metadata: reader.stat().metadata, ..PutOptions::new() };
        let mut writer = self.writer_with(to, &options)?;
        reader.copy_to(&mut writer)?;
        writer.commit()
    }

    /// Does all that is in a batch, or nothing: one commit, one flush at most.
    ///
    /// # Errors
    ///
    /// The first condition that does not hold; otherwise as [`Store::put`].
    ///
    /// ```
    /// use fs_store::{Batch, MemDisk, OpenOptions};
    ///
    /// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
    /// let mut batch = Batch::new();
    /// for i in 0..100 {
    ///     batch.put(format!("key-{i}"), vec![i; 1000]);
    /// }
    /// batch.delete("key-7");
    /// store.commit(batch)?;
    /// assert_eq!(store.usage()?.objects, 99);
    /// # Ok::<(), fs_store::Error>(())
    /// ```
    pub fn commit(&self, batch: Batch) -> Result<()> {
        self.commit_with(batch, self.engine.durability)
    }

    /// [`Store::commit`] with another durability.
    ///
    /// # Errors
    ///
    /// As [`Store::commit`].
    pub fn commit_with(&self, batch: Batch, durability: Durability) -> Result<()> {
        let steps = batch.into_steps(&self.engine, durability)?;
        if steps.is_empty() {
            return Ok(());
        }
        self.engine.commit(&steps, durability).map(drop)
    }

    /// Makes all that was done before durable, with one flush.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the flush fails: then the store takes no more writes
    /// ([`Error::Broken`]) until it is opened again. [`Error::ReadOnly`].
    pub fn sync(&self) -> Result<()> {
        self.engine.flush_all()
    }

    /// A value that is ready to be put: with its bytes, if it is short or to be
    /// durable and not too long, else written to sectors.
    fn draft(&self, value: &[u8], metadata: Bytes, durability: Durability) -> Result<Draft> {
        let rides = value.len() <= INLINE_BYTES
            || (durability != Durability::Buffered && value.len() <= RIDING_BYTES);
        let len = value.len() as u64;
        if rides {
            let body = Body::Inline(Bytes::copy_from_slice(value));
            return Ok(Draft { len, crc: checksum(value), body, metadata });
        }
        self.engine.journal()?.check()?;
        let flush = || self.engine.flush_all();
        let mut written = write_values(&self.engine.space, &[value], &flush)?;
        let Written { body, crc } = written.pop().expect("one for one");
        Ok(Draft { len, crc, body, metadata })
    }

    /// Puts a draft under a key.
    pub(crate) fn put_draft(
        &self,
        key: Key,
        draft: Draft,
        condition: Condition,
        durability: Durability,
    ) -> Result<Stat> {
        let step = Step::Put { key, draft, condition };
        let committed = self.engine.commit(&[step], durability)?;
        Ok(Stat::of(committed.objects[0].as_ref().expect("it was put")))
    }

    // ------------------------------------------------------------ reading

    /// What a store that is open for reading only takes for damage may be what its
    /// writer, in another process, has put there since.
    fn explain<T>(&self, key: &[u8], result: Result<T>) -> Result<T> {
        let is_doubtful = matches!(result, Err(Error::Corrupt { .. } | Error::Damaged { .. }));
        if !is_doubtful || !self.options.read_only {
            return result;
        }
        let version = |engine: &Engine| -> Result<Option<u64>> {
            Ok(engine.lookup(key)?.map(|object| object.version))
        };
        let now = open::open(Arc::clone(&self.disk), &self.options);
        let Ok(now) = now.and_then(|store| version(&store.engine)) else { return result };
        match version(&self.engine) {
            Ok(before) if before == now => result,
            _ => Err(Error::ChangedUnderneath),
        }
    }

    /// The bytes of a key's object, checked; `None` if it has none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if they are not what was put; [`Error::Io`];
    /// [`Error::ChangedUnderneath`] in a store that is open for reading only.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        let space = &self.engine.space;
        let key = key.as_ref();
        let read = |object: &Object| read_all(space, object);
        self.explain(key, self.engine.with_object(key, read))
    }

    /// Puts the bytes of a key's object into `out`, in place of what it has, and
    /// uses its memory; false, and `out` empty, if the key has no object.
    ///
    /// # Errors
    ///
    /// As [`Store::get`].
    pub fn get_into(&self, key: impl AsRef<[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        let space = &self.engine.space;
        let found = self.engine.with_object(key.as_ref(), |object| {
            out.clear();
            match &object.body {
                Body::Inline(bytes) => {
                    out.extend_from_slice(bytes);
                    Ok(())
                }
                Body::Sectors(placed) => {
                    ObjectReader::new(space, object, placed).read_chunks(0, object.len, out)
                }
            }
        });
        if !matches!(found, Ok(Some(()))) {
            out.clear();
        }
        Ok(self.explain(key.as_ref(), found)?.is_some())
    }

    /// The bytes of a key's object, checked, without a copy where they lie in one
    /// piece: borrowed from a map of the file.
    ///
    /// # Errors
    ///
    /// As [`Store::get`]; [`Error::ReadOnly`] if the store is open for reading
    /// only, since its writer could change what is borrowed.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// let store = fs_store::Store::create(dir.path())?;
    /// store.put("a", vec![7; 5000])?;
    /// let bytes = store.get_mapped("a")?.expect("just put");
    /// store.delete("a")?;
    /// assert_eq!(*bytes, [7; 5000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "mmap")]
    pub fn get_mapped(&self, key: impl AsRef<[u8]>) -> Result<Option<crate::Mapped>> {
        crate::mapped::get(&self.engine, key.as_ref())
    }

    /// Some of the bytes of a key's object: those of `range` that it has.
    ///
    /// # Errors
    ///
    /// As [`Store::get`]; only what was read is checked.
    pub fn get_range(
        &self,
        key: impl AsRef<[u8]>,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>> {
        let Some(mut reader) = self.reader(key)? else { return Ok(None) };
        let end = range.end.min(reader.len());
        let start = range.start.min(end);
        let mut out = vec![0; usize::try_from(end - start).expect("bounded by the object")];
        reader.read_exact_at(&mut out, start)?;
        Ok(Some(out.into()))
    }

    /// A reader of a key's object as it is now, whatever becomes of the key.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    ///
    /// ```
    /// use std::io::{Read, Seek, SeekFrom};
    /// use fs_store::{MemDisk, OpenOptions};
    ///
    /// let store = OpenOptions::new().create(true).open_on(MemDisk::new())?;
    /// store.put("a", vec![7; 100_000])?;
    /// let mut reader = store.reader("a")?.expect("just put");
    /// store.delete("a")?;
    /// reader.seek(SeekFrom::Start(99_998))?;
    /// let mut rest = Vec::new();
    /// reader.read_to_end(&mut rest)?;
    /// assert_eq!(rest, [7, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reader(&self, key: impl AsRef<[u8]>) -> Result<Option<Reader>> {
        let pin = self.engine.space.pin();
        let object = self.explain(key.as_ref(), self.engine.lookup(key.as_ref()))?;
        let space = Arc::clone(&self.engine.space);
        Ok(object.map(|object| Reader::new(space, key.as_ref().into(), object, pin)))
    }

    /// Whether a key has an object.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.explain(key.as_ref(), self.engine.lookup(key.as_ref()))?.is_some())
    }

    /// What is known of a key's object besides its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn stat(&self, key: impl AsRef<[u8]>) -> Result<Option<Stat>> {
        let object = self.explain(key.as_ref(), self.engine.lookup(key.as_ref()))?;
        Ok(object.map(|object| Stat::of(&object)))
    }

    /// Goes through keys in order, as they are now.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`], here and from the iterator.
    pub fn list(&self, options: &ListOptions) -> Result<List> {
        self.snapshot().list(options)
    }

    /// The state of now, to list and to read from, whatever is done meanwhile.
    /// Costs the same for any number of objects. Sectors that it sees are not
    /// used again while it lives.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.engine))
    }

    // ------------------------------------------------------------ the whole

    /// How much space the store takes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn usage(&self) -> Result<Usage> {
        verify::usage(&self.engine)
    }

    /// Reads everything against its checksums, and checks that every sector has
    /// one owner or is free. `progress` gets the bytes read so far and how many
    /// there are.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]. What is found wrong is in the report.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<Report> {
        verify::verify(&self.engine, progress)
    }

    /// Brings everything from the journal into the index, and gives free ends of
    /// files, and holes in them, back to the system. How many bytes that are.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::ReadOnly`], [`Error::Broken`].
    pub fn trim(&self) -> Result<u64> {
        self.engine.fold_all()?;
        self.engine.flush_all()?;
        self.engine.drop_spare();
        self.engine.space.trim()
    }

    /// Brings everything into the index and to the medium. Other handles of the
    /// store can go on.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Broken`]. What was durable stays so.
    pub fn close(self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        self.engine.fold_all()?;
        self.engine.flush_all()
    }

    /// Sees what the writer, in another process, has done since; of use for stores
    /// that are open for reading only.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::open`].
    pub fn refresh(&mut self) -> Result<()> {
        if self.options.read_only {
            *self = open::open(Arc::clone(&self.disk), &self.options)?;
        }
        Ok(())
    }
}

/// A failed read as an error of a reader.
pub(crate) fn read_error(error: ReadError, key: &[u8]) -> Error {
    error.of(key)
}
