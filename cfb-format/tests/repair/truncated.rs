//! A file cut at every sector: what is before the cut is kept, what is behind is named as missing.

use cfb_format::Recovery;

use crate::judge::{expect_none, judge, repaired};
use crate::samples::{plain, small};

#[test]
fn what_lies_before_the_cut_comes_back() {
    let (mut cases, mut complaints) = (0, Vec::new());
    for sample in small() {
        // Files of the library have their tables anywhere; these have them first.
        let tables_first = sample.name.starts_with("plain");
        let sectors = sample.account.owners.len();
        for kept in 0..sectors {
            for more_bytes in [0, 100] {
                let end = (kept + 1) * sample.sector_bytes() + more_bytes;
                let damaged = &sample.bytes[..end.min(sample.bytes.len())];
                let cut = end..usize::MAX;
                let metadata = sample.directory().last().unwrap() + sample.sector_bytes();
                let expected = |_: &str| tables_first && end >= metadata;
                let what = format!("cut to {kept} sectors and {more_bytes} bytes");
                cases += 1;
                complaints.extend(judge(
                    &sample,
                    damaged,
                    std::slice::from_ref(&cut),
                    &what,
                    expected,
                ));
            }
        }
    }
    expect_none(&complaints, cases);
}

#[test]
fn missing_ranges_are_exact() {
    let sample = plain(3);
    let path = "Docs/Deep/Deeper/largest";
    let places = sample.places(path);
    let cut = places[places.len() / 2].0 + 100;
    let repaired = repaired(&sample.bytes[..cut]).unwrap().unwrap();
    let (stream, content) = repaired
        .streams
        .iter()
        .find(|(stream, _)| stream.path() == format!("/{path}"))
        .expect("the stream is there");
    let kept = places.len() / 2 * 512 + 100;
    assert_eq!(stream.recovery(), Recovery::Partial);
    assert_eq!(stream.missing().iter().collect::<Vec<_>>(), [&(kept as u64..70_000)]);
    let original = &sample.streams.iter().find(|(p, _)| p == path).unwrap().1;
    assert!(content[..kept] == original[..kept]);
    assert!(content[kept..].iter().all(|&byte| byte == 0) && content.len() == 70_000);
}
