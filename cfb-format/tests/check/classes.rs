//! Why `check` and the audit may differ: kinds of difference, each with how to tell it and the reason.

use cfb_format::FindingCode;

use crate::facts::Facts;

/// A kind of difference.
pub(crate) struct Class {
    pub(crate) why: &'static str,
    pub(crate) is_it: fn(&Facts) -> bool,
}

macro_rules! classes {
    ($($name:ident: $why:literal, $is_it:expr;)+) => {
        $(pub(crate) const $name: Class = Class { why: $why, is_it: $is_it };)+
    };
}

classes! {
    NO_FAULT: "no rule of the specification", |_| true;
    NOT_AUDITED: "the audit does not look for it", |_| true;
    TRANSACTIONS: "2.2 lets a writer count its saves in the transaction signature", |_| true;
    UNJUDGED: "the audit judges every slot and follows every chain, `check` those of entries that a storage holds; \
        the others are findings by themselves", |facts| {
            facts.found(&["dir.orphan", "dir.loop", "dir.link", "dir.unused-reached"])
        };
    CUT_DIRECTORY: "the directory's last sector is cut short: `check` reads what is there, and the rest as zeros",
        |facts| facts.found(&["file.partial-sector"]) && facts.has_cut_directory();
    BEHIND_COUNT: "DIFAT entries behind the header's number of FAT sectors: told as `difat.padding` alone, \
        the audit counts them", |facts| facts.found(&["difat.padding"]);
    NO_SECTOR: "DIFAT entries that name no sector: told as `difat.entry` too, the audit counts them",
        |facts| facts.found(&["difat.entry"]);
    MARKED: "sectors with the mark of a FAT sector: told as `fat.marked-wrongly` alone",
        |facts| facts.found(&["fat.marked-wrongly"]);
    OWN_SECTORS: "a chain runs into a sector of the FAT: the audit compares chains only",
        |facts| facts.audited(&["T_fat_sector_not_marked_FATSECT"]);
    SHORT_MINI_STREAM: "mini chains count as far as the mini stream goes, the audit follows the MiniFAT alone",
        |facts| facts.found(&["ministream.short"]);
    ROUNDED: "the mini stream's size is rounded up to a mini sector, by the audit down",
        |facts| facts.found(&["root.size"]);
    LONG_NAME: "the name's length takes in what is behind \"Root Entry\"",
        |facts| facts.found(&["entry.name-terminator"]) && facts.slots(FindingCode::EntryNameTerminator).any(|slot| slot == 0);
    START_FREE: "a root without mini stream that starts at 0xFFFFFFFF: as good a \"none\" as 0xFFFFFFFE",
        |facts| facts.slot(0).get(0x74..0x78) == Some(&[0xFF; 4]);
    NO_TYPE: "slots of a type that does not exist: told as `dir.unused-slot`, since they hold no entry",
        |facts| facts.slots(FindingCode::DirUnusedSlot).any(|slot| {
            facts.slot(slot).get(0x42).is_some_and(|kind| !(0..=5).contains(kind))
        });
    UNUSED_REST: "the audit does not look at links, start and size of an unused slot",
        |facts| facts.slots(FindingCode::DirUnusedSlot).all(|slot| {
            // Name, its length and type are blank.
            facts.slot(slot).get(..0x43).is_some_and(|part| part.iter().all(|&byte| byte == 0))
        });
    SECOND_ROOT: "the root reached from within: told as `dir.loop`",
        |facts| facts.slots(FindingCode::DirLoop).any(|slot| slot == 0);
    ROOT_IN_STORAGE: "another root entry is taken as a storage",
        |facts| facts.found(&["root.type of another entry"]);
    NULLS: "a length that takes in nulls behind the name: told by the audit as a null inside it",
        |facts| facts.audited(&["N_embedded_nul"]);
    ROOT_COLOUR: "the root's own colour, which the audit leaves out",
        |facts| facts.slots(FindingCode::EntryColor).all(|slot| slot == 0);
    OTHER_START: "the audit looks for the start 0 only", |_| true;
    NO_END: "a chain that goes on for ever or astray is as long as it goes",
        |facts| facts.audited(&["S_chain_loop", "S_chain_range", "S_mini_chain_loop", "S_mini_chain_range"]);
    CUT_STREAM: "the stream's last sector is cut short by the end of the file, which the audit tells of the file alone",
        |facts| facts.audited(&["F_truncated_last_sector"]);
    EVEN: "a tree that is black all over is legal where its paths are equally long",
        |_| true;
    UNEVEN: "the audit looks for trees that are black all over only", |_| true;
}
