//! The allocator agrees with a set of free sectors after every operation, and
//! when all is released it is as new.

mod model;

use proptest::collection::vec;
use proptest::prelude::*;

use model::{Model, Op};

fn ops(len: usize) -> impl Strategy<Value = Vec<Op>> {
    let number = prop_oneof![0..20_u16, 0..300_u16, 500..530_u16, any::<u16>()];
    let op = (any::<u8>(), any::<u8>(), number);
    vec(op.prop_map(|(kind, which, number)| Op::from_numbers(kind, which, number)), 1..len)
}

fn run(mut model: Model, ops: Vec<Op>) {
    for op in ops {
        model.step(op);
    }
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_small_device_agrees_with_a_set(total in 0..400_u32, ops in ops(120)) {
        run(Model::new(total), ops);
    }

    #[test]
    fn a_device_of_many_words_agrees_with_a_set(total in 3000..9000_u32, ops in ops(60)) {
        run(Model::new(total), ops);
    }

    #[test]
    fn bins_that_overflow_lose_no_run(
        total in 300..3000_u32,
        bytes in 0..6000_usize,
        bin in 1..9_u16,
        ops in ops(120),
    ) {
        run(Model::with_tiny_bins(total, bytes, bin), ops);
    }
}
