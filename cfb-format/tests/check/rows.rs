//! Which codes of the audit and of `check` say the same.

use crate::classes::{self as c, Class};

/// Codes that say the same, and what may lead to only one side having one.
pub(crate) struct Row {
    pub(crate) audit: &'static [&'static str],
    pub(crate) ours: &'static [&'static str],
    pub(crate) only_audit: &'static [Class],
    pub(crate) only_ours: &'static [Class],
}

macro_rules! rows {
    ($([$($audit:literal)*] = [$($ours:literal)*] $(, audit: $($a:ident)+)? $(, ours: $($o:ident)+)?;)+) => {
        pub(crate) const ROWS: &[Row] = &[$(Row {
            audit: &[$($audit),*],
            ours: &[$($ours),*],
            only_audit: &[$($(c::$a),+)?],
            only_ours: &[$($(c::$o),+)?],
        }),+];
    };
}

rows! {
    ["H_clsid_nonzero"] = ["header.clsid"];
    ["H_minor_not_3e"] = ["header.minor-version"];
    ["H_bom_bad"] = ["header.byte-order"];
    ["H_mini_shift_not_6"] = ["header.mini-sector-shift"];
    ["H_reserved_nonzero"] = ["header.reserved"];
    ["H_cutoff_not_4096"] = ["header.mini-stream-cutoff"];
    ["H_v3_dirsectors_nonzero" "H_v4_ndir_mismatch"] = ["header.dir-sectors"];
    ["H_v4_pad_nonzero"] = ["header.padding"];
    ["H_txn_nonzero"] = [], audit: TRANSACTIONS;
    ["D_nfat_mismatch"] = ["header.fat-sectors"], audit: BEHIND_COUNT, ours: NO_SECTOR;
    ["M_nminifat_mismatch"] = ["header.minifat-sectors"];
    ["D_ndifat_mismatch"] = ["header.difat-sectors"];
    ["D_difat_chain_ends_FREE" "D_difat_loop" "D_difat_out_of_range" "D_difat_start_0_when_none"] = ["difat.chain"];
    ["D_fat_sector_out_of_range" "D_duplicate_fat_sector" "D_entries_beyond_nfat" "D_gap_in_header_difat"
        "D_special_value_in_difat" "F_fat_sector_truncated_or_missing"]
        = ["difat.entry" "difat.repeated" "difat.padding" "fat.unreadable"];
    ["F_truncated_last_sector"] = ["file.partial-sector"];
    ["T_fat_shorter_than_file"] = ["file.trailing-data"];
    ["T_fat_entries_past_eof"] = ["fat.cell-past-end"];
    ["T_fat_link_out_of_range"] = ["fat.bad-cell"];
    ["T_fat_sector_not_marked_FATSECT"] = ["fat.not-marked"];
    ["T_difat_sector_not_marked_DIFSECT"] = ["difat.not-marked"];
    ["T_stray_DIFSECT_mark" "T_stray_FATSECT_mark"] = ["fat.marked-wrongly"];
    ["T_lost_allocated_sectors"] = ["sector.orphan"], audit: MARKED;
    ["X_crosslinked_sector"] = ["sector.shared"], audit: UNJUDGED, ours: OWN_SECTORS;
    ["X_crosslinked_minisector"] = ["mini-sector.shared"], audit: SHORT_MINI_STREAM;
    ["R_dir_chain_eof" "R_dir_chain_fatsect" "R_dir_chain_free" "R_dir_chain_loop" "R_dir_chain_range"
        "FATAL_no_directory"] = ["dir.chain"];
    ["R_root_type_not_5"] = ["root.type"];
    ["R_root_name_not_RootEntry"] = ["root.name"], ours: LONG_NAME;
    ["R_root_ctime_nonzero"] = ["root.created"];
    ["R_root_has_siblings"] = ["root.siblings"];
    ["M_root_empty_start_not_EOC"] = ["root.start"], audit: START_FREE;
    ["M_ministream_size_not_multiple_64"] = ["root.size"];
    ["M_ministream_chain_eof" "M_ministream_chain_range" "M_ministream_chain_shorter_than_size"]
        = ["ministream.short" "stream.chain-end of the root"];
    [] = ["file.cut-metadata"], ours: NOT_AUDITED;
    [] = ["ministream.long"], ours: NOT_AUDITED;
    ["M_minifat_chain_eof" "M_minifat_chain_loop" "M_minifat_chain_range"] = ["minifat.chain"];
    [] = ["minifat.short"], ours: NOT_AUDITED;
    ["M_minifat_used_past_root_size" "M_root_size_0_with_minifat_used"] = ["minifat.past-end"], audit: ROUNDED;
    [] = ["mini-sector.orphan"], ours: NOT_AUDITED;
    ["U_unused_entry_not_zeroed"] = ["dir.unused-slot"], ours: NO_TYPE UNUSED_REST CUT_DIRECTORY;
    ["U_orphan_stream" "U_orphan_storage" "U_orphan_bad"] = ["dir.orphan"], audit: NO_TYPE UNJUDGED;
    ["E_sibling_id_out_of_range"] = ["dir.link"], audit: CUT_DIRECTORY;
    ["E_dir_tree_loop_or_shared"] = ["dir.loop"], ours: CUT_DIRECTORY;
    ["E_tree_reaches_bad_type" "E_tree_reaches_type_0" "E_tree_reaches_type_5"]
        = ["dir.unused-reached" "root.type of another entry"], audit: SECOND_ROOT, ours: CUT_DIRECTORY;
    ["B_not_sorted"] = ["dir.order" "dir.duplicate-name"], audit: UNJUDGED;
    ["B_two_reds"] = ["dir.two-reds"], audit: UNJUDGED;
    ["B_red_subtree_root"] = ["dir.red-root"], audit: UNJUDGED;
    ["B_all_black_tree"] = ["dir.black-height"], audit: EVEN, ours: UNEVEN;
    ["N_namelen_0" "N_namelen_gt_64" "N_namelen_odd"] = ["entry.name-length"], audit: UNJUDGED, ours: NULLS;
    ["N_no_nul_terminator"] = ["entry.name-terminator"];
    ["N_garbage_after_nul"] = ["entry.name-padding"];
    ["N_empty_name"] = ["entry.name-empty"];
    ["N_embedded_nul"] = ["entry.name-null"];
    ["N_lone_surrogate"] = ["entry.name-surrogate"];
    [] = ["entry.name-character"], ours: NOT_AUDITED;
    ["E_color_bad"] = ["entry.color"], audit: UNJUDGED, ours: ROOT_COLOUR;
    ["E_stream_has_child"] = ["entry.stream-child"], audit: UNJUDGED, ours: CUT_DIRECTORY;
    ["E_stream_clsid_nonzero"] = ["entry.stream-clsid"], audit: UNJUDGED;
    ["E_stream_statebits_nonzero"] = ["entry.stream-state"];
    ["E_stream_times_nonzero"] = ["entry.stream-times"], audit: UNJUDGED;
    ["E_storage_start_EOC" "E_storage_start_nonzero"] = ["entry.storage-start"];
    ["E_storage_size_nonzero"] = ["entry.storage-size"];
    ["E_v3_size_high_nonzero"] = ["entry.size-high"], audit: UNJUDGED, ours: ROOT_IN_STORAGE;
    ["E_v3_size_gt_2G"] = ["entry.size-limit"];
    ["E_empty_stream_start_0"] = ["stream.empty-start"], ours: CUT_DIRECTORY OTHER_START;
    ["S_chain_len_long" "S_mini_chain_len_long"] = ["stream.chain-long"], ours: NO_END;
    ["S_chain_eof" "S_chain_fatsect" "S_chain_len_short" "S_chain_loop" "S_chain_range" "S_mini_chain_free"
        "S_mini_chain_len_short" "S_mini_chain_loop" "S_mini_chain_other" "S_mini_chain_range"
        "S_mini_past_ministream" "T_used_sector_marked_FREE"]
        = ["stream.broken" "stream.chain-end"], audit: UNJUDGED, ours: CUT_STREAM;
    ["H_short_header"] = [];
    ["T_free_sectors" "N_non_ascii_name" "N_31_char_name"] = [], audit: NO_FAULT;
    [] = ["header.sector-shift" "header.major-version"], ours: NOT_AUDITED;
}
