//! Patterns of a shell as several simpler patterns, without alternatives in braces and named
//! classes.

use crate::source::read::error::ReadError;

/// Maximum patterns that one pattern with alternatives stands for.
const ALTERNATIVES_MAX: usize = 1_024;

/// Named classes of POSIX, and the ASCII characters of each class.
const CLASSES: [(&str, &str); 8] = [
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:blank:]", " \t"),
    ("[:digit:]", "0-9"),
    ("[:lower:]", "a-z"),
    ("[:space:]", " \t\n\r"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9a-fA-F"),
];

/// True if `name` has a character with a meaning in patterns.
pub(crate) fn has_wildcards(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[{".contains(byte))
}

/// The patterns that `pattern` stands for. In these patterns `[!…]` is the only negation, and no
/// class has a name.
pub(crate) fn expanded(pattern: &str) -> Result<Vec<String>, ReadError> {
    let mut left = vec![pattern.to_owned()];
    let mut done = Vec::new();
    while let Some(next) = left.pop() {
        match alternatives(&next) {
            None => done.push(with_plain_classes(&next).ok_or_else(|| {
                let classes = CLASSES.map(|(name, _)| name).join(", ");
                wrong(pattern, format!("an unknown class of characters; there are {classes}"))
            })?),
            Some(more) => left.extend(more.into_iter().rev()),
        }
        if left.len() + done.len() > ALTERNATIVES_MAX {
            let reason = format!("its braces stand for more than {ALTERNATIVES_MAX} patterns");
            return Err(wrong(pattern, reason));
        }
    }
    Ok(done)
}

pub(crate) fn wrong(pattern: &str, reason: String) -> ReadError {
    ReadError::Pattern { pattern: pattern.to_owned(), reason }
}

/// The length of the class in brackets at the beginning of `text`.
fn bracket(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    // A closing bracket at the beginning of a class is a character of the class.
    let negation = inside.len() - inside.trim_start_matches(['!', '^']).len();
    let mut at = 1 + negation.min(1);
    at += usize::from(text[at..].starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with("[:")
            && let Some(end) = rest.find(":]")
        {
            at += end + 2;
            continue;
        }
        match rest.chars().next()? {
            ']' => return Some(at + 1),
            character => at += character.len_utf8(),
        }
    }
}

/// The alternatives of the first braces with a comma, each with the text around the braces.
fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let mut at = 0;
    while let Some(character) = pattern[at..].chars().next() {
        if let Some(len) = bracket(&pattern[at..]) {
            at += len;
            continue;
        }
        if character == '{'
            && let Some((commas, end)) = braces(&pattern[at..])
            && !commas.is_empty()
        {
            let (before, after) = (&pattern[..at], &pattern[at + end + 1..]);
            let begins = [0].into_iter().chain(commas.iter().copied());
            let ends = commas.iter().copied().chain([end]);
            let choices = begins.zip(ends);
            let choices = choices.map(|(begin, end)| &pattern[at + begin + 1..at + end]);
            return Some(choices.map(|choice| format!("{before}{choice}{after}")).collect());
        }
        at += character.len_utf8();
    }
    None
}

/// The places of the commas between the braces at the beginning of `text`, and that of the end.
fn braces(text: &str) -> Option<(Vec<usize>, usize)> {
    let (mut depth, mut commas, mut at) = (0_usize, Vec::new(), 0);
    while let Some(character) = text[at..].chars().next() {
        if let Some(len) = bracket(&text[at..]) {
            at += len;
            continue;
        }
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return Some((commas, at)),
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
        at += character.len_utf8();
    }
    None
}

/// The pattern with plain classes of characters; `None` if one has an unknown name.
fn with_plain_classes(pattern: &str) -> Option<String> {
    let (mut plain, mut at) = (String::new(), 0);
    while let Some(character) = pattern[at..].chars().next() {
        let Some(len) = bracket(&pattern[at..]) else {
            plain.push(character);
            at += character.len_utf8();
            continue;
        };
        let mut class = pattern[at..at + len].to_owned();
        for (name, characters) in CLASSES {
            class = class.replace(name, characters);
        }
        if class.contains("[:") {
            return None;
        }
        match class.strip_prefix("[^") {
            Some(rest) => plain.extend(["[!", rest]),
            None => plain.push_str(&class),
        }
        at += len;
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, expected) in [
            ("a*.log", &["a*.log"][..]),
            ("{a,b}.log", &["a.log", "b.log"]),
            ("x{1,{2,3}y,}z", &["x1z", "x2yz", "x3yz", "xz"]),
            ("{a/x,b}/{c,d}", &["a/x/c", "a/x/d", "b/c", "b/d"]),
            ("{a}{}{", &["{a}{}{"]),
            ("[{,}]", &["[{,}]"]),
            ("[^ab]", &["[!ab]"]),
            ("[!ab]", &["[!ab]"]),
            ("[^]a]", &["[!]a]"]),
            ("a^b[a^]", &["a^b[a^]"]),
            ("[[:digit:]_]*", &["[0-9_]*"]),
            ("[^[:upper:][:digit:]]", &["[!A-Z0-9]"]),
            ("é[é]{ü,ß}", &["é[é]ü", "é[é]ß"]),
        ] {
            assert_eq!(expanded(pattern).unwrap(), expected, "{pattern}");
        }
        let said = expanded("[[:word:]]").unwrap_err().to_string();
        assert!(said.contains("unknown class") && said.contains("[:digit:]"), "{said}");
        assert!(expanded(&"{a,b}".repeat(40)).unwrap_err().to_string().contains("1024"));
    }
}
