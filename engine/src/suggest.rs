//! Suggestions for misspelt names.

/// The name that is most similar to `wrong`, if a name is similar at all.
pub fn suggestion<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wrong, &name.to_lowercase()), name))
        .filter(|&(distance, name)| distance <= 1 + name.chars().count().min(wrong.len()) / 4)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::suggestion;

    #[test]
    fn a_misspelt_name_finds_its_neighbour_and_another_word_does_not() {
        let names = ["frequent_items", "read", "write", "n"];
        assert_eq!(suggestion("frequnt_item", names), Some("frequent_items"));
        assert_eq!(suggestion("Read", names), Some("read"));
        assert_eq!(suggestion("wirte", names), Some("write"));
        assert_eq!(suggestion("join", names), None);
    }
}
