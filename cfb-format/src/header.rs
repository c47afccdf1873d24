//! The header: decoding with leniency, and encoding back.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::Corruption;
use crate::finding::{Finding, FindingCode};
use crate::layout::{
    BYTE_ORDER, END_OF_CHAIN, FREE_SECTOR, HEADER_BYTES, HEADER_DIFAT_LEN, MINI_SECTOR_SHIFT,
    MINI_STREAM_CUTOFF, MINOR_VERSION, RawHeader, SIGNATURE,
};
use crate::version::{Geometry, Version};

/// What the header says, without what follows from the [`Geometry`].
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) minor_version: u16,
    pub(crate) clsid: [u8; 16],
    pub(crate) transaction_signature: u32,
    pub(crate) dir_sectors_count: u32,
    pub(crate) fat_sectors_count: u32,
    pub(crate) first_dir_sector: u32,
    pub(crate) first_mini_fat_sector: u32,
    pub(crate) mini_fat_sectors_count: u32,
    pub(crate) first_difat_sector: u32,
    pub(crate) difat_sectors_count: u32,
    pub(crate) difat: [u32; HEADER_DIFAT_LEN],
}

impl Header {
    /// The header of a file without sectors.
    pub(crate) const fn empty() -> Self {
        Self {
            minor_version: MINOR_VERSION,
            clsid: [0; 16],
            transaction_signature: 0,
            dir_sectors_count: 0,
            fat_sectors_count: 0,
            first_dir_sector: END_OF_CHAIN,
            first_mini_fat_sector: END_OF_CHAIN,
            mini_fat_sectors_count: 0,
            first_difat_sector: END_OF_CHAIN,
            difat_sectors_count: 0,
            difat: [FREE_SECTOR; HEADER_DIFAT_LEN],
        }
    }

    /// Checks the header and says what it overlooks. [MS-CFB] 2.2
    ///
    /// # Errors
    ///
    /// [`Corruption::TooShort`], [`Corruption::Signature`] and
    /// [`Corruption::Version`]: without these three nothing can be found.
    pub(crate) fn decode(
        bytes: &[u8],
        findings: &mut Vec<Finding>,
    ) -> Result<(Self, Geometry), Corruption> {
        let (raw, _) = RawHeader::ref_from_prefix(bytes)
            .map_err(|_| Corruption::TooShort { len_bytes: bytes.len() as u64 })?;
        if raw.signature != SIGNATURE {
            return Err(Corruption::Signature { found: raw.signature });
        }
        let geometry = Self::geometry(raw, findings)?;

        let mut field = |broken: bool, finding: Finding| {
            if broken {
                findings.push(finding);
            }
        };
        field(raw.clsid != [0; 16], Finding::new(FindingCode::HeaderClsid).at_byte(0x08));
        let minor = raw.minor_version.get();
        field(
            minor != MINOR_VERSION,
            Finding::new(FindingCode::HeaderMinorVersion)
                .at_byte(0x18)
                .found(minor)
                .expected(MINOR_VERSION),
        );
        let order = raw.byte_order.get();
        field(
            order != BYTE_ORDER,
            Finding::new(FindingCode::HeaderByteOrder)
                .at_byte(0x1C)
                .found(order)
                .expected(BYTE_ORDER),
        );
        field(raw.reserved != [0; 6], Finding::new(FindingCode::HeaderReserved).at_byte(0x22));

        let header = Self {
            minor_version: minor,
            clsid: raw.clsid,
            transaction_signature: raw.transaction_signature.get(),
            dir_sectors_count: raw.dir_sectors_count.get(),
            fat_sectors_count: raw.fat_sectors_count.get(),
            first_dir_sector: raw.first_dir_sector.get(),
            first_mini_fat_sector: raw.first_mini_fat_sector.get(),
            mini_fat_sectors_count: raw.mini_fat_sectors_count.get(),
            first_difat_sector: raw.first_difat_sector.get(),
            difat_sectors_count: raw.difat_sectors_count.get(),
            difat: raw.difat.map(U32::get),
        };
        Ok((header, geometry))
    }

