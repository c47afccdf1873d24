//! Every storage's tree keeps the red-black properties through inserts and removals.

use crate::common::files::{VERSIONS, create, judged, open, saved};
use crate::common::raw::{Build, inspect, pattern};

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

#[test]
fn rb_removals_keep_the_black_heights_equal() {
    for version in VERSIONS {
        for seed in 0..5 {
            let mut random = Random(seed);
            let file = create(version);
            let mut names: Vec<String> = Vec::new();
            for round in 0..1200 {
                if random.below(100) < if round < 400 { 80 } else { 45 } || names.is_empty() {
                    let name = format!("{}{}", "n".repeat(random.below(4)), random.below(100_000));
                    if file.create_new_stream(&name).is_ok() {
                        names.push(name);
                    }
                } else {
                    file.remove_stream(&names.swap_remove(random.below(names.len()))).unwrap();
                }
                if round % 100 == 99 {
                    let (_, account) = judged(&file);
                    assert_eq!(account.items.len(), names.len() + 1);
                    let bound = 2 * (names.len() + 1).ilog2() as usize + 2;
                    assert!(
                        account.deepest <= bound,
                        "{} levels for {} names",
                        account.deepest,
                        names.len()
                    );
                }
            }
        }
    }
}

#[test]
fn rb_names_in_ascending_order_make_no_list() {
    let file = create(VERSIONS[0]);
    for nth in 0..5600 {
        file.create_new_stream(&format!("{nth:05}")).unwrap();
    }
    let (_, account) = judged(&file);
    assert!(account.deepest <= 26, "{} levels", account.deepest);
}

#[test]
fn rb_tree_of_another_writer_is_sound_after_any_change() {
    let mut build = Build::new(3).storage("S");
    for nth in 0..40 {
        build = build.stream(&format!("S/{nth}"), &pattern(nth, 20));
    }
    let image = build.image();
    inspect(&image.bytes).expect_sound();
    for nth in 0..40 {
        let file = open(&image.bytes).unwrap();
        file.remove_stream(&format!("S/{nth}")).unwrap();
        judged(&file);
        file.create_new_stream("S/x").unwrap();
        file.rename("S/x", "y").unwrap();
        judged(&file);
    }
}

#[test]
fn rb_all_black_list_of_another_writer_is_read_and_changed() {
    // What libgsf and js-cfb write: one long chain of right siblings, all black.
    let names: Vec<String> = (0..100).map(|nth| format!("{nth:03}")).collect();
    let mut build = Build::new(3);
    for name in &names {
        build = build.stream(name, name.as_bytes());
    }
    let mut image = build.image();
    for (nth, name) in names.iter().enumerate() {
        let next =
            names.get(nth + 1).map_or(u32::MAX, |next| crate::common::raw::n32(image.slot(next)));
        image.put_u32(image.at(name, crate::common::raw::entry::LEFT), u32::MAX);
        image.put_u32(image.at(name, crate::common::raw::entry::RIGHT), next);
        image.put(image.at(name, crate::common::raw::entry::COLOUR), &[1]);
    }
    let first = crate::common::raw::n32(image.slot("000"));
    image.put_u32(image.at("", crate::common::raw::entry::CHILD), first);
    let file = open(&image.bytes).unwrap();
    for name in names.iter().skip(1).step_by(2) {
        file.remove_stream(name).unwrap();
        file.create_new_stream(&format!("new {name}")).unwrap();
    }
    let file = open(&saved(&file)).unwrap();
    for name in names.iter().step_by(2) {
        assert_eq!(file.read_stream(name).unwrap(), name.as_bytes());
    }
    assert_eq!(file.children("/").unwrap().len(), 100);
    judged(&file);
}
