//! Upper-casing of one UTF-16 code unit, as the name order wants it. [MS-CFB] 2.6.4
//!
//! A letter to whoever changes this next: the table is frozen. Two names that
//! are equal under it are one name, and the order of every sibling tree on disk
//! follows from it, so it must not move with the compiler's Unicode version.
//!
//! The specification upper-cases by the *simple case foldings of Unicode 5.0,
//! turned around*, with the exceptions of its appendix (Windows Vista and
//! later). That is nearly the simple upper-case mapping, but not quite:
//!
//! - what folds to a letter without being its capital stays itself: the micro
//!   sign, the long s, the Greek symbol letters, the titlecase digraphs; so
//!   does the dotless i, which folds to nothing;
//! - U+023A and U+023E map to their small letters U+2C65 and U+2C66, and U+1FCC
//!   to U+1FC3;
//! - letters that got their partner after Unicode 5.0 stay themselves, such as
//!   the Georgian ones. The specification lets a later Unicode version in, but
//!   Windows then does not find the name;
//! - surrogates stay themselves, for each unit is looked at alone.
//!
//! The ranges below came from the Unicode Character Database 14.0, cut down to
//! what 5.0 knew by the age of both letters.

/// `(first, last, stride, upper case of first)`: every `stride`th unit from
/// `first` to `last` moves by the same distance.
const RANGES: &[(u16, u16, u16, u16)] = &[
    (0x0061, 0x007A, 1, 0x0041),
    (0x00E0, 0x00F6, 1, 0x00C0),
    (0x00F8, 0x00FE, 1, 0x00D8),
    (0x00FF, 0x00FF, 1, 0x0178),
    (0x0101, 0x012F, 2, 0x0100),
    (0x0133, 0x0137, 2, 0x0132),
    (0x013A, 0x0148, 2, 0x0139),
    (0x014B, 0x0177, 2, 0x014A),
    (0x017A, 0x017E, 2, 0x0179),
    (0x0180, 0x0180, 1, 0x0243),
    (0x0183, 0x0185, 2, 0x0182),
    (0x0188, 0x0188, 1, 0x0187),
    (0x018C, 0x018C, 1, 0x018B),
    (0x0192, 0x0192, 1, 0x0191),
    (0x0195, 0x0195, 1, 0x01F6),
    (0x0199, 0x0199, 1, 0x0198),
    (0x019A, 0x019A, 1, 0x023D),
    (0x019E, 0x019E, 1, 0x0220),
    (0x01A1, 0x01A5, 2, 0x01A0),
    (0x01A8, 0x01A8, 1, 0x01A7),
    (0x01AD, 0x01AD, 1, 0x01AC),
    (0x01B0, 0x01B0, 1, 0x01AF),
    (0x01B4, 0x01B6, 2, 0x01B3),
    (0x01B9, 0x01B9, 1, 0x01B8),
    (0x01BD, 0x01BD, 1, 0x01BC),
    (0x01BF, 0x01BF, 1, 0x01F7),
    (0x01C6, 0x01C6, 1, 0x01C4),
    (0x01C9, 0x01C9, 1, 0x01C7),
    (0x01CC, 0x01CC, 1, 0x01CA),
    (0x01CE, 0x01DC, 2, 0x01CD),
    (0x01DD, 0x01DD, 1, 0x018E),
    (0x01DF, 0x01EF, 2, 0x01DE),
    (0x01F3, 0x01F3, 1, 0x01F1),
    (0x01F5, 0x01F5, 1, 0x01F4),
    (0x01F9, 0x021F, 2, 0x01F8),
    (0x0223, 0x0233, 2, 0x0222),
    (0x023A, 0x023A, 1, 0x2C65),
    (0x023C, 0x023C, 1, 0x023B),
    (0x023E, 0x023E, 1, 0x2C66),
    (0x0242, 0x0242, 1, 0x0241),
    (0x0247, 0x024F, 2, 0x0246),
    (0x0253, 0x0253, 1, 0x0181),
    (0x0254, 0x0254, 1, 0x0186),
    (0x0256, 0x0257, 1, 0x0189),
    (0x0259, 0x0259, 1, 0x018F),
    (0x025B, 0x025B, 1, 0x0190),
    (0x0260, 0x0260, 1, 0x0193),
    (0x0263, 0x0263, 1, 0x0194),
    (0x0268, 0x0268, 1, 0x0197),
    (0x0269, 0x0269, 1, 0x0196),
    (0x026B, 0x026B, 1, 0x2C62),
    (0x026F, 0x026F, 1, 0x019C),
    (0x0272, 0x0272, 1, 0x019D),
    (0x0275, 0x0275, 1, 0x019F),
    (0x027D, 0x027D, 1, 0x2C64),
    (0x0280, 0x0280, 1, 0x01A6),
    (0x0283, 0x0283, 1, 0x01A9),
    (0x0288, 0x0288, 1, 0x01AE),
    (0x0289, 0x0289, 1, 0x0244),
    (0x028A, 0x028B, 1, 0x01B1),
    (0x028C, 0x028C, 1, 0x0245),
    (0x0292, 0x0292, 1, 0x01B7),
    (0x037B, 0x037D, 1, 0x03FD),
    (0x03AC, 0x03AC, 1, 0x0386),
    (0x03AD, 0x03AF, 1, 0x0388),
    (0x03B1, 0x03C1, 1, 0x0391),
    (0x03C2, 0x03C2, 1, 0x03A3),
    (0x03C3, 0x03CB, 1, 0x03A3),
    (0x03CC, 0x03CC, 1, 0x038C),
    (0x03CD, 0x03CE, 1, 0x038E),
    (0x03D9, 0x03EF, 2, 0x03D8),
    (0x03F2, 0x03F2, 1, 0x03F9),
    (0x03F8, 0x03F8, 1, 0x03F7),
    (0x03FB, 0x03FB, 1, 0x03FA),
    (0x0430, 0x044F, 1, 0x0410),
    (0x0450, 0x045F, 1, 0x0400),
    (0x0461, 0x0481, 2, 0x0460),
    (0x048B, 0x04BF, 2, 0x048A),
    (0x04C2, 0x04CE, 2, 0x04C1),
    (0x04CF, 0x04CF, 1, 0x04C0),
    (0x04D1, 0x0513, 2, 0x04D0),
    (0x0561, 0x0586, 1, 0x0531),
    (0x1D7D, 0x1D7D, 1, 0x2C63),
    (0x1E01, 0x1E95, 2, 0x1E00),
    (0x1EA1, 0x1EF9, 2, 0x1EA0),
    (0x1F00, 0x1F07, 1, 0x1F08),
    (0x1F10, 0x1F15, 1, 0x1F18),
    (0x1F20, 0x1F27, 1, 0x1F28),
    (0x1F30, 0x1F37, 1, 0x1F38),
    (0x1F40, 0x1F45, 1, 0x1F48),
    (0x1F51, 0x1F57, 2, 0x1F59),
    (0x1F60, 0x1F67, 1, 0x1F68),
    (0x1F70, 0x1F71, 1, 0x1FBA),
    (0x1F72, 0x1F75, 1, 0x1FC8),
    (0x1F76, 0x1F77, 1, 0x1FDA),
    (0x1F78, 0x1F79, 1, 0x1FF8),
    (0x1F7A, 0x1F7B, 1, 0x1FEA),
    (0x1F7C, 0x1F7D, 1, 0x1FFA),
    (0x1F80, 0x1F87, 1, 0x1F88),
    (0x1F90, 0x1F97, 1, 0x1F98),
    (0x1FA0, 0x1FA7, 1, 0x1FA8),
    (0x1FB0, 0x1FB1, 1, 0x1FB8),
    (0x1FB3, 0x1FB3, 1, 0x1FBC),
    (0x1FCC, 0x1FCC, 1, 0x1FC3),
    (0x1FD0, 0x1FD1, 1, 0x1FD8),
    (0x1FE0, 0x1FE1, 1, 0x1FE8),
    (0x1FE5, 0x1FE5, 1, 0x1FEC),
    (0x1FF3, 0x1FF3, 1, 0x1FFC),
    (0x214E, 0x214E, 1, 0x2132),
    (0x2170, 0x217F, 1, 0x2160),
    (0x2184, 0x2184, 1, 0x2183),
    (0x24D0, 0x24E9, 1, 0x24B6),
    (0x2C30, 0x2C5E, 1, 0x2C00),
    (0x2C61, 0x2C61, 1, 0x2C60),
    (0x2C68, 0x2C6C, 2, 0x2C67),
    (0x2C76, 0x2C76, 1, 0x2C75),
    (0x2C81, 0x2CE3, 2, 0x2C80),
    (0x2D00, 0x2D25, 1, 0x10A0),
    (0xFF41, 0xFF5A, 1, 0xFF21),
];

