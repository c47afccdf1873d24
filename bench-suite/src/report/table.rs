//! Figures in rows, and bounds on figures.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A word.
    Text(String),
    /// A figure; shown with three digits or so.
    Number(f64),
    /// What a structure cannot do.
    Nothing(()),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Nothing(()) }
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing(()), Self::from)
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => shown(*number),
            Self::Nothing(()) => "-".to_owned(),
        }
    }
}

/// A number with three significant digits, and commas from ten thousand on.
fn shown(number: f64) -> String {
    let size = number.abs();
    if size >= 9_999.5 {
        let digits = format!("{number:.0}");
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            let left = digits.len() - index;
            if index > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        return grouped;
    }
    let decimals = match size {
        99.95.. => 0,
        9.995.. => 1,
        1.0.. => 2,
        0.0 => 0,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

/// Rows of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// What the figures are.
    pub note: String,
    /// Column heads, the row's name first.
    pub columns: Vec<String>,
    /// Cells, as many in each row as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, note: &str, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            note: note.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// When it has not one cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell a column in {}", self.title);
        self.rows.push(cells);
    }

    /// As a Markdown table.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("| {} |\n|", self.columns.join(" | "));
        for index in 0..self.columns.len() {
            text.push_str(if index == 0 { "---|" } else { "---:|" });
        }
        text.push('\n');
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(Cell::shown).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }
}

/// Which side of the bound is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The figure may be the bound or less.
    AtMost,
    /// The figure may be the bound or more.
    AtLeast,
}

/// A promise and the figure that keeps it or does not.
#[derive(Clone, Debug)]
pub struct Bound {
    /// What is measured, with its unit.
    pub what: String,
    /// The figure.
    pub figure: f64,
    /// Which side is good.
    pub side: Side,
    /// The bound.
    pub bound: f64,
}

impl Bound {
    /// `figure` may be `bound` or less.
    pub fn at_most(what: impl Into<String>, figure: f64, bound: f64) -> Self {
        Self { what: what.into(), figure, side: Side::AtMost, bound }
    }

    /// `figure` may be `bound` or more.
    pub fn at_least(what: impl Into<String>, figure: f64, bound: f64) -> Self {
        Self { what: what.into(), figure, side: Side::AtLeast, bound }
    }

    /// Whether the promise is kept. A figure that is not a number keeps none.
    pub fn met(&self) -> bool {
        match self.side {
            Side::AtMost => self.figure <= self.bound,
            Side::AtLeast => self.figure >= self.bound,
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Bound", 5)?;
        fields.serialize_field("what", &self.what)?;
        fields.serialize_field("figure", &self.figure)?;
        fields.serialize_field("side", &self.side)?;
        fields.serialize_field("bound", &self.bound)?;
        fields.serialize_field("met", &self.met())?;
        fields.end()
    }
}

/// All bounds as a table.
pub(crate) fn of_bounds(bounds: &[Bound]) -> Table {
    let mut table = Table::new("Bounds", "", &["what", "measured", "bound", ""]);
    for bound in bounds {
        let side = match bound.side {
            Side::AtMost => "at most",
            Side::AtLeast => "at least",
        };
        table.row(vec![
            bound.what.as_str().into(),
            bound.figure.into(),
            format!("{side} {}", shown(bound.bound)).into(),
            if bound.met() { "met" } else { "**not met**" }.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_three_digits_or_so() {
        let shown: Vec<_> =
            [0.0, 0.1234, 1.0, 9.996, 99.96, 1234.5, 12_345.6, 1_234_567.0, -23_456.0]
                .into_iter()
                .map(shown)
                .collect();
        let expected =
            ["0", "0.123", "1.00", "10.0", "100", "1234", "12,346", "1,234,567", "-23,456"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_bound_is_met_on_its_own_side_only() {
        assert!(Bound::at_most("", 1.0, 1.0).met() && !Bound::at_most("", 1.1, 1.0).met());
        assert!(Bound::at_least("", 1.0, 1.0).met() && !Bound::at_least("", 0.9, 1.0).met());
        assert!(!Bound::at_most("", f64::NAN, 1.0).met());
    }

    #[test]
    fn markdown_has_a_line_for_each_row() {
        let mut table = Table::new("T", "", &["who", "ns"]);
        table.row(vec!["ours".into(), 12.34.into()]);
        table.row(vec!["none".into(), None.into()]);
        let expected = "| who | ns |\n|---|---:|\n| ours | 12.3 |\n| none | - |\n";
        assert_eq!(table.to_markdown(), expected);
    }
}
