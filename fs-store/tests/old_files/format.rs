//! Reads and writes the bytes of a store by the tables of FORMAT.md, and by
//! nothing else: no line of it is shared with the library. Whatever is wrong is
//! a panic.

use std::collections::{BTreeMap, BTreeSet, HashMap};

const FORMAT: &str = include_str!("../../FORMAT.md");

/// Fields of a table: name to offset and size.
pub(crate) struct Table {
    fields: HashMap<&'static str, (usize, usize)>,
    pub(crate) size: usize,
}

impl Table {
    /// The `nth` table with offsets, sizes and fields under a heading.
    pub(crate) fn of(heading: &str, nth: usize) -> Self {
        let start = FORMAT.find(&format!("\n## {heading}\n")).expect("the heading is there") + 1;
        let section = &FORMAT[start..];
        let section = &section[..section[3..].find("\n## ").map_or(section.len(), |end| end + 3)];
        let table = section.split("| offset | size | field |").nth(nth + 1).expect("a table");
        let mut fields = HashMap::new();
        let mut end = 0;
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let mut cells = row.split('|').skip(1).map(str::trim);
            let mut number = || cells.next().unwrap().parse::<usize>().expect("a number");
            let (offset, size) = (number(), number());
            assert_eq!(offset, end, "no gap in the table: {row}");
            end += size;
            fields.insert(cells.next().unwrap(), (offset, size));
        }
        Self { fields, size: end }
    }

    pub(crate) fn range(&self, field: &str) -> std::ops::Range<usize> {
        let (offset, size) = self.fields[field];
        offset..offset + size
    }

    pub(crate) fn bytes<'a>(&self, bytes: &'a [u8], field: &str) -> &'a [u8] {
        &bytes[self.range(field)]
    }

    /// A number.
    pub(crate) fn get(&self, bytes: &[u8], field: &str) -> u64 {
        let bytes = self.bytes(bytes, field).iter().rev();
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    pub(crate) fn put(&self, bytes: &mut [u8], field: &str, number: u64) {
        let range = self.range(field);
        let len = range.len();
        bytes[range].copy_from_slice(&number.to_le_bytes()[..len]);
    }
}

/// CRC-32C, a bit at a time.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            // 0x1EDC6F41 with its bits in the other order
            if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 }
        })
    });
    !crc
}

/// A record, from its front.
pub(crate) struct Record<'a>(pub(crate) &'a [u8]);

impl<'a> Record<'a> {
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    pub(crate) fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.u8();
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
        }
        unreachable!("every number ends")
    }

    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = index(self.varint());
        self.take(len)
    }

    pub(crate) fn extent(&mut self) -> Extent {
        let extent = Extent { file: self.varint(), start: self.varint(), count: self.varint() };
        assert!(extent.count > 0);
        extent
    }

    fn extents(&mut self) -> Vec<Extent> {
        (0..self.varint()).map(|_| self.extent()).collect()
    }

    fn blob(&mut self) -> Blob {
        Blob { extent: self.extent(), len: self.varint(), crc: self.u32() }
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        out.push(u8::try_from(value & 0x7F).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u64,
    pub(crate) start: u64,
    pub(crate) count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Blob {
    extent: Extent,
    len: u64,
    crc: u32,
}

/// An object, with all its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) version: u64,
    pub(crate) created: u64,
    pub(crate) modified: u64,
    pub(crate) crc: u32,
    pub(crate) metadata: Vec<(String, Vec<u8>)>,
    pub(crate) bytes: Vec<u8>,
    /// Chunks that have their checksums in sectors, if they have.
    pub(crate) sum_chunks: usize,
    /// Its sectors, those of checksums too.
    extents: Vec<Extent>,
}

/// What is found in the files of a store.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) objects: BTreeMap<Vec<u8>, Object>,
    pub(crate) levels: u64,
    pub(crate) block_files: usize,
    /// Objects in the index, and commits in the journal.
    pub(crate) in_index: u64,
    pub(crate) in_journal: u64,
    pub(crate) last_seq: u64,
}

/// The files of a store.
pub(crate) struct Files {
    all: Vec<(String, Vec<u8>)>,
    sector_bytes: u64,
    /// Sectors that something was found in: file and sector.
    used: BTreeSet<(u64, u64)>,
}

impl Files {
    pub(crate) fn new(all: Vec<(String, Vec<u8>)>) -> Self {
        Self { all, sector_bytes: 0, used: BTreeSet::new() }
    }

