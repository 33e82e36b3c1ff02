//! The guard of requests: the host name that a request was sent to, and the token.

use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};

use crate::failure::Failure;

/// The shortest token, in characters: shorter ones can be guessed.
const TOKEN_CHARS_MIN: usize = 16;
/// Bytes of a token file that are read: a token is one line.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Checks requests.
#[derive(Debug)]
pub(super) struct Guard {
    /// The token that requests must have, if one was configured.
    token: Option<String>,
}

/// The reason why a request is refused.
pub(super) type Refusal = (StatusCode, String);

impl Guard {
    /// A guard that checks the token in this file, if one is named.
    pub(super) fn new(token_file: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self { token: token_file.map(read_token).transpose()? })
    }

    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a request with these headers may be answered.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match &self.token {
            Some(token) => check_token(token, headers),
            None => check_host(uri, headers),
        }
    }

    /// Whether a request with these headers may change the run: a web page may not.
    pub(super) fn check_change(headers: &HeaderMap) -> Result<(), Refusal> {
        if headers.contains_key(ORIGIN) {
            let message = "a web page cannot change a run".to_owned();
            return Err((StatusCode::FORBIDDEN, message));
        }
        Ok(())
    }
}

fn read_token(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(TOKEN_BYTES_MAX).read_to_string(&mut text))
        .map_err(|error| Failure::usage(format!("cannot read the token in {shown}: {error}")))?;
    let token = text.trim();
    let is_token = |c: char| c.is_ascii_graphic();
    if token.len() < TOKEN_CHARS_MIN || !token.chars().all(is_token) {
        return Err(Failure::usage(format!(
            "{shown} holds no token; expected one line of at least {TOKEN_CHARS_MIN} ASCII \
             characters without blanks"
        )));
    }
    Ok(token.to_owned())
}

fn check_token(token: &str, headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if is_same(token.as_bytes(), given.as_bytes()) {
        return Ok(());
    }
    let message = "expected the header `Authorization: Bearer TOKEN` with the token of this run";
    Err((StatusCode::UNAUTHORIZED, message.to_owned()))
}

/// Compares in constant time, so that the time does not tell the first difference.
fn is_same(expected: &[u8], given: &[u8]) -> bool {
    let differences = expected.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
    expected.len() == given.len() && differences == 0
}

/// Refuses names of other machines. A web page can point a name of its own at a local address,
/// but the browser still sends that name.
fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let named = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = uri.authority().map(|authority| authority.as_str()).or(named) else {
        return Err((StatusCode::BAD_REQUEST, "the header `Host` is missing".to_owned()));
    };
    if is_local(host) {
        return Ok(());
    }
    let message = format!("{host:?} is not served; ask localhost or an IP address");
    Err((StatusCode::FORBIDDEN, message))
}

/// Whether `host`, with or without a port, is `localhost` or an IP address.
fn is_local(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return is_port && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_machines_are_refused() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:8080", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        let others = ["evil.example", "evil.example:80", "localhost.evil.example", "", ":80"];
        for host in others.into_iter().chain(["[evil]", "[::1", "[::1]evil", "127.0.0.1.evil:1"]) {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn tokens_are_compared_as_a_whole() {
        assert!(is_same(b"secret", b"secret"));
        for given in [&b"secreT"[..], b"secre", b"secrets", b""] {
            assert!(!is_same(b"secret", given));
        }
    }
}
