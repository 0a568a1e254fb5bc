//! Words of the configuration and what they stand for: one table for both ways. Needs nothing else.

/// The value of a word, or a sentence that names the key and the words there are.
pub(crate) fn value_of<T: Copy>(key: &str, word: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    known.ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        format!("{key} is {word:?}; it is one of {}", words.join(", "))
    })
}

/// The word of a value; every value is in its table.
pub(crate) fn word_of<T: PartialEq>(value: T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}