    fn file(&self, number: u64) -> &[u8] {
        let name = format!("blocks-{number:05}");
        &self.all.iter().find(|(found, _)| *found == name).expect("a block file").1
    }

    fn content(&mut self, extents: &[Extent], len: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for extent in extents {
            for sector in extent.start..extent.start + extent.count {
                assert!(self.used.insert((extent.file, sector)), "used twice: {extent:?}");
            }
            let start = index(extent.start * self.sector_bytes);
            let end = start + index(extent.count * self.sector_bytes);
            all.extend_from_slice(&self.file(extent.file)[start..end]);
        }
        assert_eq!(all.len() as u64, len.next_multiple_of(self.sector_bytes), "{extents:?}");
        assert!(all[index(len)..].iter().all(|byte| *byte == 0), "zeros behind the end");
        all.truncate(index(len));
        all
    }

    fn blob(&mut self, blob: Blob) -> Vec<u8> {
        let bytes = self.content(&[blob.extent], blob.len);
        assert_eq!(crc32c(&bytes), blob.crc, "{blob:?}");
        bytes
    }

    /// The superblock that counts, and where it is.
    pub(crate) fn superblock(&self) -> (usize, Vec<u8>) {
        let table = Table::of("Superblock", 0);
        assert_eq!(table.size, 132);
        let first = self.file(0);
        let places = (0..4).map(|place| place * 4096);
        let whole = places.filter(|&at| {
            let bytes = &first[at..at + table.size];
            table.bytes(bytes, "magic") == b"FSSTORE\n"
                && table.get(bytes, "version") == 1
                && table.get(bytes, "crc") == u64::from(crc32c(&bytes[..128]))
        });
        let at =
            whole.max_by_key(|&at| table.get(&first[at..], "generation")).expect("a superblock");
        let generation = table.get(&first[at..], "generation");
        assert_eq!(at / 8192, index(generation % 2), "even ones are in front");
        let bytes = first[at..at + 4096].to_vec();
        assert_eq!(bytes, first[at ^ 4096..][..4096], "both copies are the same");
        assert!(bytes[table.size..].iter().all(|byte| *byte == 0));
        (at, bytes)
    }

    /// Reads everything.
    pub(crate) fn read(&mut self) -> Found {
        let table = Table::of("Superblock", 0);
        let (_, bytes) = self.superblock();
        let get = |field| table.get(&bytes, field);
        self.sector_bytes = get("sector_bytes");
        let mut found = Found { levels: get("levels"), ..Found::default() };

        let header = Table::of("Header of a block file", 0);
        let names = self.all.iter().filter(|(name, _)| name.starts_with("blocks-"));
        found.block_files = names.count();
        assert!(found.block_files as u64 >= get("files"));
        for number in 1..found.block_files as u64 {
            let bytes = &self.file(number)[..header.size];
            assert_eq!(header.bytes(bytes, "magic"), b"FSBLOCK\n");
            assert_eq!(header.get(bytes, "store_id"), get("store_id"));
            assert_eq!(header.get(bytes, "number"), number);
            assert_eq!(header.get(bytes, "crc"), u64::from(crc32c(&bytes[..20])));
        }

        // The index, and what the free map must say of it.
        let mut entries = BTreeMap::new();
        if let Some(root) = blob_of(table.bytes(&bytes, "root")) {
            self.node(root, found.levels, &mut entries);
        }
        found.in_index = entries.len() as u64;
        let objects: BTreeMap<Vec<u8>, Object> = entries
            .into_iter()
            .map(|(key, value)| {
                let mut record = Record(&value);
                let object = self.object(&mut record);
                assert!(record.0.is_empty(), "nothing behind an object");
                assert!(object.bytes.len() <= 512 || object.sum_chunks > 0 || value.len() < 512);
                (key, object)
            })
            .collect();
        assert_eq!(get("objects"), found.in_index);
        assert_eq!(
            get("object_bytes"),
            objects.values().map(|object| object.bytes.len() as u64).sum()
        );
        for sector in 0..16384_u64.div_ceil(self.sector_bytes) {
            self.used.insert((0, sector));
        }
        let segment = Extent {
            file: get("journal_file"),
            start: get("journal_start"),
            count: get("journal_count"),
        };
        for sector in segment.start..segment.start + segment.count {
            assert!(self.used.insert((segment.file, sector)), "the journal is used twice");
        }
        if let Some(map) = blob_of(table.bytes(&bytes, "map_table")) {
            self.check_map(map);
        }

        found.objects = objects;
        self.journal(segment, get("journal_epoch"), get("journal_seq"), &mut found);
        found
    }

