//! `vectors/moved-urls/abuse.txt`, read; the capabilities in it are made here, without the crate's help.

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The site that the data speaks of.
pub(crate) const SITE: &str = "https://www.site.test";

/// A capability, made without the crate's help.
pub(crate) fn capability(
    kid: char,
    fill: u8,
    site: &str,
    origin: &str,
    target: Option<&str>,
) -> String {
    let mut message = format!("spdy-accel/1\0{site}\0{}", origin.replace(' ', "\0")).into_bytes();
    if let Some(target) = target {
        message.push(0);
        message.extend_from_slice(target.as_bytes());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&[fill; 32]).unwrap();
    mac.update(&message);
    let code = BASE64URL_NOPAD.encode(&mac.finalize().into_bytes()[..18]);
    format!("{}{kid}{code}", if target.is_some() { 'u' } else { 'k' })
}

/// What stands for `word`, which was in braces.
fn filled(word: &str, kid: char) -> String {
    let parts: Vec<_> = word.split(' ').collect();
    let https = |host: &str| format!("s {host} 443");
    match parts[..] {
        ["long"] => "a".repeat(8 * 1024),
        ["long1024"] => "a".repeat(1024),
        ["label64"] => "a".repeat(64),
        ["k", host] => capability(kid, 1, SITE, &https(host), None),
        ["u", host, target] => capability(kid, 1, SITE, &https(host), Some(target)),
        ["u-as-k", host, target] => {
            capability(kid, 1, SITE, &https(host), Some(target)).replacen('u', "k", 1)
        }
        ["twin", host] => capability(kid, 1, "https://www.twin.test", &https(host), None),
        ["other", host] => capability(kid, 9, "https://www.twin.test", &https(host), None),
        ["dead", host] => capability('d', 4, SITE, &https(host), None),
        ["port", host] => capability(kid, 1, SITE, &format!("s {host} 8443"), None),
        ["http", host] => capability(kid, 1, SITE, &format!("p {host} 80"), None),
        _ => panic!("the vectors know no {{{word}}}"),
    }
}

/// `text` with its braces filled and its `\xNN` undone.
pub(crate) fn written(text: &str, kid: char) -> String {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\x") {
            out.push(u8::from_str_radix(&after[..2], 16).unwrap());
            rest = &after[2..];
        } else if let Some(after) = rest.strip_prefix('{') {
            let (word, after) = after.split_once('}').unwrap();
            out.extend_from_slice(filled(word, kid).as_bytes());
            rest = after;
        } else {
            out.push(first as u8);
            rest = &rest[1..];
        }
    }
    String::from_utf8(out).unwrap()
}

/// One line of the data.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) refusal: &'static str,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) fields: Vec<(&'static str, String)>,
}

/// All lines; the site's live key is called `kid`.
pub(crate) fn cases(kid: char) -> Vec<Case> {
    let text = include_str!("../../../../../vectors/moved-urls/abuse.txt");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = move |line: &'static str| {
        let mut bars = line.split(" | ");
        let words = bars.next().unwrap().trim();
        let (name, words) = words.split_once(' ').unwrap();
        let (refusal, words) = words.trim_start().split_once(' ').unwrap();
        let (method, target) = words.trim_start().split_once(' ').unwrap();
        let field = move |field: &'static str| {
            field
                .split_once(": ")
                .map(|(name, value)| (name, written(value, kid)))
                .unwrap()
        };
        Case {
            name,
            refusal,
            method,
            target: written(target, kid),
            fields: bars.map(field).collect(),
        }
    };
    lines.map(case).collect()
}
