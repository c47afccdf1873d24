//! Storages over things that have a cursor: `Read + Seek`, with or without `Write`.

use super::Storage;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thing with a cursor, and where that cursor is.
#[derive(Debug)]
struct Positioned<T> {
    inner: T,
    /// `None` if a call failed and it may be anywhere.
    at: Option<u64>,
}

impl<T: Seek> Positioned<T> {
    const fn new(inner: T) -> Self {
        Self { inner, at: None }
    }

    /// Seeks only when the cursor is elsewhere: a seek costs a call, and a
    /// `BufReader` its buffer.
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        if self.at != Some(offset) {
            self.at = None;
            self.at = Some(self.inner.seek(SeekFrom::Start(offset))?);
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<u64> {
        self.at = None;
        let end = self.inner.seek(SeekFrom::End(0))?;
        self.at = Some(end);
        Ok(end)
    }
}

impl<T: Read + Seek> Positioned<T> {
    fn read(&mut self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek(offset)?;
        self.at = None;
        let mut done = 0;
        while done < buf.len() {
            match self.inner.read(&mut buf[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.at = offset.checked_add(done as u64);
        Ok(done)
    }
}

impl<T: Write + Seek> Positioned<T> {
    fn write(&mut self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.seek(offset)?;
        self.at = None;
        self.inner.write_all(buf)?;
        self.at = offset.checked_add(buf.len() as u64);
        Ok(())
    }

    fn write_zeros(&mut self, from: u64, to: u64) -> io::Result<()> {
        static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
        let mut at = from;
        while at < to {
            let count = usize::try_from(to - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            self.write(&ZEROS[..count], at)?;
            at += count as u64;
        }
        Ok(())
    }
}

/// A panic inside `T` leaves the cursor anywhere, and `at` says so already.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Anything that is `Read + Seek`, as a storage that is only read.
///
/// Calls take turns: there is one cursor.
///
/// # Examples
///
/// ```
/// use cfb_format::{ReadOnly, Storage};
///
/// let storage = ReadOnly::new(std::io::Cursor::new(b"compound"));
/// let mut buf = [0; 3];
/// assert_eq!(storage.read_at(&mut buf, 5)?, 3);
/// assert_eq!(&buf, b"und");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadOnly<T> {
    cursor: Mutex<Positioned<T>>,
}

impl<T: Read + Seek> ReadOnly<T> {
    /// A storage over `inner`. Touches nothing yet.
    pub const fn new(inner: T) -> Self {
        Self { cursor: Mutex::new(Positioned::new(inner)) }
    }

    /// Gives `inner` back, its cursor anywhere.
    pub fn into_inner(self) -> T {
        self.cursor.into_inner().unwrap_or_else(PoisonError::into_inner).inner
    }
}

impl<T: Read + Seek + Send> Storage for ReadOnly<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        lock(&self.cursor).read(buf, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn len(&self) -> io::Result<u64> {
        lock(&self.cursor).end()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts off or extends a `T`; see [`ReadWrite::with_set_len`].
type SetLen<T> = fn(&mut T, u64) -> io::Result<()>;

/// Anything that is `Read + Write + Seek`, as a storage.
///
/// Calls take turns: there is one cursor. `sync` flushes.
///
/// Those traits cannot shorten anything. After [`new`](Self::new), cutting the
/// storage off changes only the length that this adapter goes by: reads end
/// there, and what is later written behind it finds zeros as it should. But the
/// bytes cut off stay behind the end of what the compound file describes, where
/// its readers ignore them. [`with_set_len`](Self::with_set_len) takes what is
/// needed to really cut them off.
///
/// # Examples
///
/// ```
/// use cfb_format::{ReadWrite, Storage};
/// use std::io::Cursor;
///
/// let storage = ReadWrite::new(Cursor::new(b"compound".to_vec()));
/// storage.set_len(3)?;
/// storage.write_at(b"!", 4)?;
/// assert_eq!(storage.len()?, 5);
/// assert_eq!(storage.into_inner().into_inner(), b"com\0!und");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadWrite<T> {
    state: Mutex<State<T>>,
    set_len: Option<SetLen<T>>,
}

#[derive(Debug)]
struct State<T> {
    cursor: Positioned<T>,
    /// Length of the storage; `inner` may be longer. `None` until it is asked for.
    len: Option<u64>,
}

impl<T: Read + Write + Seek> State<T> {
    fn len(&mut self) -> io::Result<u64> {
        if let Some(len) = self.len {
            return Ok(len);
        }
        let len = self.cursor.end()?;
        self.len = Some(len);
        Ok(len)
    }
}

impl<T: Read + Write + Seek> ReadWrite<T> {
    /// A storage over `inner`, which cannot be shortened. Touches nothing yet.
    pub const fn new(inner: T) -> Self {
        Self {
            state: Mutex::new(State { cursor: Positioned::new(inner), len: None }),
            set_len: None,
        }
    }

    /// A storage over `inner`, which `set_len` can cut off and extend with zeros.
    ///
    /// # Examples
    ///
    /// ```
    /// use cfb_format::{ReadWrite, Storage};
    /// use std::io::Cursor;
    ///
    /// let storage = ReadWrite::with_set_len(Cursor::new(b"compound".to_vec()), |inner, len| {
    ///     inner.get_mut().resize(usize::try_from(len).expect("small"), 0);
    ///     Ok(())
    /// });
    /// storage.set_len(4)?;
    /// assert_eq!(storage.into_inner().into_inner(), b"comp");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn with_set_len(inner: T, set_len: SetLen<T>) -> Self {
        Self { set_len: Some(set_len), ..Self::new(inner) }
    }

    /// Gives `inner` back, its cursor anywhere.
    pub fn into_inner(self) -> T {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).cursor.inner
    }
}

impl<T: Read + Write + Seek + Send> Storage for ReadWrite<T> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = lock(&self.state);
        let left = state.len()?.saturating_sub(offset);
        if left == 0 {
            return Ok(0);
        }
        let count = usize::try_from(left).map_or(buf.len(), |left| left.min(buf.len()));
        state.cursor.read(&mut buf[..count], offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(buf.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut state = lock(&self.state);
        let len = state.len()?;
        state.cursor.write_zeros(len, offset)?;
        state.cursor.write(buf, offset)?;
        state.len = Some(len.max(end));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        lock(&self.state).len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        if let Some(set_len) = self.set_len {
            state.cursor.at = None;
            state.len = None;
            set_len(&mut state.cursor.inner, len)?;
        } else {
            let old = state.len()?;
            state.cursor.write_zeros(old, len)?;
        }
        state.len = Some(len);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        lock(&self.state).cursor.inner.flush()
    }
}