    fn node(&mut self, blob: Blob, level: u64, entries: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
        let bytes = self.blob(blob);
        assert_eq!(bytes[..4], [u8::try_from(level).unwrap(), 0, 0, 0]);
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let count = number(4);
        assert!(count > 0);
        assert_eq!(number(8), 8 + 4 * count, "entries follow their offsets");
        for nth in 0..count {
            let end = if nth + 1 < count { number(8 + 4 * (nth + 1)) } else { bytes.len() };
            let mut record = Record(&bytes[number(8 + 4 * nth)..end]);
            let key = record.bytes();
            let last = entries.last_key_value().map(|(key, _)| key.clone());
            assert!(last.is_none_or(|last| &last[..] < key), "keys are in order");
            if level == 1 {
                entries.insert(key.to_vec(), record.0.to_vec());
                continue;
            }
            let below = entries.len();
            let child = record.blob();
            assert!(record.0.is_empty(), "nothing behind a blob");
            self.node(child, level - 1, entries);
            let first = entries.keys().nth(below).expect("a child has entries");
            assert!(key <= &first[..], "the key of a child is not above those in it");
        }
    }

    fn object(&mut self, record: &mut Record<'_>) -> Object {
        let flags = record.u8();
        assert_eq!(flags & !7, 0);
        let version = record.varint();
        let modified = record.u64();
        let created = modified.wrapping_sub(record.varint());
        let len = record.varint();
        let crc = record.u32();
        let mut metadata = Vec::new();
        if flags & 2 != 0 {
            let mut record = Record(record.bytes());
            for _ in 0..record.varint() {
                let name = String::from_utf8(record.bytes().to_vec()).unwrap();
                metadata.push((name, record.bytes().to_vec()));
            }
            assert!(record.0.is_empty() && metadata.is_sorted());
        }
        let mut sum_chunks = 0;
        let mut all = Vec::new();
        let bytes = if flags & 1 == 0 {
            record.take(index(len)).to_vec()
        } else {
            let extents = record.extents();
            all.extend(&extents);
            let bytes = self.content(&extents, len);
            let chunks: Vec<u32> = bytes.chunks(16384).map(crc32c).collect();
            let sums = match (chunks.len(), flags & 4) {
                (1, 0) => vec![crc],
                (2..=32, 0) => (0..chunks.len()).map(|_| record.u32()).collect(),
                (33.., 4) => {
                    sum_chunks = chunks.len();
                    let extents = record.extents();
                    all.extend(&extents);
                    let blocks = chunks.len().div_ceil(1023) as u64;
                    self.content(&extents, blocks * 4096).chunks(4096).flat_map(sums_of).collect()
                }
                other => panic!("{other:?}: not where the table says"),
            };
            let (sums, rest) = sums.split_at(chunks.len());
            assert_eq!(sums, chunks);
            assert!(rest.iter().all(|sum| *sum == 0), "zeros behind the last chunk");
            bytes
        };
        assert_eq!(crc32c(&bytes), crc);
        Object { version, created, modified, crc, metadata, bytes, sum_chunks, extents: all }
    }

    /// Whether the free map has what was found until now, and no more.
    fn check_map(&mut self, table: Blob) {
        let bytes = self.blob(table);
        let mut record = Record(&bytes);
        let mut marked = BTreeSet::new();
        for file in 0..record.varint() {
            for page in 0..record.varint() {
                if record.u8() == 0 {
                    continue;
                }
                let blob = record.blob();
                assert_eq!(blob.len, 32768);
                let bits = self.blob(blob);
                for (at, byte) in bits.iter().enumerate() {
                    let bits = (0..8).filter(|bit| byte >> bit & 1 == 1);
                    marked.extend(bits.map(|bit| (file, page * 262_144 + at as u64 * 8 + bit)));
                }
            }
        }
        assert!(record.0.iter().all(|byte| *byte == 0), "zeros to the end of the table");
        let head = 4096_u64.div_ceil(self.sector_bytes);
        let mut found = self.used.clone();
        for sectors in [&mut marked, &mut found] {
            sectors.retain(|(file, sector)| *file == 0 || *sector >= head);
        }
        assert_eq!(marked, found);
    }

