//! Length of pages and of sentences, and words that the manual does not use.

use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{files_in, name_of, pages, published_crates, read, repository};

/// Words of a page. Pages of measurements are long tables, and may have more.
const MAX_PAGE: usize = 1_500;
/// Words of the README of the repository.
const MAX_README: usize = 900;
/// Words of the README of a crate.
const MAX_CRATE_README: usize = 300;
/// Words of a sentence, on average over a page.
const MAX_SENTENCE: f64 = 20.0;
/// Characters of a line of the changelog, without the targets of its links.
const MAX_CHANGE: usize = 180;

/// Words that address programs as people, and words of older English.
const UNUSED: [&str; 10] = [
    "nobody", "whoever", "he", "his", "him", "anew", "likewise", "wherever", "thereof", "somebody",
];

/// Its lists of figures are made by `spdy lab reproduce`, and are no sentences.
const FIGURES: &str = "docs/measurements/claims.md";
/// Questions and answers from before a change of names, in the names of that time.
const QUOTED: &str = "docs/measurements/guess-the-file.md";

fn all_pages() -> Vec<PathBuf> {
    let readmes = published_crates().into_iter();
    let readmes =
        readmes.flat_map(|folder| ["README.md", "GUIDE.md"].map(|name| folder.join(name)));
    let mut all: Vec<_> = pages().into_iter().chain(readmes).collect();
    all.retain(|page| page.exists() && name_of(page) != QUOTED);
    all
}

/// The paragraphs and list items of a page. Inline code is one word; headings, tables and blocks of code are left out.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut outside = 0;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        let paragraph = paragraphs
            .last_mut()
            .expect("there is at least one paragraph");
        match event {
            Event::Start(Tag::Table(_) | Tag::Heading { .. } | Tag::CodeBlock(_)) => outside += 1,
            Event::End(TagEnd::Table | TagEnd::Heading(_) | TagEnd::CodeBlock) => outside -= 1,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::List(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Item) => paragraphs.push(String::new()),
            _ if outside > 0 => {}
            Event::Text(text) => paragraph.push_str(&text),
            Event::Code(_) => paragraph.push_str("code"),
            Event::SoftBreak | Event::HardBreak => paragraph.push(' '),
            _ => {}
        }
    }
    paragraphs
}

/// Words of each sentence. A sentence ends at `.`, `!` or `?` before a space, and with its paragraph or list item. A word has a letter or
/// a digit.
fn sentences(text: &str) -> Vec<usize> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(text) {
        let mut words = 0;
        for word in paragraph.split_whitespace() {
            words += usize::from(word.contains(char::is_alphanumeric));
            if word
                .trim_end_matches([')', '"', '”'])
                .ends_with(['.', '!', '?'])
            {
                sentences.push(words);
                words = 0;
            }
        }
        sentences.push(words);
    }
    sentences.retain(|words| *words > 0);
    sentences
}

#[test]
fn sentences_are_counted_without_code_tables_and_headings() {
    let page = "# A heading. With two.\n\nOne two three. Four `a b. c` six\nseven (eight.) Nine 1.5.\n\n\
        - ten eleven:\n- twelve\n\n```\nno. no.\n```\n\n| a. b. |\n| --- |\n| c. d. |\n";
    assert_eq!(sentences(page), [3, 5, 2, 2, 1]);
}

#[test]
fn the_sentences_of_a_page_have_at_most_20_words_on_average() {
    let mut long = Vec::new();
    for page in all_pages().iter().filter(|page| name_of(page) != FIGURES) {
        let sentences = sentences(&read(page));
        let (count, words) = (sentences.len(), sentences.iter().sum::<usize>());
        let average = words as f64 / count.max(1) as f64;
        if average > MAX_SENTENCE {
            let page = name_of(page);
            long.push(format!("{page}: {average:.1} words in {count} sentences"));
        }
    }
    assert!(long.is_empty(), "long sentences:\n{}", long.join("\n"));
}

#[test]
fn no_page_uses_a_word_that_style_avoids() {
    let mut found = Vec::new();
    for page in all_pages() {
        let text = read(&page);
        for (number, line) in text.lines().enumerate() {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            for word in words.filter(|word| UNUSED.contains(&word.to_lowercase().as_str())) {
                found.push(format!("{}:{}: {word}", name_of(&page), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn words_of(page: &Path) -> usize {
    read(page).split_whitespace().count()
}

#[test]
fn a_page_has_at_most_1500_words() {
    let docs = repository().join("docs");
    let mut long = Vec::new();
    for page in files_in(&docs, "md") {
        let words = words_of(&page);
        if words > MAX_PAGE && !page.starts_with(docs.join("measurements")) {
            long.push(format!("{}: {words} words", name_of(&page)));
        }
    }
    assert!(long.is_empty(), "long pages:\n{}", long.join("\n"));
}

#[test]
fn every_published_crate_has_a_short_readme() {
    let words = words_of(&repository().join("README.md"));
    assert!(words <= MAX_README, "README.md: {words} words");
    for folder in published_crates() {
        let page = folder.join("README.md");
        let words = words_of(&page);
        assert!(words <= MAX_CRATE_README, "{page:?}: {words} words");
        let manifest = read(&folder.join("Cargo.toml"));
        let names_it = manifest.contains("readme = \"README.md\"");
        assert!(names_it, "{folder:?}: Cargo.toml has no readme");
    }
}

#[test]
fn a_change_in_the_changelog_is_one_short_line() {
    let text = read(&repository().join("CHANGELOG.md"));
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        assert!(
            !line.starts_with(' '),
            "CHANGELOG.md:{number}: more than one line"
        );
        let events = Parser::new(line);
        let length: usize = events
            .map(|event| match event {
                Event::Text(text) | Event::Code(text) => text.chars().count(),
                _ => 0,
            })
            .sum();
        assert!(
            length <= MAX_CHANGE,
            "CHANGELOG.md:{number}: {length} characters"
        );
    }
}
