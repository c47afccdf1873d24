//! A builder of sound compound files of either version, as a list of entries.

use super::{
    CUTOFF, DIFAT, END, FAT, FREE, IN_HEADER, Image, MINI, NOTHING, SLOT, colour, entry, header,
    kind, n32, name_order, units,
};

/// Entries to be put into a file. Paths are given as written here; a name may also be given as raw units.
pub(crate) struct Build {
    version: u16,
    spare_slots: usize,
    nodes: Vec<Node>,
}

struct Node {
    path: String,
    name: Vec<u16>,
    parent: usize,
    kind: u8,
    data: Vec<u8>,
}

impl Build {
    pub(crate) fn new(version: u16) -> Self {
        let root = Node {
            path: String::new(),
            name: units("Root Entry"),
            parent: usize::MAX,
            kind: kind::ROOT,
            data: Vec::new(),
        };
        Self { version, spare_slots: 0, nodes: vec![root] }
    }

    /// Has the directory hold at least this many unused slots.
    pub(crate) fn spare_slots(mut self, count: usize) -> Self {
        self.spare_slots = count;
        self
    }

    pub(crate) fn storage(self, path: &str) -> Self {
        let name = units(path.rsplit('/').next().unwrap());
        self.add(path, name, kind::STORAGE, Vec::new())
    }

    pub(crate) fn stream(self, path: &str, data: &[u8]) -> Self {
        let name = units(path.rsplit('/').next().unwrap());
        self.add(path, name, kind::STREAM, data.to_vec())
    }

    /// A storage that is called `name` in the file and `path` in the test.
    pub(crate) fn storage_named(self, path: &str, name: &[u16]) -> Self {
        self.add(path, name.to_vec(), kind::STORAGE, Vec::new())
    }

    /// A stream that is called `name` in the file and `path` in the test.
    pub(crate) fn stream_named(self, path: &str, name: &[u16], data: &[u8]) -> Self {
        self.add(path, name.to_vec(), kind::STREAM, data.to_vec())
    }

    fn add(mut self, path: &str, name: Vec<u16>, kind: u8, data: Vec<u8>) -> Self {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent =
            self.nodes.iter().position(|node| node.path == above).expect("the storage comes first");
        self.nodes.push(Node { path: path.to_owned(), name, parent, kind, data });
        self
    }

    /// The file: header, FAT, DIFAT, directory, `MiniFAT`, mini stream, then the large streams, each in one run.
    pub(crate) fn image(&self) -> Image {
        let sector_bytes: usize = if self.version == 3 { 512 } else { 4096 };
        let small = |node: &Node| !node.data.is_empty() && (node.data.len() as u64) < CUTOFF;
        let minis: usize =
            self.nodes.iter().filter(|n| small(n)).map(|n| n.data.len().div_ceil(64)).sum();
        let large: usize = self
            .nodes
            .iter()
            .filter(|n| n.data.len() as u64 >= CUTOFF)
            .map(|n| n.data.len().div_ceil(sector_bytes))
            .sum();
        let dir = ((self.nodes.len() + self.spare_slots) * SLOT).div_ceil(sector_bytes);
        let mini_fat = (minis * 4).div_ceil(sector_bytes);
        let mini_stream = (minis * 64).div_ceil(sector_bytes);
        let (mut fat, mut difat) = (1, 0);
        while (fat + difat + dir + mini_fat + mini_stream + large) * 4 > fat * sector_bytes {
            fat += 1;
            difat = fat.saturating_sub(IN_HEADER).div_ceil(sector_bytes / 4 - 1);
        }

        let mut next = 0;
        let mut take = |count: usize| {
            let run: Vec<u32> = (next..next + n32(count)).collect();
            next += n32(count);
            run
        };
        let mut image = Image {
            fat: take(fat),
            difat: take(difat),
            dir: take(dir),
            mini_fat: take(mini_fat),
            mini_stream: take(mini_stream),
            bytes: vec![0; sector_bytes * (1 + fat + difat + dir + mini_fat + mini_stream + large)],
            sector_bytes,
            slots: self
                .nodes
                .iter()
                .enumerate()
                .map(|(slot, node)| (node.path.clone(), slot))
                .collect(),
        };
        self.write_header(&mut image);
        write_tables(&mut image);
        for slot in 0..image.slot_count() {
            for field in [entry::LEFT, entry::RIGHT, entry::CHILD] {
                image.put_u32(image.slot_at(slot) + field, NOTHING);
            }
        }
        let mut next_mini = 0;
        for (slot, node) in self.nodes.iter().enumerate() {
            let start = match node.kind {
                kind::ROOT => image.mini_stream.first().copied().unwrap_or(END),
                kind::STORAGE => 0,
                _ if node.data.is_empty() => END,
                _ if small(node) => put_small(&mut image, &mut next_mini, &node.data),
                _ => {
                    put_large(&mut image, &take(node.data.len().div_ceil(sector_bytes)), &node.data)
                }
            };
            let len_bytes = if slot == 0 { minis * 64 } else { node.data.len() };
            let at = image.slot_at(slot);
            for (nth, unit) in node.name.iter().enumerate() {
                image.put_u16(at + entry::NAME + 2 * nth, *unit);
            }
            image.put_u16(at + entry::NAME_LEN, u16::try_from(2 * node.name.len() + 2).unwrap());
            image.put(at + entry::KIND, &[node.kind]);
            image.put(at + entry::COLOUR, &[colour::BLACK]);
            image.put_u32(at + entry::START, start);
            image.put_u64(at + entry::SIZE, len_bytes as u64);
        }
        for slot in 0..self.nodes.len() {
            self.write_children(&mut image, slot);
        }
        image
    }