/// Units of a block. 64 keeps both levels together under 6 KiB.
const BLOCK: usize = 64;

/// How far each unit of one block moves, modulo 2^16.
type Block = [u16; BLOCK];

/// Blocks in which some unit moves, and one in which none does, shared by all others.
const BLOCKS_COUNT: usize = 1 + moving_blocks();

/// Block of each unit, by its upper ten bits. Block 0 moves nothing.
static BLOCK_OF: [u8; 0x1_0000 / BLOCK] = TABLE.0;
static BLOCKS: [Block; BLOCKS_COUNT] = TABLE.1;

const TABLE: ([u8; 0x1_0000 / BLOCK], [Block; BLOCKS_COUNT]) = expand();

const fn block_has_moves() -> [bool; 0x1_0000 / BLOCK] {
    let mut moves = [false; 0x1_0000 / BLOCK];
    let mut at = 0;
    while at < RANGES.len() {
        let (first, last, stride, _) = RANGES[at];
        let mut unit = first as usize;
        while unit <= last as usize {
            moves[unit / BLOCK] = true;
            unit += stride as usize;
        }
        at += 1;
    }
    moves
}

const fn moving_blocks() -> usize {
    let moves = block_has_moves();
    let (mut block, mut count) = (0, 0);
    while block < moves.len() {
        count += moves[block] as usize;
        block += 1;
    }
    count
}

