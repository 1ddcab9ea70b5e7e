//! Names of the files that `spdy fetch` writes: the last part of each URL, none twice.

use http::Uri;

fn last_part(url: &Uri) -> &str {
    url.path().rsplit('/').next().unwrap_or_default()
}

/// Unique file names.
#[derive(Default)]
pub(crate) struct FileNames(Vec<String>);

impl FileNames {
    /// The last part of the URL's path; a second `a.png` becomes `a.png.1`.
    pub(crate) fn of(&mut self, url: &Uri) -> String {
        self.free(last_part(url), |_| false)
    }

    /// The name for a push, which the server chose.
    pub(crate) fn of_push(&mut self, url: &Uri, is_there: impl Fn(&str) -> bool) -> String {
        self.free(last_part(url).trim_start_matches('.'), is_there)
    }

    fn free(&mut self, name: &str, is_there: impl Fn(&str) -> bool) -> String {
        let name = if matches!(name, "" | "." | "..") {
            "index.html"
        } else {
            name
        };
        let numbered = (1..).map(|nth| format!("{name}.{nth}"));
        let free = std::iter::once(name.to_owned())
            .chain(numbered)
            .find(|name| !self.0.contains(name) && !is_there(name))
            .expect("one of the numbers is free");
        self.0.push(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_urls_and_none_twice() {
        let mut names = FileNames::default();
        let url = "http://a.test/x/.profile".parse().unwrap();
        assert_eq!(names.of_push(&url, |name| name == "profile"), "profile.1");
        let mut of = |url: &str| names.of(&url.parse().unwrap());
        assert_eq!(of("http://a/"), "index.html");
        assert_eq!(of("http://a/x/y.png?z=/q"), "y.png");
        assert_eq!(of("http://b/y.png"), "y.png.1");
        assert_eq!(of("http://b/.."), "index.html.1");
    }
}
