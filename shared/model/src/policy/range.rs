//! Ranges of addresses, as `10.0.0.0/8` and `fd00::/8` write them. A range is written by its first address, so that
//! nobody means one and writes another.

use std::{fmt, net::IpAddr, str::FromStr};

/// A range of addresses of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    first: IpAddr,
    prefix: u8,
}

/// A text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    /// It is not an address, a slash and a length.
    #[error("is no range of addresses: write one as 10.0.0.0/8 or fd00::/8")]
    Form,
    /// The length is longer than an address.
    #[error("has a prefix longer than {0} bits")]
    Prefix(u8),
    /// The address lies inside the range.
    #[error("begins inside the range: write {0}")]
    Begins(AddressRange),
}

impl FromStr for AddressRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').ok_or(InvalidRange::Form)?;
        let address: IpAddr = address.parse().map_err(|_| InvalidRange::Form)?;
        // `parse` would take "+8".
        if !prefix.bytes().all(|b| b.is_ascii_digit()) {
            return Err(InvalidRange::Form);
        }
        let prefix: u8 = prefix.parse().map_err(|_| InvalidRange::Form)?;
        let bits = bits_of(address);
        if prefix > bits {
            return Err(InvalidRange::Prefix(bits));
        }
        let range = Self::around(address, prefix);
        if range.first == address {
            Ok(range)
        } else {
            Err(InvalidRange::Begins(range))
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl AddressRange {
    /// The range of this length around an address; a length beyond the family's is that of one address.
    pub fn around(address: IpAddr, prefix: u8) -> Self {
        let first = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - prefix.min(32))).unwrap_or(0);
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX
                    .checked_shl(u32::from(128 - prefix.min(128)))
                    .unwrap_or(0);
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        let prefix = prefix.min(bits_of(address));
        Self { first, prefix }
    }

    /// Returns true if an address lies in it. One of another family does not.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && Self::around(address, self.prefix).first == self.first
    }
}

fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_from_its_first_to_its_last() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.255.255", "11.0.0.0"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("fd00:1::/32", "fd00:1:ffff::1", "fd00:2::"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("10.0.0.128/25", "10.0.0.200", "10.0.0.127"),
        ] {
            let read: AddressRange = range.parse().expect("a range");
            assert_eq!(read.to_string(), range);
            assert!(
                read.contains(inside.parse().expect("an address")),
                "{range} {inside}"
            );
            assert!(
                !read.contains(outside.parse().expect("an address")),
                "{range} {outside}"
            );
        }
    }

    #[test]
    fn what_is_no_range_is_refused_with_what_would_do() {
        for (text, why) in [
            ("10.0.0.0", "10.0.0.0/8"),
            ("10.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/+8", "10.0.0.0/8"),
            ("10.0.0.0/", "10.0.0.0/8"),
            ("10.0.0.0/33", "longer than 32 bits"),
            ("fd00::/129", "longer than 128 bits"),
            ("10.1.0.0/8", "write 10.0.0.0/8"),
            ("fd00::1/64", "write fd00::/64"),
        ] {
            let error = text.parse::<AddressRange>().expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
