//! The judge's second half: the directory, its entries, and their streams. [MS-CFB] 2.6

use super::inspect::Judge;
use super::tree::{Node, siblings};
use super::{Account, CUTOFF, END, FREE, Item, MINI, NOTHING, Owner, RawSource, SLOT, entry, kind};

impl<R: RawSource + ?Sized> Judge<'_, R> {
    /// The tree, the entries and their streams. [MS-CFB] 2.6
    pub(super) fn directory(&mut self, slots: &[u8], nodes: &[Node], account: &mut Account) {
        let mut visited = vec![false; nodes.len()];
        visited[0] = true;
        let root = item_at(slots, 0, String::new());
        self.expect("kind of slot 0", root.kind, kind::ROOT);
        self.expect(
            "name of slot 0",
            String::from_utf16_lossy(&nodes[0].name),
            "Root Entry".to_owned(),
        );
        self.expect("root size in mini sectors", root.len % MINI, 0);
        account.mini_stream = self.take("mini stream", root.start, Owner::MiniStream);
        self.expect(
            "sectors of the mini stream",
            account.mini_stream.len() as u64,
            root.len.div_ceil(self.sector_bytes),
        );
        let minis = usize::try_from(root.len / MINI).unwrap();
        self.expect("cells for every mini sector", account.mini_fat.len() >= minis, true);
        let past = account.mini_fat.iter().skip(minis).all(|&cell| cell == FREE);
        self.expect("MiniFAT cells past the mini stream are free", past, true);
        let mut mini_owners = vec![Owner::Nobody; minis];

        let mut stack = vec![root];
        while let Some(mut item) = stack.pop() {
            let at = item.slot as usize * SLOT;
            let slot = &slots[at..at + SLOT];
            self.slot_rules(slot, &item);
            let child =
                u32::from_le_bytes(slot[entry::CHILD..entry::CHILD + 4].try_into().unwrap());
            if item.kind == kind::STREAM {
                item.chain = self.stream(&item, account, &mut mini_owners);
            } else {
                let tree = siblings(nodes, child, &mut visited);
                account.deepest = account.deepest.max(tree.depth);
                self.complaints.extend(tree.complaints);
                for &below in tree.in_order.iter().rev() {
                    let name = String::from_utf16_lossy(&nodes[below as usize].name);
                    let path = if item.slot == 0 { name } else { format!("{}/{name}", item.path) };
                    stack.push(item_at(slots, below, path));
                }
            }
            account.items.push(item);
        }
        for (slot, bytes) in slots.chunks(SLOT).enumerate().filter(|(slot, _)| !visited[*slot]) {
            let mut empty = [0; SLOT];
            empty[entry::LEFT..entry::CLSID].fill(0xFF);
            self.expect(&format!("unreached slot {slot} is empty"), bytes == empty, true);
        }
        for (mini, owner) in
            mini_owners.iter().enumerate().filter(|(_, owner)| **owner == Owner::Nobody)
        {
            self.expect(
                &format!("MiniFAT cell {mini} of {owner:?}"),
                account.mini_fat.get(mini).copied(),
                Some(FREE),
            );
        }
    }

    /// The fields of one used slot. [MS-CFB] 2.6.1 to 2.6.3
    fn slot_rules(&mut self, slot: &[u8], item: &Item) {
        let path = &item.path;
        let len =
            usize::from(u16::from_le_bytes([slot[entry::NAME_LEN], slot[entry::NAME_LEN + 1]]));
        self.expect(
            &format!("name length of {path}, {len}, is possible"),
            len % 2 == 0 && (4..=64).contains(&len),
            true,
        );
        let name = &slot[entry::NAME..entry::NAME_LEN];
        let end = len.clamp(2, 64) - 2;
        self.expect(
            &format!("zeros after the name of {path}"),
            name[end..].iter().all(|&byte| byte == 0),
            true,
        );
        let units = name[..end].chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let bad =
            units.clone().filter(|unit| matches!(unit, 0 | 0x2F | 0x5C | 0x3A | 0x21)).count();
        self.expect(&format!("forbidden characters in the name of {path}"), bad, 0);
        match item.kind {
            kind::STREAM => {
                self.expect(&format!("CLSID of stream {path}"), item.clsid, [0; 16]);
                self.expect(
                    &format!("times of stream {path}"),
                    (item.created, item.modified),
                    (0, 0),
                );
                let child = &slot[entry::CHILD..entry::CLSID];
                self.expect(
                    &format!("child of stream {path}"),
                    child.to_vec(),
                    NOTHING.to_le_bytes().to_vec(),
                );
            }
            kind::STORAGE => {
                self.expect(
                    &format!("start and size of storage {path}"),
                    (item.start, item.len),
                    (0, 0),
                );
            }
            kind::ROOT => self.expect("root's creation time", (item.slot, item.created), (0, 0)),
            other => self.complain(format!("{path} is of kind {other}")),
        }
    }

    /// Takes the sectors or mini sectors of a stream.
    fn stream(&mut self, item: &Item, account: &Account, mini_owners: &mut [Owner]) -> Vec<u32> {
        let what = format!("stream {}", item.path);
        if item.len == 0 {
            self.expect(&format!("start of the empty {what}"), item.start, END);
            return Vec::new();
        }
        if account.major == 3 {
            self.expect(&format!("size of {what} fits version 3"), item.len <= 0x8000_0000, true);
        }
        if item.len >= CUTOFF {
            let chain = self.take(&what, item.start, Owner::Stream(item.slot));
            self.expect(
                &format!("sectors of {what}"),
                chain.len() as u64,
                item.len.div_ceil(self.sector_bytes),
            );
            return chain;
        }
        let mut chain = Vec::new();
        let mut next = item.start;
        while let Some(owner) = mini_owners.get_mut(next as usize) {
            if *owner != Owner::Nobody {
                let complaint = format!("mini sector {next} belongs to {owner:?} and to {what}");
                self.complain(complaint);
                break;
            }
            *owner = Owner::Stream(item.slot);
            chain.push(next);
            next = account.mini_fat.get(next as usize).copied().unwrap_or(FREE);
        }
        self.expect(&format!("end of the mini chain of {what}"), next, END);
        self.expect(
            &format!("mini sectors of {what}"),
            chain.len() as u64,
            item.len.div_ceil(MINI),
        );
        chain
    }
}

fn item_at(slots: &[u8], slot: u32, path: String) -> Item {
    let bytes = &slots[slot as usize * SLOT..][..SLOT];
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    Item {
        slot,
        path,
        kind: bytes[entry::KIND],
        len: u64_at(entry::SIZE),
        start: u32_at(entry::START),
        chain: Vec::new(),
        state: u32_at(entry::STATE),
        created: u64_at(entry::CREATED),
        modified: u64_at(entry::MODIFIED),
        clsid: bytes[entry::CLSID..entry::STATE].try_into().unwrap(),
    }
}
