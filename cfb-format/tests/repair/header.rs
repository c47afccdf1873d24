//! Every byte range of the header, overwritten: nothing is lost.

use crate::judge::{expect_none, judge, overwritten};
use crate::samples::{Sample, small, with_difat};

fn overwrite_header(sample: &Sample, lengths: &[usize]) -> (usize, Vec<String>) {
    let mut complaints = Vec::new();
    let mut cases = 0;
    for &len in lengths {
        for at in (0..512).step_by(len) {
            let range = at..at + len;
            for (how, damaged) in overwritten(&sample.bytes, &range) {
                cases += 1;
                let what = format!("{how} over the header's bytes {range:?}");
                complaints.extend(judge(
                    sample,
                    &damaged,
                    std::slice::from_ref(&range),
                    &what,
                    |_| true,
                ));
            }
        }
    }
    (cases, complaints)
}

#[test]
fn an_overwritten_header_costs_nothing() {
    let (mut cases, mut complaints) = (0, Vec::new());
    for sample in small() {
        let lengths: &[usize] =
            if sample.name.starts_with("plain") { &[1, 4, 32, 512] } else { &[4, 20, 128] };
        let (more, found) = overwrite_header(&sample, lengths);
        cases += more;
        complaints.extend(found);
    }
    expect_none(&complaints, cases);
}

#[test]
fn an_overwritten_header_of_a_large_file_costs_nothing() {
    let (cases, complaints) = overwrite_header(&with_difat(), &[32, 256, 512]);
    expect_none(&complaints, cases);
}