const fn expand() -> ([u8; 0x1_0000 / BLOCK], [Block; BLOCKS_COUNT]) {
    let moves = block_has_moves();
    let mut block_of = [0; 0x1_0000 / BLOCK];
    let mut blocks = [[0; BLOCK]; BLOCKS_COUNT];
    let (mut block, mut last) = (0, 0_u8);
    while block < moves.len() {
        if moves[block] {
            last += 1; // past 255, this would not compile
            block_of[block] = last;
        }
        block += 1;
    }
    let mut at = 0;
    while at < RANGES.len() {
        let (first, last, stride, upper) = RANGES[at];
        let mut unit = first as usize;
        while unit <= last as usize {
            let cell = &mut blocks[block_of[unit / BLOCK] as usize][unit % BLOCK];
            assert!(*cell == 0, "two ranges overlap");
            *cell = upper.wrapping_sub(first);
            unit += stride as usize;
        }
        at += 1;
    }
    (block_of, blocks)
}

/// Units below this have a table of their own: the European alphabets.
const LOW_END: u16 = 0x0600;
static LOW: [u16; LOW_END as usize] = low();

const fn low() -> [u16; LOW_END as usize] {
    let mut low = [0; LOW_END as usize];
    let mut unit = 0;
    while unit < LOW_END {
        low[unit as usize] = upcase_by_block(&TABLE, unit);
        unit += 1;
    }
    low
}

const fn upcase_by_block(
    (block_of, blocks): &([u8; 0x1_0000 / BLOCK], [Block; BLOCKS_COUNT]),
    unit: u16,
) -> u16 {
    let block = block_of[unit as usize / BLOCK] as usize;
    unit.wrapping_add(blocks[block][unit as usize % BLOCK])
}

/// Units from the first to before the second have no case: the East Asian scripts.
const CASELESS: (u16, u16) = (0x2E80, 0xFF00);

const _: () = {
    let mut at = 0;
    while at < RANGES.len() {
        let (first, last, _, _) = RANGES[at];
        assert!(last < CASELESS.0 || first >= CASELESS.1, "a unit without case moves");
        at += 1;
    }
};

/// Whether it takes no table to know that a unit stands for itself.
#[inline]
pub(crate) const fn is_caseless(unit: u16) -> bool {
    unit.wrapping_sub(CASELESS.0) < CASELESS.1 - CASELESS.0
}

