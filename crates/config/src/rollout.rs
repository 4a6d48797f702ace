//! What `highball rollout` is asked for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share of the visitors: from 0.1% to 100%.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VisitorShare(u16);

impl VisitorShare {
    /// All visitors.
    pub const ALL: VisitorShare = VisitorShare(1000);

    /// The share in thousandths of the visitors.
    pub fn thousandths(self) -> u16 {
        self.0
    }

    /// The share in percent.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / 10.0
    }

    /// The part of this number of workers that the share needs: at least one, at most all.
    pub fn of_workers(self, workers: u16) -> u16 {
        let part = (u32::from(workers) * u32::from(self.0)).div_ceil(1000);
        (part as u16).clamp(1, workers.max(1))
    }
}

impl fmt::Display for VisitorShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent())
    }
}

impl FromStr for VisitorShare {
    type Err = String;

    /// Reads `5%`, `0.5%`, or the same without the sign.
    fn from_str(text: &str) -> Result<VisitorShare, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str, most: usize| {
            (1..=most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let thousandths = match is_number(whole, 3) && is_number(tenths, 1) {
            true => whole.parse::<u16>().ok().zip(tenths.parse::<u16>().ok()),
            false => None,
        };
        match thousandths.map(|(whole, tenths)| whole * 10 + tenths) {
            Some(share @ 1..=1000) => Ok(VisitorShare(share)),
            _ => Err(format!("`{text}` is not a share such as 5% or 0.5%, from 0.1% to 100%")),
        }
    }
}

/// What `highball rollout` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RolloutOrder {
    /// This share of the visitors gets the new version.
    Share(VisitorShare),
    /// All visitors get the old version again.
    Undo,
}

impl FromStr for RolloutOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<RolloutOrder, String> {
        match text {
            "undo" => Ok(RolloutOrder::Undo),
            text if text.starts_with(|first: char| first.is_ascii_digit()) => {
                text.parse().map(RolloutOrder::Share)
            }
            text => Err(format!("`{text}` is neither a share such as 5%, nor `undo`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_at_most_one_decimal() {
        let read = |text: &str| text.parse::<VisitorShare>().map(|share| share.to_string()).ok();
        for (text, shown) in
            [("5%", "5%"), ("0.5%", "0.5%"), ("100", "100%"), ("99.9%", "99.9%"), ("0.1", "0.1%")]
        {
            assert_eq!(read(text).as_deref(), Some(shown));
        }
        for text in ["0%", "0.0", "100.1%", "101", "5.55%", "-5%", "+5", "5 %", "%", "", ".5%", "5.%", "9999"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_share_needs_a_part_of_the_workers() {
        let part = |text: &str, workers| text.parse::<VisitorShare>().unwrap().of_workers(workers);
        assert_eq!([part("0.1%", 4), part("25%", 4), part("26%", 4), part("99%", 4)], [1, 1, 2, 4]);
        assert_eq!([part("5%", 1), part("99%", 1), part("5%", 512)], [1, 1, 26]);
    }

    #[test]
    fn an_order_is_a_share_or_undo() {
        assert_eq!("undo".parse(), Ok(RolloutOrder::Undo));
        assert_eq!("100%".parse(), Ok(RolloutOrder::Share(VisitorShare::ALL)));
        assert!("back".parse::<RolloutOrder>().unwrap_err().contains("nor `undo`"));
    }
}