    /// Sector sizes: the shifts count where they are possible, since real
    /// files have 4096-byte sectors in version 3 and 512-byte ones in version 4.
    fn geometry(raw: &RawHeader, findings: &mut Vec<Finding>) -> Result<Geometry, Corruption> {
        let (major, shift) = (raw.major_version.get(), raw.sector_shift.get());
        let version = match (major, shift) {
            (3, _) | (..=2 | 5.., 9) => Version::V3,
            (4, _) | (..=2 | 5.., 12) => Version::V4,
            _ => return Err(Corruption::Version { found: major, sector_shift: shift }),
        };
        if major != version.number() {
            findings.push(
                Finding::new(FindingCode::HeaderMajorVersion)
                    .at_byte(0x1A)
                    .found(major)
                    .expected(version.number()),
            );
        }
        let mut sector_shift = version.sector_shift();
        if shift != sector_shift {
            findings.push(
                Finding::new(FindingCode::HeaderSectorShift)
                    .at_byte(0x1E)
                    .found(shift)
                    .expected(sector_shift),
            );
            if (7..=16).contains(&shift) {
                sector_shift = shift;
            }
        }
        // No other size was ever seen, so another number is a damaged one.
        let mini_shift = raw.mini_sector_shift.get();
        if mini_shift != MINI_SECTOR_SHIFT {
            findings.push(
                Finding::new(FindingCode::HeaderMiniSectorShift)
                    .at_byte(0x20)
                    .found(mini_shift)
                    .expected(MINI_SECTOR_SHIFT),
            );
        }
        let mut cutoff = raw.mini_stream_cutoff.get();
        if cutoff != MINI_STREAM_CUTOFF {
            findings.push(
                Finding::new(FindingCode::HeaderCutoff)
                    .at_byte(0x38)
                    .found(cutoff)
                    .expected(MINI_STREAM_CUTOFF),
            );
            if cutoff == 0 || cutoff > 1 << 20 {
                cutoff = MINI_STREAM_CUTOFF;
            }
        }
        Ok(Geometry::odd(version, sector_shift, cutoff))
    }

    /// The header's 512 bytes. [MS-CFB] 2.2
    pub(crate) fn encode(&self, geometry: Geometry) -> [u8; HEADER_BYTES] {
        let raw = RawHeader {
            signature: SIGNATURE,
            clsid: self.clsid,
            minor_version: U16::new(self.minor_version),
            major_version: U16::new(geometry.version.number()),
            byte_order: U16::new(BYTE_ORDER),
            sector_shift: U16::new(geometry.sector_shift()),
            mini_sector_shift: U16::new(MINI_SECTOR_SHIFT),
            reserved: [0; 6],
            dir_sectors_count: U32::new(self.dir_sectors_count),
            fat_sectors_count: U32::new(self.fat_sectors_count),
            first_dir_sector: U32::new(self.first_dir_sector),
            transaction_signature: U32::new(self.transaction_signature),
            mini_stream_cutoff: U32::new(geometry.mini_cutoff),
            first_mini_fat_sector: U32::new(self.first_mini_fat_sector),
            mini_fat_sectors_count: U32::new(self.mini_fat_sectors_count),
            first_difat_sector: U32::new(self.first_difat_sector),
            difat_sectors_count: U32::new(self.difat_sectors_count),
            difat: self.difat.map(U32::new),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_header_decodes_without_findings() {
        for version in [Version::V3, Version::V4] {
            let bytes = Header::empty().encode(Geometry::new(version));
            let mut findings = Vec::new();
            let (header, geometry) = Header::decode(&bytes, &mut findings).unwrap();
            assert_eq!(findings, []);
            assert_eq!(geometry, Geometry::new(version));
            assert_eq!(header.encode(geometry), bytes);
        }
    }

    #[test]
    fn sector_size_that_does_not_fit_the_version_is_believed_and_found() {
        let mut bytes = Header::empty().encode(Geometry::new(Version::V3));
        bytes[0x1E] = 12;
        let mut findings = Vec::new();
        let (_, geometry) = Header::decode(&bytes, &mut findings).unwrap();
        assert_eq!(geometry.sector_bytes(), 4096);
        assert_eq!(findings[0].code(), FindingCode::HeaderSectorShift);
    }

    #[test]
    fn other_files_are_refused_by_their_first_bytes() {
        let mut bytes = Header::empty().encode(Geometry::new(Version::V3));
        bytes[..4].copy_from_slice(b"PK\x03\x04");
        assert!(matches!(
            Header::decode(&bytes, &mut Vec::new()),
            Err(Corruption::Signature { .. })
        ));
        assert_eq!(
            Header::decode(&bytes[..511], &mut Vec::new()).unwrap_err(),
            Corruption::TooShort { len_bytes: 511 }
        );
    }
}