/// The unit that stands for `unit` where names are compared. [MS-CFB] 2.6.4
///
/// Two loads; one for European alphabets, none for ASCII and East Asian scripts.
#[inline]
pub(crate) const fn upcase(unit: u16) -> u16 {
    if unit < 0x80 {
        return unit ^ (((unit.wrapping_sub(b'a' as u16) < 26) as u16) << 5);
    }
    if unit < LOW_END {
        return LOW[unit as usize];
    }
    if is_caseless(unit) {
        return unit;
    }
    let block = BLOCK_OF[unit as usize / BLOCK] as usize;
    unit.wrapping_add(BLOCKS[block][unit as usize % BLOCK])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the specification leaves the simple upper-case mapping.
    const APPENDIX: &[(u16, u16)] = &[
        (0x023A, 0x2C65),
        (0x2C65, 0x2C65),
        (0x023E, 0x2C66),
        (0x2C66, 0x2C66),
        (0x1FC3, 0x1FC3),
        (0x1FCC, 0x1FC3),
    ];

    /// Letters that have a capital which does not fold back to them.
    const NOT_A_FOLDING: &[u16] = &[
        0x00B5, 0x0131, 0x017F, 0x01C5, 0x01C8, 0x01CB, 0x01F2, 0x0345, 0x03D0, 0x03D1, 0x03D5,
        0x03D6, 0x03F0, 0x03F1, 0x03F5, 0x1E9B, 0x1FBE,
    ];

    /// Scripts that were complete in Unicode 5.0.
    const COMPLETE: &[(u16, u16)] = &[
        (0x0000, 0x017F),
        (0x03AC, 0x03CE),
        (0x0400, 0x04FF),
        (0x0531, 0x0586),
        (0x1E00, 0x1E9B),
        (0x1EA0, 0x1EF9),
        (0x1F00, 0x1F7D),
        (0x2160, 0x2183),
        (0x24B6, 0x24E9),
        (0x2C80, 0x2CE3),
        (0xFF21, 0xFF5A),
    ];

    /// The compiler's full upper case, if it is one unit.
    fn single(unit: u16) -> Option<u16> {
        let mut upper = char::from_u32(u32::from(unit))?.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(only), None) => u16::try_from(u32::from(only)).ok(),
            _ => None,
        }
    }

    fn is_special(unit: u16) -> bool {
        APPENDIX.iter().any(|&(from, _)| from == unit) || NOT_A_FOLDING.contains(&unit)
    }

    #[test]
    fn every_mapping_is_one_the_compiler_knows_too() {
        for unit in (0..=0xFFFF).filter(|&unit| upcase(unit) != unit && !is_special(unit)) {
            let upper = upcase(unit);
            if let Some(expected) = single(unit) {
                assert_eq!(upper, expected, "U+{unit:04X}");
            } else {
                // Its full upper case has two letters, its simple one is the
                // letter that has `unit` as its lower case.
                let upper = char::from_u32(u32::from(upper)).expect("no surrogate");
                let lower: Vec<u32> = upper.to_lowercase().map(u32::from).collect();
                assert_eq!(lower, [u32::from(unit)], "U+{unit:04X}");
            }
        }
    }

    #[test]
    fn no_mapping_is_missing_in_scripts_of_unicode_5() {
        for unit in COMPLETE.iter().flat_map(|&(first, last)| first..=last) {
            if let Some(expected) = single(unit).filter(|_| !is_special(unit)) {
                assert_eq!(upcase(unit), expected, "U+{unit:04X}");
            }
        }
    }

    #[test]
    fn exceptions_of_the_appendix_hold() {
        for &(unit, upper) in APPENDIX {
            assert_eq!(upcase(unit), upper, "U+{unit:04X}");
        }
        assert_eq!(upcase(0x03C2), 0x03A3, "final sigma");
        assert_eq!(upcase(0x03C3), 0x03A3, "sigma");
        for &unit in NOT_A_FOLDING {
            assert_eq!(upcase(unit), unit, "U+{unit:04X}");
        }
    }

    #[test]
    fn surrogates_and_later_letters_stay() {
        for unit in (0xD800..=0xDFFF).chain(0x10D0..=0x10FF).chain(0xA640..=0xABFF) {
            assert_eq!(upcase(unit), unit, "U+{unit:04X}");
        }
        let sharp_s_and_friends = [0xDF, 0x149, 0x1F0, 0x390, 0x3B0, 0x587, 0x1E96, 0xFB00];
        assert!(sharp_s_and_friends.iter().all(|&unit| upcase(unit) == unit));
    }

    #[test]
    fn simple_mappings_of_letters_with_a_longer_full_one_hold() {
        for first in [0x1F80, 0x1F90, 0x1FA0] {
            for unit in first..first + 8 {
                assert_eq!(upcase(unit), unit + 8, "U+{unit:04X}");
                assert_eq!(upcase(unit + 8), unit + 8);
            }
        }
        assert_eq!(upcase(0x1FB3), 0x1FBC);
        assert_eq!(upcase(0x1FF3), 0x1FFC);
    }

    #[test]
    fn table_is_frozen() {
        let moves = (0..=0xFFFF).filter(|&unit| upcase(unit) != unit);
        assert_eq!(moves.count(), 874);
        // FNV-1a over all 65,536 results.
        let hash = (0..=0xFFFF).map(upcase).fold(0xCBF2_9CE4_8422_2325_u64, |hash, upper| {
            (hash ^ u64::from(upper)).wrapping_mul(0x0100_0000_01B3)
        });
        assert_eq!(hash, 0x6E66_8D65_943E_0601);
    }

    #[test]
    fn upper_case_is_its_own_upper_case() {
        assert!((0..=0xFFFF).all(|unit| upcase(upcase(unit)) == upcase(unit)));
    }

    #[test]
    fn table_is_small() {
        assert!(size_of_val(&BLOCK_OF) + size_of_val(&BLOCKS) < 6 << 10);
    }
}
