//! Flags for the history that the event log keeps and for the free part of its disk: ages, sizes and shares. It removes
//! nothing.

use clap::Args;

use super::Retention;

/// The flags that say how much history is kept.
#[derive(Debug, Clone, Copy, Args)]
pub struct RetentionArgs {
    /// Remove history that is older: a number with s, m, h or d. Members, exports and decisions stay; only the record
    /// of their changes goes
    #[arg(long, env = "TRIBUTARY_RETENTION_AGE", value_name = "AGE", default_value = "7d", value_parser = age)]
    pub retention_age: u64,
    /// Remove the oldest history while the event log is larger on disk: a number, with kB, MB, GB or TB (of 1000) or
    /// KiB, MiB, GiB or TiB (of 1024)
    #[arg(long, env = "TRIBUTARY_RETENTION_BYTES", value_name = "SIZE", default_value = "10GB", value_parser = size)]
    pub retention_bytes: u64,
}

impl RetentionArgs {
    /// The meaning of the flags.
    pub fn retention(&self) -> Retention {
        Retention {
            age_millis: self.retention_age,
            bytes: self.retention_bytes,
        }
    }
}

/// The flags that say how full the disk under the event log may get.
#[derive(Debug, Clone, Copy, Args)]
pub struct DiskArgs {
    /// Warn when less than this share of the disk under the event log is free
    #[arg(long, env = "TRIBUTARY_DISK_ALARM", value_name = "SHARE", default_value = "15%", value_parser = share)]
    pub disk_alarm: u8,
    /// Record no new exports, slices and properties while less than this share is free; withdrawals and decisions about
    /// members are still recorded. 0%: record until the disk is full
    #[arg(long, env = "TRIBUTARY_DISK_RESERVE", value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub disk_reserve: u8,
}

const AGES: [(&str, u64); 4] = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Nobody needs more of a disk free than this.
const SHARE_MAX: u8 = 90;

/// Milliseconds.
fn age(text: &str) -> Result<u64, String> {
    measured(text, &AGES).ok_or_else(|| "an age is a number and a unit, as 7d, 12h, 30m or 90s".into())
}

/// A size in bytes, from a number and a unit.
pub fn size(text: &str) -> Result<u64, String> {
    measured(text, &SIZES).ok_or_else(|| "a size is a number and a unit, as 10GB or 512MiB, or bytes".into())
}

/// Percent.
fn share(text: &str) -> Result<u8, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
    percent
        .filter(|percent| *percent <= SHARE_MAX)
        .ok_or_else(|| format!("a share is a whole number of percent, as 5%, and at most {SHARE_MAX}%"))
}

fn measured(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let behind = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(behind);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_numbers_with_units() {
        assert_eq!(age("7d"), Ok(Retention::default().age_millis));
        assert_eq!(size("10GB"), Ok(Retention::default().bytes));
        assert_eq!((age("90s"), age("0s")), (Ok(90_000), Ok(0)));
        assert_eq!((size("512MiB"), size("4096")), (Ok(512 << 20), Ok(4_096)));
        for wrong in ["", "d", "7", "7 d", "-1d", "7days", "99999999999999999999d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "GB", "1.5GB", "10 GB", "10gb", "99999999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn shares_are_whole_percents() {
        assert_eq!((share("15%"), share("0%"), share("90%")), (Ok(15), Ok(0), Ok(90)));
        for wrong in ["", "5", "%", "91%", "5.5%", "-1%", "300%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