    fn write_header(&self, image: &mut Image) {
        image.put(header::SIGNATURE, &[0xD0, 0xCF, 0x11, 0xE0, 0xA1, 0xB1, 0x1A, 0xE1]);
        image.put_u16(header::MINOR, 0x3E);
        image.put_u16(header::MAJOR, self.version);
        image.put_u16(header::BYTE_ORDER, 0xFFFE);
        image.put_u16(header::SHIFT, if self.version == 3 { 9 } else { 12 });
        image.put_u16(header::MINI_SHIFT, 6);
        image.put_u32(header::DIR_COUNT, if self.version == 3 { 0 } else { n32(image.dir.len()) });
        image.put_u32(header::FAT_COUNT, n32(image.fat.len()));
        image.put_u32(header::FIRST_DIR, image.dir[0]);
        image.put_u32(header::CUTOFF, 4096);
        image.put_u32(header::FIRST_MINI_FAT, image.mini_fat.first().copied().unwrap_or(END));
        image.put_u32(header::MINI_FAT_COUNT, n32(image.mini_fat.len()));
        image.put_u32(header::FIRST_DIFAT, image.difat.first().copied().unwrap_or(END));
        image.put_u32(header::DIFAT_COUNT, n32(image.difat.len()));
    }

    /// Links the children of `storage` as a balanced tree.
    fn write_children(&self, image: &mut Image, storage: usize) {
        let mut children: Vec<usize> =
            (1..self.nodes.len()).filter(|&n| self.nodes[n].parent == storage).collect();
        children.sort_by(|&a, &b| name_order(&self.nodes[a].name, &self.nodes[b].name));
        let child = subtree(image, &children, 0, (children.len() + 1).ilog2());
        image.put_u32(image.slot_at(storage) + entry::CHILD, child);
    }
}

/// Links `sorted` below its middle; what is deeper than the last full level is red.
fn subtree(image: &mut Image, sorted: &[usize], level: u32, full_levels: u32) -> u32 {
    if sorted.is_empty() {
        return NOTHING;
    }
    let middle = sorted.len() / 2;
    let left = subtree(image, &sorted[..middle], level + 1, full_levels);
    let right = subtree(image, &sorted[middle + 1..], level + 1, full_levels);
    let at = image.slot_at(sorted[middle]);
    image.put_u32(at + entry::LEFT, left);
    image.put_u32(at + entry::RIGHT, right);
    image
        .put(at + entry::COLOUR, &[if level >= full_levels { colour::RED } else { colour::BLACK }]);
    n32(sorted[middle])
}

fn write_tables(image: &mut Image) {
    let (fat, difat) = (image.fat.clone(), image.difat.clone());
    for sector in fat.iter().chain(&image.mini_fat.clone()) {
        let at = image.sector_at(*sector);
        image.bytes[at..at + image.sector_bytes].fill(0xFF);
    }
    for chain in [image.dir.clone(), image.mini_fat.clone(), image.mini_stream.clone()] {
        if !chain.is_empty() {
            image.link(&chain);
        }
    }
    for nth in 0..IN_HEADER {
        image.put_u32(Image::difat_at(nth), fat.get(nth).copied().unwrap_or(FREE));
    }
    let per_sector = image.sector_bytes / 4 - 1;
    for (nth, sector) in difat.iter().enumerate() {
        let at = image.sector_at(*sector);
        for field in 0..per_sector {
            let named = fat.get(IN_HEADER + nth * per_sector + field).copied().unwrap_or(FREE);
            image.put_u32(at + 4 * field, named);
        }
        image.put_u32(at + 4 * per_sector, difat.get(nth + 1).copied().unwrap_or(END));
        image.put_cell(*sector, DIFAT);
    }
    for sector in fat {
        image.put_cell(sector, FAT);
    }
}

fn put_small(image: &mut Image, next_mini: &mut u32, data: &[u8]) -> u32 {
    let start = *next_mini;
    let count = n32(data.len().div_ceil(64));
    let per_sector = image.sector_bytes / 64;
    for (mini, piece) in (start..).zip(data.chunks(usize::try_from(MINI).unwrap())) {
        let sector = image.mini_stream[mini as usize / per_sector];
        image.put(image.sector_at(sector) + mini as usize % per_sector * 64, piece);
        image.put_mini_cell(mini, if mini + 1 == start + count { END } else { mini + 1 });
    }
    *next_mini += count;
    start
}

fn put_large(image: &mut Image, run: &[u32], data: &[u8]) -> u32 {
    image.link(run);
    image.put(image.sector_at(run[0]), data);
    run[0]
}
