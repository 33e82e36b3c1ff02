//! The part of a stage's rows that later stages look at.

use std::collections::{BTreeSet, HashSet};

use arrow_schema::Schema;

/// The part of the rows of a stage that later stages look at. A source may leave out everything
/// else.
///
/// # Examples
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use trommel_engine::operator::Demand;
///
/// let fields = ["host", "path", "status"].map(|name| Field::new(name, DataType::Utf8, true));
/// let schema = Schema::new(fields.to_vec());
/// let demand = Demand::none().column("status").words(["lower", "host"]);
/// assert_eq!(demand.places(&schema), [0, 2]);
/// // Whoever asks for a column that is missing is told of all columns.
/// assert_eq!(Demand::none().column("statsu").places(&schema), [0, 1, 2]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// `None` for all columns.
    columns: Option<DemandedNames>,
    conditions: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DemandedNames {
    /// Names of columns.
    certain: BTreeSet<String>,
    /// Words that may be names of columns, or something else.
    possible: BTreeSet<String>,
}

impl Demand {
    /// All columns of all rows.
    #[must_use]
    pub fn all() -> Self {
        Self { columns: None, conditions: Vec::new() }
    }

    /// All rows, and no columns so far.
    #[must_use]
    pub fn none() -> Self {
        Self { columns: Some(DemandedNames::default()), conditions: Vec::new() }
    }

    /// Adds the column `name`.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>) -> Self {
        if let Some(columns) = &mut self.columns {
            columns.certain.insert(name.into());
        }
        self
    }

    /// Adds the columns among these words. A word may be no column.
    #[must_use]
    pub fn words(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let Some(columns) = &mut self.columns {
            columns.possible.extend(words.into_iter().map(Into::into));
        }
        self
    }

    /// Turns each certain name into a possible one, such as the name of a column that a stage adds.
    #[must_use]
    pub fn of_words(mut self) -> Self {
        if let Some(DemandedNames { certain, possible }) = &mut self.columns {
            possible.append(certain);
        }
        self
    }

    /// Leaves out rows for which `condition`, in the language of the operators, is not true.
    #[must_use]
    pub fn condition(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    /// The same demand without conditions, for input rows that are not the output rows.
    #[must_use]
    pub fn unconditional(self) -> Self {
        Self { conditions: Vec::new(), ..self }
    }

    /// The rows and columns that this or the other demand includes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let columns = self.columns.zip(other.columns).map(|(mut names, others)| {
            names.certain.extend(others.certain);
            names.possible.extend(others.possible);
            names
        });
        let mut conditions = self.conditions;
        conditions.retain(|condition| other.conditions.contains(condition));
        Self { columns, conditions }
    }

    /// Indices of the columns of `schema` that later stages look at; at least one. If a named
    /// column is missing, the answer is all columns, so that an error can name every column.
    #[must_use]
    pub fn places(&self, schema: &Schema) -> Vec<usize> {
        let all = 0..schema.fields().len();
        let Some(DemandedNames { certain, possible }) = &self.columns else { return all.collect() };
        let found: HashSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
        if certain.iter().any(|name| !found.contains(name)) {
            return all.collect();
        }
        let is_included = |place: &usize| {
            let name = schema.field(*place).name();
            certain.contains(name) || possible.contains(name)
        };
        let places: Vec<usize> = all.clone().filter(is_included).collect();
        // A batch without a column has no rows.
        if places.is_empty() { all.take(1).collect() } else { places }
    }

    /// Expressions that are all true for each row that later stages look at.
    #[must_use]
    pub fn conditions(&self) -> &[String] {
        &self.conditions
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    fn schema() -> Schema {
        Schema::new(["a", "b", "c"].map(|name| Field::new(name, DataType::Utf8, true)).to_vec())
    }

    #[test]
    fn two_readers_get_what_each_needs() {
        let first = Demand::none().column("a").condition("a > 1").condition("b > 1");
        let second = Demand::none().column("c").condition("b > 1");
        let both = first.clone().or(second);
        assert_eq!(both.places(&schema()), [0, 2]);
        assert_eq!(both.conditions(), ["b > 1"]);
        assert_eq!(first.or(Demand::all()), Demand::all());
    }

    #[test]
    fn rows_keep_a_column() {
        assert_eq!(Demand::none().places(&schema()), [0]);
        assert_eq!(Demand::none().words(["x"]).places(&schema()), [0]);
        assert_eq!(Demand::none().column("x").of_words().places(&schema()), [0]);
        assert_eq!(Demand::all().column("x").places(&schema()), [0, 1, 2]);
        assert_eq!(Demand::none().places(&Schema::empty()), [0; 0]);
    }
}
