//! Numbers for people.

/// A number to three significant digits with a decimal prefix, such as `4.51 M`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn short(number: u64) -> String {
    if number < 1000 {
        return number.to_string();
    }
    let mut value = number as f64;
    let mut prefix = ' ';
    for next in ['k', 'M', 'G', 'T', 'P', 'E'] {
        // A number that would be rounded to 1000 gets the next prefix.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        prefix = next;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.decimals$} {prefix}")
}

/// A whole number with a separator every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1.00 k"),
            (9994, "9.99 k"),
            (9996, "10.0 k"),
            (99_960, "100 k"),
            (999_499, "999 k"),
            (999_500, "1.00 M"),
            (4_512_345, "4.51 M"),
            (u64::MAX, "18.4 E"),
        ];
        for (number, text) in cases {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "line"), "1 line");
        assert_eq!(counted(2000, "line"), "2,000 lines");
    }
}
