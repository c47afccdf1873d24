//! Damage of every kind at random, several at once: no panic, a strict result, and a report that is true.

use std::ops::Range;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::judge::{repaired, unmarked};
use crate::samples::{Sample, small};

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(small);

/// One damage, with places in parts of the whole.
#[derive(Clone, Debug)]
enum Damage {
    Zeros(f64, usize),
    Ones(f64, usize),
    Noise(f64, usize, u64),
    /// A sector over another one.
    Copy(f64, f64),
    Swap(f64, f64),
    Cut(f64),
    /// Bytes put in, so that all behind them moves.
    Insert(f64, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let len = prop_oneof![1_usize..16, 16_usize..600, 600_usize..9000];
    prop_oneof![
        3 => (0.0..1.0, len.clone()).prop_map(|(at, len)| Damage::Zeros(at, len)),
        3 => (0.0..1.0, len.clone()).prop_map(|(at, len)| Damage::Ones(at, len)),
        3 => (0.0..1.0, len.clone(), any::<u64>()).prop_map(|(at, len, seed)| Damage::Noise(at, len, seed)),
        1 => (0.0..1.0, 0.0..1.0).prop_map(|(from, to)| Damage::Copy(from, to)),
        1 => (0.0..1.0, 0.0..1.0).prop_map(|(one, other)| Damage::Swap(one, other)),
        1 => (0.0..1.0).prop_map(Damage::Cut),
        1 => (0.0..1.0, len).prop_map(|(at, len)| Damage::Insert(at, len)),
    ]
}

#[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "any place will do")]
fn place(part: f64, len: usize) -> usize {
    // Metadata lies at the front of most files: more damage there.
    ((part * part * part * len as f64) as usize).min(len)
}

/// Does the damage; gives the bytes that it touched.
fn apply(damage: &Damage, bytes: &mut Vec<u8>, sector: usize) -> Range<usize> {
    let range = |at: f64, len: usize, bytes: &[u8]| {
        let at = place(at, bytes.len());
        at..(at + len).min(bytes.len())
    };
    match *damage {
        Damage::Zeros(at, len) => {
            let range = range(at, len, bytes);
            bytes[range.clone()].fill(0);
            range
        }
        Damage::Ones(at, len) => {
            let range = range(at, len, bytes);
            bytes[range.clone()].fill(0xFF);
            range
        }
        Damage::Noise(at, len, seed) => {
            let range = range(at, len, bytes);
            let mut state = seed | 1;
            for byte in &mut bytes[range.clone()] {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = (state >> 24) as u8;
            }
            range
        }
        Damage::Copy(from, to) => {
            let whole = bytes.len() / sector * sector;
            let (from, to) =
                (place(from, whole) / sector * sector, place(to, whole) / sector * sector);
            if from.max(to) + sector <= whole {
                bytes.copy_within(from..from + sector, to);
            }
            to..to + sector
        }
        Damage::Swap(one, other) => {
            let whole = bytes.len() / sector * sector;
            let (one, other) =
                (place(one, whole) / sector * sector, place(other, whole) / sector * sector);
            if one.max(other) + sector <= whole {
                for at in 0..sector {
                    bytes.swap(one + at, other + at);
                }
            }
            one.min(other)..one.max(other) + sector
        }
        Damage::Cut(at) => {
            let at = place(at, bytes.len());
            bytes.truncate(at);
            at..usize::MAX
        }
        Damage::Insert(at, len) => {
            let at = place(at, bytes.len());
            bytes.splice(at..at, std::iter::repeat_n(0xA5, len));
            at..usize::MAX
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn damage_at_random_gives_a_strict_file(
        which in 0_usize..4,
        damages in proptest::collection::vec(damage(), 1..6),
    ) {
        let sample = &SAMPLES[which];
        let mut bytes = sample.bytes.clone();
        for damage in &damages {
            apply(damage, &mut bytes, sample.sector_bytes());
        }
        if let Err(complaint) = repaired(&bytes) {
            prop_assert!(false, "{complaint}");
        }
    }

    #[test]
    fn one_overwriting_at_random_gives_a_report_that_is_true(
        which in 0_usize..4,
        damage in damage().prop_filter("overwriting", |damage| {
            matches!(damage, Damage::Zeros(..) | Damage::Ones(..) | Damage::Noise(..))
        }),
    ) {
        let sample = &SAMPLES[which];
        let mut bytes = sample.bytes.clone();
        let touched = apply(&damage, &mut bytes, sample.sector_bytes());
        match repaired(&bytes) {
            Ok(Some(repaired)) => {
                let complaints = unmarked(&repaired, sample, &[touched]);
                prop_assert!(complaints.is_empty(), "{complaints:?}\n{}", repaired.report);
            }
            Ok(None) => {}
            Err(complaint) => prop_assert!(false, "{complaint}"),
        }
    }

    #[test]
    fn bytes_at_random_end_in_an_error_or_a_strict_file(
        bytes in proptest::collection::vec(any::<u8>(), 0..4000),
        version in any::<bool>(),
    ) {
        let mut file = SAMPLES[usize::from(version)].bytes[..512].to_vec();
        file.extend(&bytes);
        for bytes in [bytes, file] {
            if let Err(complaint) = repaired(&bytes) {
                prop_assert!(false, "{complaint}");
            }
        }
    }
}