    /// Frames, and what keys have at their end.
    fn journal(&mut self, first: Extent, epoch: u64, seq: u64, found: &mut Found) {
        let table = Table::of("Journal", 0);
        assert_eq!(table.size, 48);
        let (mut segment, mut epoch, mut seq, mut session) = (first, epoch, seq, None);
        let mut changes: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        'segments: loop {
            let start = index(segment.start * self.sector_bytes);
            let end = start + index(segment.count * self.sector_bytes);
            let bytes = self.file(segment.file)[start..end].to_vec();
            let mut at = 0_usize;
            loop {
                let counts = |at: &usize| {
                    let bytes = bytes.get(*at..).unwrap_or_default();
                    if bytes.len() < 48 || table.bytes(bytes, "magic") != b"FSJ1" {
                        return false;
                    }
                    let Some(frame) = bytes.get(..48 + index(table.get(bytes, "len"))) else {
                        return false;
                    };
                    let mut zeroed = frame.to_vec();
                    table.put(&mut zeroed, "crc", 0);
                    table.get(bytes, "crc") == u64::from(crc32c(&zeroed))
                        && table.get(bytes, "epoch") == epoch
                        && table.get(bytes, "seq") == seq
                        && session.is_none_or(|session| session == table.get(bytes, "session"))
                };
                let Some(frame) = [at, at.next_multiple_of(4096)].into_iter().find(counts) else {
                    break 'segments;
                };
                let bytes = &bytes[frame..];
                let len = index(table.get(bytes, "len"));
                at = (frame + 48 + len).next_multiple_of(8);
                assert!(table.get(bytes, "durable") < seq && table.get(bytes, "reserved") == 0);
                session = Some(table.get(bytes, "session"));
                (found.in_journal, found.last_seq, seq) = (found.in_journal + 1, seq, seq + 1);
                let mut record = Record(&bytes[48..48 + len]);
                let mut next = None;
                while !record.0.is_empty() {
                    match record.u8() {
                        1 => {
                            let key = record.bytes().to_vec();
                            // Only what is there in the end is read: as it is here, whole.
                            let from = record.0;
                            skip_object(&mut record);
                            let object = &from[..from.len() - record.0.len()];
                            changes.insert(key, Some(object.to_vec()));
                        }
                        2 => drop(changes.insert(record.bytes().to_vec(), None)),
                        3 => next = Some((record.extent(), record.varint())),
                        other => panic!("step {other}"),
                    }
                }
                if let Some((extent, later)) = next {
                    assert!(later > epoch);
                    (segment, epoch) = (extent, later);
                    continue 'segments;
                }
            }
        }
        // What is replaced gives its sectors back, before what is new takes its own.
        for key in changes.keys() {
            for extent in found.objects.remove(key).iter().flat_map(|object| &object.extents) {
                for sector in extent.start..extent.start + extent.count {
                    self.used.remove(&(extent.file, sector));
                }
            }
        }
        for (key, object) in changes {
            if let Some(bytes) = object {
                let object = self.object(&mut Record(&bytes));
                found.objects.insert(key, object);
            }
        }
    }
}

/// To the end of an object.
fn skip_object(record: &mut Record<'_>) {
    let flags = record.u8();
    record.varint();
    record.u64();
    record.varint();
    let len = record.varint();
    record.u32();
    if flags & 2 != 0 {
        record.bytes();
    }
    if flags & 1 == 0 {
        record.take(index(len));
        return;
    }
    record.extents();
    match len.div_ceil(16384) {
        _ if flags & 4 != 0 => drop(record.extents()),
        1 => {}
        chunks => drop(record.take(index(chunks * 4))),
    }
}

/// The checksums in a block.
fn sums_of(block: &[u8]) -> Vec<u32> {
    let (sums, crc) = block.split_at(4092);
    assert_eq!(crc32c(sums).to_le_bytes(), crc);
    sums.chunks(4).map(|sum| u32::from_le_bytes(sum.try_into().unwrap())).collect()
}

/// A blob of a superblock.
fn blob_of(bytes: &[u8]) -> Option<Blob> {
    let table = Table::of("Superblock", 1);
    assert_eq!(table.size, bytes.len());
    let get = |field| table.get(bytes, field);
    let extent = Extent { file: get("file"), start: get("start"), count: get("count") };
    let crc = u32::try_from(get("crc")).unwrap();
    (extent.count > 0).then(|| Blob { extent, len: get("len"), crc })
}
